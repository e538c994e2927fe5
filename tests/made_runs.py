"""Runs made up from counts: what comparisons read of a run, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.notes import Source
from evalfarm.contracts.run import Arm, Manifest
from evalfarm.contracts.verdict import CaseSummary, RunSummary, Verdict

LOOP = ArmName("m", "loop", "plain")
GUIDED = ArmName("m", "loop", "guided")
CODEX = ArmName("m", "codex", "plain")
OTHER = ArmName("n", "loop", "plain")
OTHER_CODEX = ArmName("n", "codex", "plain")
DIRECT = ArmName("none", "direct", "plain")

DIGESTS = {
    "plan": "sha256:" + "0" * 64,
    "cases": "sha256:" + "1" * 64,
    "prompts": "sha256:" + "2" * 64,
    "files": "sha256:" + "3" * 64,
    "plugin": "sha256:" + "4" * 64,
    "variants": "sha256:" + "5" * 64,
    "loop": "sha256:" + "6" * 64,
    "tools/plain": "sha256:" + "7" * 64,
    "tools/guided": "sha256:" + "8" * 64,
    "grader": "sha256:" + "9" * 64,
    "prices": "sha256:" + "a" * 64,
}
VERSIONS = {"python": "3.11.9", "openai": "3.57.0", "codex": "0.163.0", "openai-codex": "0.163.0"}


def made_case(
    name: str, arm: ArmName, passed: int, decided: int, planned: int | None = None, **more: Any
) -> CaseSummary:
    """A case of which `passed` trials passed, then some failed, then some were lost."""
    lost = (decided if planned is None else planned) - decided
    labels: dict[Verdict, int] = {"passed": passed, "failed": decided - passed, "infra_failed": lost}
    verdicts = tuple(verdict for verdict, count in labels.items() for _ in range(count))
    return CaseSummary(
        case=name,
        model=arm.model,
        harness=arm.harness,
        variant=arm.variant,
        labels={"inconclusive": 0, "not_run": 0, **labels},
        trials=tuple(range(len(verdicts))),
        verdicts=verdicts,
        **more,
    )


def made_manifest(run: str, arms: Sequence[ArmName], **changes: Any) -> Manifest:
    """A manifest of version 1 of the suite `small`; `changes` are its fields."""
    stated: dict[str, Any] = {
        "run": run,
        "created_at": 0.0,
        "evalfarm": "0.1.0",
        "suite": "small",
        "suite_version": "1",
        "simulated": False,
        "synthetic": False,
        "isolation": "cell",
        "arms": tuple(Arm.model_validate(arm._asdict()) for arm in arms),
        "cases": 1,
        "repeats": 3,
        "seed": 0,
        "planned": 3,
        "digests": DIGESTS,
        "versions": VERSIONS,
    }
    return Manifest(**stated | changes)


def made_run(run: str, *cases: CaseSummary, manifest: Manifest | None = None, **changes: Any) -> RunSummary:
    """The summary of these cases, over which its counts add up; `changes` are fields of its manifest."""
    arms = tuple(dict.fromkeys(ArmName(case.model, case.harness, case.variant) for case in cases))
    stated = made_manifest(run, arms, **changes) if manifest is None else manifest
    counts = {
        verdict: sum(case.labels[verdict] for case in cases)
        for verdict in ("passed", "failed", "inconclusive", "infra_failed", "not_run")
    }
    return RunSummary(
        run=run,
        suite=stated.suite,
        label=stated.label,
        simulated=stated.simulated,
        synthetic=stated.synthetic,
        isolation=stated.isolation,
        finished=True,
        planned=sum(counts.values()),
        attempts=sum(counts.values()),
        cells=(),
        slices=(),
        cases=cases,
        breaks=(),
        manifest=stated,
        **counts,
    )


def made_source(
    run: str, counts: Mapping[ArmName, Sequence[int]], decided: int = 3, *, tags: bool = False, **changes: Any
) -> Source:
    """A run whose arms passed so many of `decided` trials in their first, second, … case.

    With `tags` the cases are in two slices, odd and even. All cases are known not to have changed.
    """
    cases = [
        made_case(f"case-{at + 1}", arm, passed, decided, tags={"half": ("odd", "even")[at % 2]} if tags else {})
        for arm, passes in counts.items()
        for at, passed in enumerate(passes)
    ]
    summary = made_run(run, *cases, **changes)
    return Source(summary, {case.case: "sha256:" + "c" * 64 for case in cases})
