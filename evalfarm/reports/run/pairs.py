"""The two arms of a run that can be set side by side, case by case."""

from dataclasses import dataclass

from evalfarm.analysis.statistics.paired import paired_difference
from evalfarm.analysis.statistics.stats import Estimate
from evalfarm.contracts.verdict import CaseSummary, CellSummary, RunSummary


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms that differ in one thing, by the cases decided in both: candidate's pass share less the baseline's."""

    baseline: CellSummary
    candidate: CellSummary
    differences: tuple[tuple[str, float], ...]  #: case and difference, the worst for the candidate first
    mean: Estimate  #: with its interval for new cases


def pair_of(summary: RunSummary) -> Pair | None:
    """The pair, where a run has exactly two arms and they differ in model, harness or variant alone; else None."""
    if len(summary.cells) != 2:
        return None
    baseline, candidate = summary.cells
    names = [(cell.model, cell.harness, cell.variant) for cell in (baseline, candidate)]
    if sum(one != other for one, other in zip(*names, strict=True)) != 1:
        return None
    shares = [
        {case.case: share for case in summary.cases if _arm(case) == name and (share := _share(case)) is not None}
        for name in names
    ]
    both = [case for case in shares[0] if case in shares[1]]
    if not both:
        return None
    families = {case.case: case.family or f"case {case.case}" for case in summary.cases}
    differences = {case: shares[1][case] - shares[0][case] for case in both}
    found = paired_difference(list(differences.values()), [families[case] for case in both])
    ordered = sorted(differences.items(), key=lambda pair: pair[1])
    return Pair(baseline, candidate, tuple(ordered), found.estimate)


def _arm(case: CaseSummary) -> tuple[str, str, str]:
    return case.model, case.harness, case.variant


def _share(case: CaseSummary) -> float | None:
    decided = case.labels["passed"] + case.labels["failed"]
    return case.labels["passed"] / decided if decided else None
