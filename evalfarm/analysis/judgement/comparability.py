"""Whether two arms may be compared: whatever could move a score, and is not what is being compared, must be equal.

The settings of an arm are read off its run's manifest. Where two arms differ in one that was not meant to differ, the
comparison is refused with the list; a person may allow a difference by its key, and then every report names it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cases.policies import is_simulated
from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import Axis
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import NO_MODEL, Manifest, Plan
from evalfarm.errors import UsageError

UNDER_TEST = frozenset({"files", "plugin", "tools", "variants"})
"""What a plugin under test is made of: its files, its packaging, the tools it shows, its variants' servers."""

PATCH = "patch"
"""A working tree in the place of the plugin's released folder. Whoever allows it allows what it may change."""

_MEANT: dict[Axis, frozenset[str]] = {
    "model": frozenset(),
    "harness": frozenset({"loop"}),
    "variant": UNDER_TEST | {PATCH},
}
#: The plan names the run itself; prices move a cost, not a score; cases and what they ask are looked at one by one.
_NOT_HELD_AGAINST = frozenset({"plan", "prices", "prompts", "cases"})
#: Of a variant, for people: `files`, `plugin` and `variants` hold the same.
_NAMED_ONLY = ("plugin/", "skill/", "marketplace/")
_OF_CODEX = frozenset({"model_transport", "versions/codex", "versions/openai-codex"})
_CASES = "cases"
_NOT_THERE = "(none)"
_SHOWN_DIGITS = 12
_SHOWN_CASES = 3


@dataclass(frozen=True, slots=True)
class Side:
    """One arm of one run, with what its cases were."""

    manifest: Manifest | None  #: None: not produced by evalfarm
    arm: ArmName
    cases: Mapping[str, str]  #: case -> digest (`case_digests`)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A setting that two arms do not share, both values shortened."""

    key: str
    baseline: str
    candidate: str

    def __str__(self) -> str:
        """`grader: sha256:0123456789ab against sha256:ba9876543210`."""
        return f"{self.key}: {self.baseline} against {self.candidate}"


def case_digests(plan: Plan) -> dict[str, str]:
    """A digest of what each of a run's cases asks and expects, by its id; tags and families move no score."""
    asked = {case.id: case for case in plan.suite.cases}
    return {name: digest(asked[name].model_dump(mode="json", exclude={"tags", "family"})) for name in plan.cases}


def settings_of(manifest: Manifest | None, arm: ArmName) -> dict[str, str]:
    """Everything that can move this arm's score but the model and the cases: key -> value.

    The tools are those of the arm's variant. Of results that evalfarm did not produce nothing is known.
    """
    if manifest is None:
        return {}
    stated = {
        "suite": manifest.suite,
        "suite_version": manifest.suite_version,
        "simulated": "yes" if is_simulated(arm.model) else "no",
        "synthetic": "yes" if manifest.synthetic else "no",
        "isolation": manifest.isolation,
        "evalfarm": manifest.evalfarm,
        "model_transport": manifest.model_transport,
    }
    if manifest.patch is not None and arm.variant in manifest.patch.variants:
        stated[PATCH] = manifest.patch.digest
    own_tools = f"tools/{arm.variant}"
    digests = {
        key: value
        for key, value in manifest.digests.items()
        if not (key in _NOT_HELD_AGAINST or key.startswith(_NAMED_ONLY))
        and (key == own_tools or not key.startswith("tools/"))
    }
    return stated | digests | {f"versions/{name}": version for name, version in manifest.versions.items()}


def mismatches(baseline: Side, candidate: Side) -> tuple[Mismatch, ...]:
    """Every setting in which two arms differ, by key, and then the cases that both have and that changed.

    Left out is what only one of the two could have: Codex where not both ran in it, a model where not both have one.
    Between two variants the key of their tools is `tools`. Results that evalfarm did not produce differ from a run in
    having no `manifest`, and from each other in nothing that is known.
    """
    pair = (baseline, candidate)
    if any(side.manifest is None for side in pair):
        told = ["not produced by evalfarm" if side.manifest is None else side.manifest.run for side in pair]
        return () if told[0] == told[1] else (Mismatch("manifest", *told),)
    without: set[str] = set()
    if any(side.arm.harness != "codex" for side in pair):
        without |= _OF_CODEX
    if any(side.arm.model == NO_MODEL for side in pair):
        without.add("simulated")
    sides = [settings_of(side.manifest, side.arm) for side in pair]
    if baseline.arm.variant != candidate.arm.variant:
        sides = [{_family(key) if key.startswith("tools/") else key: side[key] for key in side} for side in sides]
    found = [
        Mismatch(key, *(_short(side.get(key, _NOT_THERE)) for side in sides))
        for key in sorted((sides[0].keys() | sides[1].keys()) - without)
        if sides[0].get(key) != sides[1].get(key)
    ]
    return tuple(found) + _changed_cases(baseline.cases, candidate.cases)


def meant_to_differ(axes: Iterable[Axis]) -> frozenset[str]:
    """The settings that may differ because they are what is compared."""
    return frozenset().union(*(_MEANT[axis] for axis in axes))


def refused(found: Sequence[Mismatch], meant: Collection[str], allowed: Collection[str]) -> tuple[Mismatch, ...]:
    """Those that stand in the way. A key covers what lies below it: `tools` covers `tools/plain`."""
    covered = {*meant, *allowed, *(UNDER_TEST if PATCH in allowed else ())}
    return tuple(one for one in found if one.key not in covered and _family(one.key) not in covered)


def new_patch(found: Mismatch) -> bool:
    """Whether the candidate alone is patched: so a working tree is held against what is released."""
    return found.key == PATCH and found.baseline == _NOT_THERE


def refuse(pair: str, found: Sequence[Mismatch]) -> None:
    """Raise UsageError with the list, if there is one."""
    if found:
        listed = "\n".join(f"  {one}" for one in found)
        patched = any(one.key == PATCH for one in found)
        keys = [_option(one) for one in found if one.key == PATCH or not (patched and _family(one.key) in UNDER_TEST)]
        options = " ".join(f"--allow-different {key}" for key in keys)
        files = " (files: the server, its data, whatever else the suite names)" if "files" in keys else ""
        raise UsageError(
            f"{pair} cannot be compared: they differ in what was not meant to differ\n{listed}",
            f"compare runs that share these, or say that you mean it: {options}{files}",
        )


def _changed_cases(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> tuple[Mismatch, ...]:
    common = [case for case in baseline if case in candidate]
    changed = [case for case in common if baseline[case] != candidate[case]]
    if not changed:
        return ()
    more = len(changed) - _SHOWN_CASES
    named = ", ".join(changed[:_SHOWN_CASES]) + (f" and {more} more" if more > 0 else "")
    values = (_short(digest([side[case] for case in common])) for side in (baseline, candidate))
    return (Mismatch(f"{_CASES}/{named}", *values),)


def _option(found: Mismatch) -> str:
    """The key to allow it by; that of the cases names them all."""
    return _CASES if _family(found.key) == _CASES else found.key


def _family(key: str) -> str:
    return key.partition("/")[0]


def _short(value: str) -> str:
    algorithm, colon, digits = value.partition(":")
    return f"{algorithm}:{digits[:_SHOWN_DIGITS]}" if colon and algorithm == "sha256" else value
