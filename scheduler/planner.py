"""A suite and its axes to a plan and a manifest. Pure: nothing is read, started or stored here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalfarm import __version__
from evalfarm.analysis.conversations.origins import plugin_digest, skill_digests
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import NO_MODEL, Arm, Isolation, Manifest, Plan, QueueName
from evalfarm.contracts.suite import HARNESSES, Case, HarnessName, Suite
from evalfarm.errors import UnknownName, UsageError


@dataclass(frozen=True)
class Axes:
    """What was asked for; empty harnesses: all that the cases support; empty variants: all of the suite's."""

    models: tuple[str, ...]
    harnesses: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    isolation: Isolation = "cell"
    judges: tuple[str, ...] = ()


def plan_run(
    suite: Suite,
    axes: Axes,
    *,
    run: str,
    cases: Sequence[str],
    files: Mapping[str, str],
    executables: Sequence[str] = (),
) -> Plan:
    """The plan of a run over the chosen cases; `files` are the digests of the suite's files.

    Raises UnknownName for a harness or variant that does not exist, UsageError for axes that plan nothing.
    """
    chosen = [case for case in suite.cases if case.id in set(cases)]
    harnesses = _harnesses(suite, chosen, axes.harnesses)
    variants = axes.variants or tuple(suite.variants)
    _check_axes(suite, axes, variants)
    if not axes.models and set(harnesses) != {"direct"}:
        raise UsageError("no model was named", "add --model, as in --model sim-careful or --model gpt-5-mini")
    arms = tuple(
        Arm(model=model, harness=harness, variant=variant)
        for harness in harnesses
        for model in ((NO_MODEL,) if harness == "direct" else tuple(dict.fromkeys(axes.models)))
        for variant in dict.fromkeys(variants)
    )
    _check_size(len(arms), len(chosen), axes.repeats)
    return Plan(
        run=run,
        suite=suite,
        arms=arms,
        cases=tuple(case.id for case in chosen),
        repeats=axes.repeats,
        seed=axes.seed,
        isolation=axes.isolation,
        files=dict(files),
        executables=tuple(executables),
        judges=_judges(suite, chosen, axes.judges),
    )


def _judges(suite: Suite, cases: Sequence[Case], asked: Sequence[str]) -> tuple[str, ...]:
    if asked and all(case.rubric is None for case in cases):
        raise UsageError(
            f"no chosen case of suite {suite.suite!r} has a rubric, so there is nothing to judge",
            "leave --judge out, or give cases a rubric (docs/guides/judging.md)",
        )
    return tuple(dict.fromkeys(asked))


#: Trials of one plan: more than anyone waits for, and still 20 MB of Redis.
MOST_TRIALS = 10_000_000


def _check_size(arms: int, cases: int, repeats: int) -> None:
    trials = arms * cases * repeats
    if trials > MOST_TRIALS:
        raise UsageError(
            f"{repeats} repeats of {cases} cases in {arms} arms are {trials:,} trials; {MOST_TRIALS:,} is the most",
            "ask for fewer repeats: `evalfarm power` says when more of them stop helping",
        )


def _check_axes(suite: Suite, axes: Axes, variants: Sequence[str]) -> None:
    for variant in variants:
        if variant not in suite.variants:
            raise UnknownName(
                f"suite {suite.suite!r} has no variant {variant!r}", f"its variants: {', '.join(suite.variants)}"
            )
    for model in axes.models:
        if not model.strip() or model == NO_MODEL:
            raise UsageError(f"{model!r} is no model's name", "direct runs without a model: leave --model out for it")
    if axes.repeats < 1:
        raise UsageError(f"{axes.repeats} repeats plan nothing", "--repeats takes a whole number from 1")


def _harnesses(suite: Suite, cases: Sequence[Case], asked: Sequence[str]) -> tuple[HarnessName, ...]:
    for name in asked:
        if name not in HARNESSES:
            raise UnknownName(f"there is no harness {name!r}", f"the harnesses: {', '.join(HARNESSES)}")
    lacking = {harness: [case.id for case in cases if not _runs_at(case, harness)] for harness in HARNESSES}
    for harness in HARNESSES:
        if harness in asked and lacking[harness]:
            form = "direct call" if harness == "direct" else "query"
            raise UsageError(
                f"case {lacking[harness][0]!r} of suite {suite.suite!r} has no {form}, so it cannot run at {harness!r}",
                "give the case one, filter it out with --filter, or leave this harness out",
            )
    chosen = tuple(h for h in HARNESSES if (h in asked if asked else not lacking[h]))
    if not chosen:
        raise UsageError(
            f"no harness can run every chosen case of suite {suite.suite!r}: "
            "some have only a query, some only a direct call",
            "choose cases of one kind with --filter",
        )
    return chosen


def _runs_at(case: Case, harness: HarnessName) -> bool:
    return case.direct is not None if harness == "direct" else bool(case.turns)


@dataclass(frozen=True)
class Measured:
    """What was found on this machine and in the running servers, for the manifest."""

    versions: Mapping[str, str]
    digests: Mapping[str, str]  #: of the tools each variant's server lists, the grader, the prices …
    simulated: bool


def manifest_of(
    plan: Plan,
    measured: Measured,
    *,
    created_at: float,
    label: str | None,
    filters: Mapping[str, str],
    queue: QueueName = "interactive",
) -> Manifest:
    """What exactly is about to be run, with a digest of everything that can move a score."""
    suite = plan.suite
    return Manifest(
        run=plan.run,
        label=label,
        created_at=created_at,
        evalfarm=__version__,
        suite=suite.suite,
        suite_version=suite.version,
        plugin=suite.plugin.name,
        plugin_version=suite.plugin.version,
        simulated=measured.simulated,
        synthetic=suite.synthetic,
        isolation=plan.isolation,
        arms=plan.arms,
        cases=len(plan.cases),
        repeats=plan.repeats,
        seed=plan.seed,
        planned=plan.size,
        filters=dict(filters),
        queue=queue,
        digests={**_digests(plan), **measured.digests},
        versions=dict(measured.versions),
    )


def _digests(plan: Plan) -> dict[str, str]:
    suite = plan.suite
    return {
        "plan": digest(plan),
        "cases": digest([case.model_dump(mode="json") for case in suite.cases if case.id in plan.cases]),
        "prompts": digest([[case.id, list(case.turns)] for case in suite.cases if case.id in plan.cases]),
        "files": digest(plan.files),
        "plugin": digest(suite.plugin),
        "variants": digest({name: suite.server_of(name).model_dump(mode="json") for name in suite.variants}),
        "loop": digest(suite.loop),
        **_version_digests(plan),
    }


def _version_digests(plan: Plan) -> dict[str, str]:
    """Of each variant that is run: of its plugin with its server, and of each of its skills' folders."""
    found: dict[str, str] = {}
    for variant in dict.fromkeys(arm.variant for arm in plan.arms):
        found[f"plugin/{variant}"] = plugin_digest(plan, variant)
        found |= {f"skill/{variant}/{skill}": folder for skill, folder in skill_digests(plan, variant).items()}
    return found
