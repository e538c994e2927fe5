"""The whole-run record: what a run tested, whether its plan was carried out, and what it leaves open."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalfarm.contracts.verdict import RunSummary

MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class CaseLabels:
    """What one grader said of one case, over all arms and repeats."""

    case: str
    grader: str
    passed: int
    failed: int
    inconclusive: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a reader must know to say what a run's rates are about."""

    versions: Mapping[str, str]  #: what was tested -> its version or digest
    categories: Mapping[str, int]  #: category -> cases that were run; 0: none was
    cases: int
    arms: int
    repeats: int
    planned: int
    not_run: int  #: planned and not run
    infra_failed: int  #: run, and lost to infrastructure
    labels: tuple[CaseLabels, ...]
    unresolved: tuple[str, ...]  #: cases that a right answer leaves open
    disputed: tuple[str, ...]  #: cases whose reference reviewers disagree on
    disagreements: tuple[str, ...]  #: answers on which labels disagree and nobody has decided
    gaps: tuple[str, ...]  #: why trials are inconclusive, those of most cases first

    @property
    def carried_out(self) -> bool:
        """Whether every planned trial ran and says something."""
        return not (self.not_run or self.infra_failed)


def run_record(summary: RunSummary) -> RunRecord | None:
    """The record of a run of ours; None of rows from elsewhere, whose plan is not known."""
    if summary.manifest is None:
        return None
    manifest = summary.manifest
    named = ("grader", "loop", "plugin", "prompts")
    of_judges = sorted(name for name in manifest.digests if name.startswith(("judge/", "rubric/")))
    return RunRecord(
        versions={
            f"suite {manifest.suite}": manifest.suite_version,
            "evalfarm": manifest.evalfarm,
            **{name: version for name, version in sorted(manifest.versions.items())},
            **{name: manifest.digests[name] for name in (*named, *of_judges) if name in manifest.digests},
        },
        categories={one.category: one.cases for one in summary.categories},
        cases=manifest.cases,
        arms=len(manifest.arms),
        repeats=manifest.repeats,
        planned=summary.planned,
        not_run=summary.not_run,
        infra_failed=summary.infra_failed,
        labels=_labels(summary),
        unresolved=summary.unresolved,
        disputed=summary.disputed,
        disagreements=summary.disagreements,
        gaps=_gaps(summary),
    )


def _labels(summary: RunSummary) -> tuple[CaseLabels, ...]:
    counts: dict[tuple[str, str], list[int]] = {}
    for case in summary.cases:
        for tally in case.by_grader:
            of = counts.setdefault((case.case, tally.grader), [0, 0, 0])
            for place, count in enumerate((tally.passed, tally.failed, tally.inconclusive)):
                of[place] += count
    return tuple(CaseLabels(*key, *of) for key, of in counts.items())


def _gaps(summary: RunSummary) -> tuple[str, ...]:
    open_ones = [case for case in summary.cases if case.labels["inconclusive"]]
    reasons = [reason for case in open_ones for reason in case.reasons[:1]]
    by_frequency = sorted(dict.fromkeys(reasons), key=lambda reason: -reasons.count(reason))
    return tuple(by_frequency[:MOST_REASONS])
