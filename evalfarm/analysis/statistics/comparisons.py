"""What a comparison adds up to: two arms, or the gap between two models under two harnesses.

Paired on cases, with the tests and intervals of `paired`. A difference is candidate - baseline as a fraction, so
"better" speaks of the candidate. Where the evidence does not decide, the finding says so and what would.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special  # scipy.stats costs 60 MB and most of a second at import

from evalfarm.analysis.statistics.paired import (
    CaseCounts,
    Difference,
    ExactTest,
    apart,
    decided_in_both,
    paired_difference,
    rerun_difference,
    rerun_test,
    smoothed_disagreement,
)
from evalfarm.analysis.statistics.planning import cases_for_difference, cases_for_equivalence, repeats_for_difference
from evalfarm.analysis.statistics.single_runs import newcombe
from evalfarm.analysis.statistics.stats import CONFIDENCE, Estimate, Floats, family_index, pass_rate
from evalfarm.contracts.verdict import Rate

Finding = Literal["better", "worse", "equivalent", "too little evidence"]

MARGIN = 0.03  #: differences within ± this count as none: three points
ALPHA = 1 - CONFIDENCE
EQUIVALENCE_CONFIDENCE = 1 - 2 * ALPHA  #: two one-sided tests at ALPHA
MOST_UNDECIDED = 0.05  #: a larger undecided share of the planned trials could hide any difference
UNLIKE_LOSSES = 0.01  #: Fisher's p below which two arms lose trials at different rates


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether the trials that were planned but not decided leave the comparison standing."""

    undecided_baseline: float  #: share of the planned trials
    undecided_candidate: float
    p_alike: float  #: Fisher's exact test that both arms lose trials at one rate
    sign_survives: bool  #: the finding keeps its direction however the undecided trials would have ended

    @property
    def harmless(self) -> bool:
        """Few enough and alike enough to be left out, or unable to turn the finding."""
        few = max(self.undecided_baseline, self.undecided_candidate) <= MOST_UNDECIDED
        return (few and self.p_alike >= UNLIKE_LOSSES) or self.sign_survives


@dataclass(frozen=True, slots=True)
class Needed:
    """What would decide on new cases if the difference seen is the true one, with a power of 80 %."""

    cases: int | None  #: at these repeats, to find the difference; None: there is none to find
    repeats: int | None  #: of these cases in both arms, to find it; None: no number does, or the noise is not known
    cases_for_equivalence: int | None  #: to show it lies within the margin; None: it does not


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms on the cases that both decided."""

    baseline: Rate
    candidate: Rate
    new_cases: Difference
    new_cases_finding: Finding  #: would it hold on other questions like these?
    same_cases: Estimate
    same_cases_test: ExactTest
    same_cases_finding: Finding  #: would a rerun of these cases differ?
    single_runs: Estimate | None  #: Newcombe's interval for new cases, where every case ran once in each arm
    completeness: Completeness
    needed: Needed
    margin: float


@dataclass(frozen=True, slots=True)
class Interaction:
    """The gap between two models under two harnesses, in percentage points of the pass rate as a fraction.

    All four cells belong to it: near the ceiling a gap must shrink, so a difference of gaps need not mean that the
    harness treats the models differently.
    """

    difference: Difference  #: first gap - second gap
    first_gap: Difference
    second_gap: Difference
    cells: tuple[Rate, Rate, Rate, Rate]  #: in the order of the arguments
    rerun_sd: float | None  #: of the difference from rerun noise alone; None without repeats in every cell


def compare(
    baseline: CaseCounts, candidate: CaseCounts, families: ArrayLike | None = None, *, margin: float = MARGIN
) -> Comparison:
    """Both questions, with their findings; over the cases decided in both arms.

    New cases: better or worse where the 95 % interval of `paired_difference` leaves out 0, equivalent where its 90 %
    one lies within ± margin. Same cases: better or worse where the two-sided mid-p of `rerun_test` is at most .05,
    equivalent where the 90 % interval of `rerun_difference` lies within. Else, and where undecided trials could turn
    the result (`Completeness`), too little evidence. No case in common: every figure None, too little evidence.
    """
    both = decided_in_both(baseline, candidate)
    groups = family_index(families, len(both))[both]
    d = (candidate.passed[both] / candidate.decided[both]) - (baseline.passed[both] / baseline.decided[both])
    new_cases = paired_difference(d, groups)
    rerun, _ = rerun_difference(baseline, candidate)
    test = rerun_test(baseline, candidate)
    completeness = _completeness(baseline, candidate, families)
    within = paired_difference(d, groups, confidence=EQUIVALENCE_CONFIDENCE).estimate
    rerun_within, _ = rerun_difference(baseline, candidate, confidence=EQUIVALENCE_CONFIDENCE)
    differs = new_cases.p is not None and new_cases.p < ALPHA
    reruns_differ = test.two_sided_mid <= ALPHA
    doubtful = not completeness.harmless
    return Comparison(
        baseline=pass_rate(baseline.passed[both], baseline.decided[both], groups),
        candidate=pass_rate(candidate.passed[both], candidate.decided[both], groups),
        new_cases=new_cases,
        new_cases_finding="too little evidence" if doubtful else _finding(within, differs, margin),
        same_cases=rerun,
        same_cases_test=test,
        same_cases_finding="too little evidence" if doubtful else _finding(rerun_within, reruns_differ, margin),
        single_runs=_single_runs(baseline, candidate),
        completeness=completeness,
        needed=_needed(baseline, candidate, d, margin),
        margin=margin,
    )


def difference_in_differences(
    first: tuple[CaseCounts, CaseCounts], second: tuple[CaseCounts, CaseCounts], families: ArrayLike | None = None
) -> Interaction:
    """(A₁ - B₁) - (A₂ - B₂) over the cases decided in all four cells; `first` is (A₁, B₁), `second` (A₂, B₂).

    Per case, with the interval of `paired_difference`, in [-2, 2]. The SD from rerun noise alone is
    √(Σ over cells and cases of D̃ / 2R_i) / n.
    """
    cells = (*first, *second)
    shown = decided_in_both(*first) & decided_in_both(*second)
    groups = family_index(families, len(shown))[shown]
    a1, b1, a2, b2 = (cell.passed[shown] / cell.decided[shown] for cell in cells)
    rates = [pass_rate(cell.passed[shown], cell.decided[shown], groups) for cell in cells]
    noise = [_rerun_variance(cell.passed[shown], cell.decided[shown]) for cell in cells]
    known = [variance for variance in noise if variance is not None]
    return Interaction(
        difference=paired_difference((a1 - b1) - (a2 - b2), groups, limit=2.0),
        first_gap=paired_difference(a1 - b1, groups),
        second_gap=paired_difference(a2 - b2, groups),
        cells=(rates[0], rates[1], rates[2], rates[3]),
        rerun_sd=math.sqrt(sum(known) / int(shown.sum())) if len(known) == len(noise) else None,
    )


def losses_alike(baseline: CaseCounts, candidate: CaseCounts) -> float:
    """Fisher's exact two-sided p that both arms lose trials, planned but not decided, at one rate.

    The sum of the hypergeometric chances of all tables with these margins that are no likelier than the one seen.
    """
    planned = [int(arm.planned.sum()) for arm in (baseline, candidate)]
    decided = [int(arm.decided.sum()) for arm in (baseline, candidate)]
    kept = np.arange(max(0, sum(decided) - planned[1]), min(planned[0], sum(decided)) + 1)
    ways = _log_ways(planned[0], kept) + _log_ways(planned[1], sum(decided) - kept)
    chances = np.exp(ways - ways.max())
    seen = chances[decided[0] - kept[0]]
    # Equally likely tables differ by rounding alone: R's fisher.test allows them the same.
    return float(min(1.0, chances[chances <= seen * (1 + 1e-7)].sum() / chances.sum()))


def _log_ways(of: int, chosen: NDArray[np.intp]) -> Floats:
    ways: Floats = -(special.gammaln(chosen + 1) + special.gammaln(of - chosen + 1))
    return ways


def undecided_share(arm: CaseCounts) -> float:
    """The share of an arm's planned trials that were not decided; 0 of none."""
    planned = float(arm.planned.sum())
    return 1 - float(arm.decided.sum()) / planned if planned else 0.0


def _finding(within: Estimate, decided: bool, margin: float) -> Finding:
    if within.value is None or within.low is None or within.high is None:
        return "too little evidence"
    if decided and within.value != 0:
        return "better" if within.value > 0 else "worse"
    return "equivalent" if -margin <= within.low and within.high <= margin else "too little evidence"


def _completeness(baseline: CaseCounts, candidate: CaseCounts, families: ArrayLike | None) -> Completeness:
    """The worst and the best that the undecided trials allow the candidate, on every case planned in both."""
    worst = apart(_resolved(baseline, passing=True), _resolved(candidate, passing=False), families).estimate
    best = apart(_resolved(baseline, passing=False), _resolved(candidate, passing=True), families).estimate
    survives = (worst.low is not None and worst.low > 0) or (best.high is not None and best.high < 0)
    return Completeness(
        undecided_baseline=undecided_share(baseline),
        undecided_candidate=undecided_share(candidate),
        p_alike=losses_alike(baseline, candidate),
        sign_survives=survives,
    )


def _resolved(arm: CaseCounts, *, passing: bool) -> CaseCounts:
    """The arm as if every undecided trial had passed, or failed."""
    passed = arm.passed + (arm.planned - arm.decided if passing else 0)
    return CaseCounts(passed=passed, decided=arm.planned, planned=arm.planned)


def _single_runs(baseline: CaseCounts, candidate: CaseCounts) -> Estimate | None:
    both = decided_in_both(baseline, candidate)
    if not both.any() or (baseline.decided[both] > 1).any() or (candidate.decided[both] > 1).any():
        return None
    a, b = candidate.passed[both].astype(bool), baseline.passed[both].astype(bool)
    return newcombe(int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum()))


def _needed(baseline: CaseCounts, candidate: CaseCounts, d: Floats, margin: float) -> Needed:
    n = len(d)
    if n < 2:
        return Needed(cases=None, repeats=None, cases_for_equivalence=None)
    effect = float(d.mean())
    # With the pseudo-cases of the interval, so that a difference that never varied has some variance.
    variance = (float((d**2).sum()) + 1) / (n + 1) - (float(d.sum()) / (n + 1)) ** 2
    both = decided_in_both(baseline, candidate)
    arms = [(arm.passed[both], arm.decided[both]) for arm in (baseline, candidate)]
    noise = [_rerun_variance(c, r) for c, r in arms]
    repeats = None
    if effect and noise[0] is not None and noise[1] is not None:
        between = max(0.0, variance - noise[0] - noise[1])
        once = sum(smoothed_disagreement(c, r) for c, r in arms) / 2
        repeats = repeats_for_difference(effect, between, once, n)
    equivalent = cases_for_equivalence(effect, margin, variance)
    return Needed(
        cases=math.ceil(cases_for_difference(effect, variance)) if effect else None,
        repeats=repeats,
        cases_for_equivalence=None if equivalent is None else math.ceil(equivalent),
    )


def _rerun_variance(c: Floats, r: Floats) -> float | None:
    """The mean over cases of a case rate's variance between reruns, D̃ / 2R_i; None without repeats."""
    return smoothed_disagreement(c, r) / 2 * float(np.mean(1 / r)) if (r >= 2).any() else None
