"""What every document about several runs says of a run, an arm and its cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import ArmCases, common_cases
from evalfarm.analysis.judgement.comparability import Side
from evalfarm.analysis.judgement.record import RunRecord, run_record
from evalfarm.analysis.statistics.paired import CaseCounts, decided_in_both
from evalfarm.contracts.patch import PluginPatch
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """A run as a comparison reads it."""

    summary: RunSummary
    cases: Mapping[str, str]  #: case -> digest of what it asks and expects; empty: not known

    def side(self, arm: ArmName) -> Side:
        """One of its arms, to be checked against another."""
        return Side(self.summary.manifest, arm, self.cases)


@dataclass(frozen=True, slots=True)
class RunNote:
    """What a comparison says of a run."""

    run: str
    label: str | None
    suite: str
    suite_version: str | None  #: None: not produced by evalfarm
    simulated: bool
    synthetic: bool
    isolation: str
    record: RunRecord | None = None  #: None: not produced by evalfarm
    patch: PluginPatch | None = None  #: what stood in for the suite's plugin


@dataclass(frozen=True, slots=True)
class ArmNote:
    """One arm of one run."""

    run: str
    model: str
    harness: str
    variant: str
    name: str  #: the three in a few words


@dataclass(frozen=True, slots=True)
class CaseSets:
    """The cases that two arms share, over which they are compared, and the others."""

    common: int
    only_baseline: tuple[str, ...]
    only_candidate: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case that the two arms passed unequally often, with what each passed of what it decided."""

    case: str
    baseline: str  #: as in `3/3`
    candidate: str
    change: float


def change_of_cases(baseline: CaseCounts, candidate: CaseCounts, cases: Sequence[str]) -> tuple[CaseChange, ...]:
    """The cases decided in both arms whose pass shares differ, the largest loss first."""
    both = decided_in_both(baseline, candidate)
    found = []
    for place, case in enumerate(cases):
        if not both[place]:
            continue
        shares = [float(arm.passed[place] / arm.decided[place]) for arm in (baseline, candidate)]
        if shares[0] != shares[1]:
            tallies = [f"{arm.passed[place]:.0f}/{arm.decided[place]:.0f}" for arm in (baseline, candidate)]
            found.append(CaseChange(case, tallies[0], tallies[1], shares[1] - shares[0]))
    return tuple(sorted(found, key=lambda change: (change.change, change.case)))


def run_note(summary: RunSummary) -> RunNote:
    """What a document says of a run."""
    return RunNote(
        run=summary.run,
        label=summary.label,
        suite=summary.suite,
        suite_version=summary.manifest.suite_version if summary.manifest else None,
        simulated=summary.simulated,
        synthetic=summary.synthetic,
        isolation=summary.isolation,
        record=run_record(summary),
        patch=summary.manifest.patch if summary.manifest else None,
    )


def case_sets(baseline: ArmCases, candidate: ArmCases) -> CaseSets:
    """Which cases two arms share. Raises UsageError where they share none."""
    common = common_cases([baseline, candidate])
    if not common:
        raise UsageError(
            f"{baseline.name} of run {baseline.run!r} and {candidate.name} of run {candidate.run!r} have no case in "
            "common",
            "compare runs of one suite whose filters overlap",
        )
    return CaseSets(
        common=len(common),
        only_baseline=tuple(case for case in baseline.cases if case not in candidate.cases),
        only_candidate=tuple(case for case in candidate.cases if case not in baseline.cases),
    )


def arm_note(arm: ArmCases) -> ArmNote:
    """What a document says of an arm."""
    return ArmNote(arm.run, *arm.name, name=str(arm.name))
