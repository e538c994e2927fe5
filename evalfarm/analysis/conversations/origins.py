"""Where a run's conversations come from: its suite, and its plugin and skills with digests of what is in them."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from evalfarm.contracts.base import digest
from evalfarm.contracts.conversation import Origin
from evalfarm.contracts.run import Plan
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Result

SKILL_TAG = "skill"
"""A case that is about one skill names it in this tag."""


def origin_of(plan: Plan, case: str, variant: str, result: Result | None, *, attempt: int) -> Origin:
    """Of one attempt; `result` is the trial's, None where there is none yet."""
    return of_attempt(version_of(plan, variant), plan.suite.case(case), result, attempt=attempt)


def version_of(plan: Plan, variant: str) -> Origin:
    """What the attempts of one variant have in common: for whoever asks of many, as it takes digests of all files."""
    suite = plan.suite
    return Origin(
        suite=suite.suite,
        suite_version=suite.version,
        plugin=suite.plugin.name,
        plugin_version=suite.plugin.version,
        plugin_digest=plugin_digest(plan, variant),
        skill_digests=skill_digests(plan, variant),
    )


def of_attempt(version: Origin, case: Case, result: Result | None, *, attempt: int) -> Origin:
    """Of one attempt of a `version_of`; `result` is the trial's, None where there is none yet."""
    counted = result is not None and result.attempt == attempt
    judged = result if counted else None
    told = {
        "skill": case.tags.get(SKILL_TAG),
        "counted": counted,
        "verdict": None if judged is None else judged.verdict,
        "reasons": () if judged is None else judged.reasons,
    }
    return version.model_copy(update=told)


def plugin_digest(plan: Plan, variant: str) -> str:
    """A digest of what one version of the plugin is: its packaging, its server, and every file that these could read.

    Left out are what belongs to the suite alone (how a simulated model behaves, how answers are judged) and to other
    variants alone.
    """
    suite = plan.suite
    packaging = suite.plugin.model_dump(mode="json", exclude={"version", "path"})
    server = suite.server_of(variant).model_dump(mode="json")
    folder, others = _folder(plan, variant), {_folder(plan, other) for other in suite.variants}
    programs = {suite.server_of(other).python for other in suite.variants} - {server["python"]}
    policy = suite.simulation.policy if suite.simulation else None
    left_out = {policy, suite.answer_functions, *programs}
    apart = [other for other in others - {folder} if other is not None]
    own = {
        name: content
        for name, content in plan.files.items()
        if name not in left_out and not any(_is_below(name, other) for other in apart)
    }
    return digest([packaging, server, own])


def skill_digests(plan: Plan, variant: str) -> dict[str, str]:
    """Skill -> a digest of its folder's files, of the skills that a version of the plugin holds."""
    folder = _folder(plan, variant)
    if folder is None:
        return {}
    return {skill: digest(files) for skill, files in _by_skill(plan.files, folder)}


def _folder(plan: Plan, variant: str) -> str | None:
    return plan.suite.variants[variant].plugin_path or plan.suite.plugin.path


def _by_skill(files: Mapping[str, str], folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    root = PurePosixPath(folder) / "skills"
    found: dict[str, dict[str, str]] = {}
    for name, content in files.items():
        if _is_below(name, str(root)):
            skill, *rest = PurePosixPath(name).relative_to(root).parts
            if rest:
                found.setdefault(skill, {})["/".join(rest)] = content
    yield from sorted(found.items())


def _is_below(name: str, folder: str) -> bool:
    return PurePosixPath(name).is_relative_to(PurePosixPath(folder)) and PurePosixPath(name) != PurePosixPath(folder)
