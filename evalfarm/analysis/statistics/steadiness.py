"""How steady a plugin is: whether the same case ends the same way when it is asked again.

Three numbers, each with what it depends on: the observed flip rate (`stats.flip_rate`) grows with the number of
repeats and is always said with it; the pairwise disagreement D does not, and is the headline; the flip rate
rarefied to k repeats compares runs of unequal length. Shapes are those of `stats`; `labels` is a matrix of one
row per case and one column per repeat: 1 passed, 0 failed, NaN not decided.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evalfarm.analysis.statistics.of_k import RateOfK, all_of_k, of_k
from evalfarm.analysis.statistics.stats import Estimate, Floats, counted, family_index, mean_share
from evalfarm.contracts.verdict import Rate

NOISE_LEVEL = 0.05  #: a spread across repeats this unlikely under rerun noise alone is called more than noise


@dataclass(frozen=True, slots=True)
class RepeatSpread:
    """How far whole repeats of a suite lie apart, and whether that is more than rerun noise.

    `sd_one_run` is what rerun noise alone gives; the observed spread of two or three repeats has too few degrees of
    freedom for an interval, so it is told as a range. Where it is more than noise, the trials of a repeat moved
    together (an outage, a changed model), and no interval that takes them as independent holds.
    """

    rates: tuple[float, ...]  #: per repeat, over the cases decided in every repeat
    cases: int  #: decided in every repeat
    lowest: float | None
    highest: float | None
    sd_observed: float | None  #: of `rates`
    sd_one_run: Estimate
    q: float | None  #: Cochran's Q; None with fewer than two repeats or no case
    p: float | None

    @property
    def more_than_noise(self) -> bool | None:
        """None where it cannot be tested."""
        return None if self.p is None else self.p < NOISE_LEVEL


def disagreement(passes: ArrayLike, decided: ArrayLike, families: ArrayLike | None = None) -> Rate:
    """D: the chance that two reruns of a case disagree, mean over cases of 2 c_i (R_i - c_i) / (R_i (R_i - 1)).

    Unbiased for E[2 p (1 - p)] whatever the repeats, so runs with unequal repeats compare. Over cases with
    R_i ≥ 2; interval as for `pass_rate`. No such case gives None thrice. Raises ValueError as `pass_rate` does.
    """
    c, r = counted(passes, decided)
    return label_disagreement(np.column_stack([c, r - c]), families)


def label_disagreement(labels: ArrayLike, families: ArrayLike | None = None) -> Rate:
    """D over any labels: mean over cases of 1 - Σ_l n_il (n_il - 1) / (R_i (R_i - 1)), R_i = Σ_l n_il.

    `labels`: n cases × labels, how often case i got label l (passed, failed, inconclusive). Else as `disagreement`.
    """
    counts = np.asarray(labels, dtype=np.float64)
    trials = counts.sum(axis=1)
    repeated = trials >= 2
    groups = family_index(families, len(trials))[repeated]
    return mean_share(_pairs_apart(counts[repeated]), trials[repeated], groups)


def rarefied_flip_rate(passes: ArrayLike, decided: ArrayLike, k: int, families: ArrayLike | None = None) -> RateOfK:
    """F_k: the flip rate that k repeats would show, mean of 1 - (C(c_i, k) + C(R_i - c_i, k)) / C(R_i, k).

    Unbiased for k ≤ R_i (rarefaction); F_2 = D and F_3 = 1.5 D. Cases, interval and errors as for `stats.pass_at_k`.
    """
    return of_k("the flip rate", passes, decided, k, families, per_case=lambda c, r: _flipped_in_k(c, r, k))


def repeat_spread(labels: ArrayLike) -> RepeatSpread:
    """The spread of whole repeats and Cochran's Q over the n cases that are decided in every one of R repeats.

    Q = (R - 1) (R Σ_j C_j² - N²) / (R N - Σ_i L_i²) with C_j the passes of repeat j, L_i of case i and N of all
    (Cochran 1950), compared with χ² on R - 1 degrees of freedom. SD of one run = √(D / 2n), its interval by
    transforming that of D. No case that varies: Q = 0, p = 1. R < 2 or n = 0: no test.
    """
    table = np.asarray(labels, dtype=np.float64)
    whole = table[~np.isnan(table).any(axis=1)]
    cases, repeats = whole.shape
    rates = tuple(float(rate) for rate in whole.mean(axis=0)) if cases else ()
    tested = repeats >= 2 and cases > 0
    q = _cochran_q(whole) if tested else None
    return RepeatSpread(
        rates=rates,
        cases=cases,
        lowest=min(rates, default=None),
        highest=max(rates, default=None),
        sd_observed=float(np.std(rates, ddof=1)) if tested else None,
        sd_one_run=sd_of_one_run(disagreement(whole.sum(axis=1), np.full(cases, repeats)), cases),
        q=q,
        p=None if q is None else float(special.chdtrc(repeats - 1, q)),
    )


def sd_of_one_run(disagreeing: Rate, cases: int) -> Estimate:
    """By how much the pass rate of `cases` cases, each run once, varies between reruns: √(D / 2n)."""
    value, low, high = (
        None if d is None else math.sqrt(d / (2 * cases))
        for d in (disagreeing.value, disagreeing.low, disagreeing.high)
    )
    return Estimate(value=value, low=low, high=high)


def intraclass_correlation(passes: ArrayLike, decided: ArrayLike) -> float | None:
    """How alike repeats of a case are, 1 = always the same: (B - W) / (B + (R₀ - 1) W), one-way analysis of variance.

    B = Σ R_i (y_i - ȳ)² / (n - 1), W = Σ R_i y_i (1 - y_i) / (N - n), N = Σ R_i, ȳ over trials,
    R₀ = (N - Σ R_i² / N) / (n - 1), which is R where all R_i are equal. None where all trials ended alike,
    with one case, or without repeats.
    """
    c, r = counted(passes, decided)
    c, r = c[r > 0], r[r > 0]
    n, total = len(r), float(r.sum())
    if n < 2 or total <= n or c.sum() in (0, total):
        return None
    y = c / r
    between = float((r * (y - c.sum() / total) ** 2).sum()) / (n - 1)
    within = float((r * y * (1 - y)).sum()) / (total - n)
    repeats = (total - float((r**2).sum()) / total) / (n - 1)
    return (between - within) / (between + (repeats - 1) * within)


def _pairs_apart(counts: Floats) -> Floats:
    trials = counts.sum(axis=1)
    apart: Floats = 1 - (counts * (counts - 1)).sum(axis=1) / (trials * (trials - 1))
    return apart


def _flipped_in_k(c: Floats, r: Floats, k: int) -> Floats:
    if k == 1:
        return np.zeros(len(r))  # one trial is all passed and all failed at no time
    return 1 - all_of_k(c, r, k) - all_of_k(r - c, r, k)


def _cochran_q(table: Floats) -> float:
    repeats = table.shape[1]
    by_repeat, by_case, total = table.sum(axis=0), table.sum(axis=1), float(table.sum())
    left = repeats * total - float((by_case**2).sum())
    return (repeats - 1) * (repeats * float((by_repeat**2).sum()) - total**2) / left if left > 0 else 0.0
