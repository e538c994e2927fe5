"""Tests and intervals for two arms on the same cases; `comparisons` says what they add up to.

Two questions. *New cases*: would the difference hold on other questions like these? (`paired_difference`).
*Same cases*: would a rerun of these cases differ? (`rerun_difference`, `rerun_test`).
A difference is candidate - baseline, as a fraction.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special  # scipy.stats costs 45 MB and half a second at import

from evalfarm.analysis.statistics.stats import (
    CONFIDENCE,
    Estimate,
    Floats,
    counted,
    critical_t,
    critical_z,
    family_index,
)

_NEGLIGIBLE = 1e-60  #: no tail probability is told to be smaller than this
_LONG = 1024  #: distributions over fewer values than this are kept whole


@dataclass(frozen=True, slots=True, eq=False)
class CaseCounts:
    """One arm's trials per case, aligned with the other arm's; 0 where a case is not in this arm."""

    passed: Floats
    decided: Floats
    planned: Floats


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference with its interval and the two-sided p value that goes with it."""

    estimate: Estimate
    p: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class ExactTest:
    """Tail probabilities of a permutation test, with and without half the observed outcome's own (mid-p)."""

    lower: float  #: of a candidate at most this good, if nothing changed
    lower_mid: float
    upper: float
    upper_mid: float
    varied: int  #: cases that both passed and failed over the two arms; the others say nothing and drop out

    @property
    def two_sided(self) -> float:
        """Twice the smaller exact tail, at most 1; with one repeat this is McNemar's exact test."""
        return min(1.0, 2 * min(self.lower, self.upper))

    @property
    def two_sided_mid(self) -> float:
        """Twice the smaller mid-p tail, at most 1."""
        return min(1.0, 2 * min(self.lower_mid, self.upper_mid))


def case_counts(passed: ArrayLike, decided: ArrayLike, planned: ArrayLike | None = None) -> CaseCounts:
    """An arm's counts; `planned` defaults to the decided trials. Raises ValueError for counts that cannot be."""
    c, r = counted(passed, decided)
    _, p = counted(r, r if planned is None else planned, "decided", "planned trials")
    return CaseCounts(passed=c, decided=r, planned=p)


def decided_in_both(baseline: CaseCounts, candidate: CaseCounts) -> NDArray[np.bool_]:
    """Which cases have a decided trial in both arms. Raises ValueError where the arms are not aligned."""
    if len(baseline.decided) != len(candidate.decided):
        raise ValueError(f"the baseline has {len(baseline.decided)} cases but the candidate {len(candidate.decided)}")
    return (baseline.decided > 0) & (candidate.decided > 0)


def paired_difference(
    differences: ArrayLike, families: ArrayLike | None = None, *, confidence: float = CONFIDENCE, limit: float = 1.0
) -> Difference:
    """The mean of per-case differences d_i in [-limit, limit], with its BP-t interval for new cases.

    Two pseudo-cases of +1 and -1 with half a case's weight each are added: M = Σ d_i / (n + 1),
    s² = (Σ d_i² + 1) / (n + 1) - M²; M ± t(.975, n-1) √(s² / (n + 1)), clipped. It carries Bonett and Price's (2012)
    interval for paired proportions over to repeats: never of zero width, while the plain t interval covers .22 at
    five cases near the ceiling. The value is the plain mean; p is of M / √(s² / (n + 1)).

    Families: the same over G families, each the mean of its cases with a weight of its share of them × G.
    Fewer than two cases (families): no interval and no p. Shape: one d_i per case.
    """
    d = np.asarray(differences, dtype=np.float64)
    if len(d) == 0:
        return Difference(Estimate(None, None, None), None, 0)
    index = family_index(families, len(d))
    sizes = np.bincount(index)
    units, value = len(sizes), float(d.mean())
    if units < 2:
        return Difference(Estimate(value, None, None), None, len(d))
    weights, means = sizes * units / len(d), np.bincount(index, weights=d) / sizes
    centre = float((weights * means).sum()) / (units + 1)
    squares = float((weights**2 * (means - centre) ** 2).sum()) + 1 + centre**2
    error = math.sqrt(squares) / (units + 1)
    half = critical_t(units - 1, confidence) * error
    # At a low confidence the pseudo-cases can pull the interval off the plain mean.
    low, high = min(value, max(-limit, centre - half)), max(value, min(limit, centre + half))
    return Difference(Estimate(value, low, high), 2 * float(special.stdtr(units - 1, -abs(centre) / error)), len(d))


def apart(baseline: CaseCounts, candidate: CaseCounts, families: ArrayLike | None) -> Difference:
    """Candidate - baseline over the cases decided in both, by `paired_difference`: would it hold on new cases?"""
    both = decided_in_both(baseline, candidate)
    d = (candidate.passed[both] / candidate.decided[both]) - (baseline.passed[both] / baseline.decided[both])
    return paired_difference(d, family_index(families, len(both))[both])


def rerun_difference(
    baseline: CaseCounts, candidate: CaseCounts, *, confidence: float = CONFIDENCE
) -> tuple[Estimate, float | None]:
    """The mean difference with its interval for a rerun of the same cases, and its standard error.

    d ± z √(Σ_i (D̃_A / 2R_Ai + D̃_B / 2R_Bi)) / n with D̃ = (Σ_i D_i + 1/2) / (n + 1) over an arm's repeated cases, which
    for equal repeats is √((D̃_A + D̃_B) / 2nR). The half keeps it from zero width where nothing flipped. Without
    repeats in both arms the noise is not known: no interval and no error. Over cases decided in both.
    """
    both = decided_in_both(baseline, candidate)
    n = int(both.sum())
    if n == 0:
        return Estimate(None, None, None), None
    arms = [(arm.passed[both], arm.decided[both]) for arm in (baseline, candidate)]
    value = float((arms[1][0] / arms[1][1] - arms[0][0] / arms[0][1]).mean())
    if any(not (r >= 2).any() for _, r in arms):
        return Estimate(value, None, None), None
    error = math.sqrt(sum(smoothed_disagreement(c, r) / 2 * float((1 / r).sum()) for c, r in arms)) / n
    half = critical_z(confidence) * error
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half)), error


def smoothed_disagreement(c: Floats, r: Floats) -> float:
    """D̃ = (Σ D_i + 1/2) / (n + 1) over the n cases with R_i ≥ 2: pairwise disagreement that is never zero."""
    c, r = c[r >= 2], r[r >= 2]
    return float((2 * c * (r - c) / (r * (r - 1))).sum() + 0.5) / (len(r) + 1)


def rerun_test(baseline: CaseCounts, candidate: CaseCounts) -> ExactTest:
    """Whether the candidate's passes could be a rerun of the baseline: exact stratified permutation test.

    Given case i's passes in both arms, m_i = c_Ai + c_Bi, the candidate's are hypergeometric: R_Bi drawn of
    R_Ai + R_Bi trials, m_i of them passes. The cases' distributions are convolved. This is the exact conditional
    Cochran-Mantel-Haenszel test, and McNemar's with one repeat. Valid with unequal repeats, missing trials,
    one case, all passed or all failed (then every tail is 1, mid-p 1/2).
    """
    both = decided_in_both(baseline, candidate)
    rows = np.column_stack([baseline.decided, candidate.decided, baseline.passed + candidate.passed])[both]
    varied = (rows[:, 2] > 0) & (rows[:, 2] < rows[:, 0] + rows[:, 1])
    first, chances = _sum_of([_drawn(*(int(count) for count in row)) for row in rows[varied]])
    at = int(candidate.passed[both][varied].sum()) - first
    lower, upper = float(chances[: max(at + 1, 0)].sum()), float(chances[max(at, 0) :].sum())
    here = float(chances[at]) if 0 <= at < len(chances) else 0.0
    lower, upper = (min(1.0, max(tail, _NEGLIGIBLE)) for tail in (lower, upper))
    return ExactTest(lower, lower - here / 2, upper, upper - here / 2, varied=int(varied.sum()))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values adjusted for all being looked at (Holm 1979), in the order given: valid under any dependence."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return tuple(float(value) for value in adjusted)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values adjusted to false discovery rates (Benjamini and Hochberg 1995), in the order given."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(-p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1)))
    return tuple(float(value) for value in adjusted)


@lru_cache(maxsize=4096)
def _drawn(baseline: int, candidate: int, passes: int) -> tuple[int, Floats]:
    """The smallest number of passes the candidate can have, and the chance of each number from there on."""
    first, last = max(0, passes - baseline), min(candidate, passes)
    ways = math.comb(baseline + candidate, passes)
    return first, np.array(
        [math.comb(candidate, k) * math.comb(baseline, passes - k) / ways for k in range(first, last + 1)]
    )


def _sum_of(parts: list[tuple[int, Floats]]) -> tuple[int, Floats]:
    """The distribution of a sum of independent counts: its smallest value and the chance of each from there on.

    Pairwise, so that the arrays stay small for as long as they can. Of long ones the ends that cannot matter are cut:
    the sum over 50 000 cases takes a million values, of which some thousands have any chance.
    """
    parts = parts or [(0, np.ones(1))]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        summed = [_trimmed(low + other, np.convolve(one, two)) for (low, one), (other, two) in pairs]
        parts = summed + parts[2 * len(summed) :]
    return parts[0]


def _trimmed(first: int, chances: Floats) -> tuple[int, Floats]:
    if len(chances) < _LONG:
        return first, chances
    kept = np.flatnonzero(chances > _NEGLIGIBLE)
    return first + int(kept[0]), chances[kept[0] : kept[-1] + 1]
