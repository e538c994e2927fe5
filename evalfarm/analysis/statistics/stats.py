"""The statistics of a run: every rate with an interval that does not promise too much.

The unit is the case, not the trial. Repeats of one case resemble each other, so an interval over pooled
trials is too narrow: at 108 cases × 10 repeats a nominal 95 % covers little more than half.
Every proportion is therefore a mean over cases, with the Wilson interval on an effective number of cases:
deterministic, never of zero width, and inside [0, 1]. Where cases come in families (one template, one page),
a family is the unit.

Shapes: `passes` and `decided` are aligned, one entry per case: c_i passed trials of R_i decided ones.
A case without a decided trial (R_i = 0) says nothing and is left out. `families` is aligned with them: an
equal value means the same family; None means that every case stands for itself.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evalfarm.contracts.verdict import FlipRate, Rate

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
SMALLEST_ICC = 1 / 3
"""Repeats of a case, and cases of a family, are never taken to be less alike than this. Published agents lie
at .30 to .77; without the floor a near-perfect plugin with many repeats gets an interval that covers .83 to .87
in simulation, and one with families the like."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. No value: not estimable; no low or high: that end is open."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the pass rate can at most and at least be, whatever the undecided trials would have shown."""

    worst: float | None  #: every undecided trial failed
    best: float | None  #: every undecided trial passed
    low: float | None  #: the lower limit of the worst
    high: float | None  #: the upper limit of the best


def pass_rate(
    passes: ArrayLike, decided: ArrayLike, families: ArrayLike | None = None, *, confidence: float = CONFIDENCE
) -> Rate:
    """The mean over cases of c_i / R_i, with its interval for new cases (new families) of the same kind.

    With y_i = c_i / R_i over n cases: m = mean(y); v = var(y, ddof=1) / n; n_eff = m(1-m) / v, at most
    max(n, Σ R_i / (1 + (R_i - 1) ρ)) with ρ = SMALLEST_ICC; the interval is Wilson's score interval at m with
    N = n_eff and the critical value t(.975, n-1). After Korn and Graubard (1998) and Franco et al. (2019),
    the cap added. Families: `effective_cases`, and G - 1 degrees of freedom for G families.

    Any per-case share of trials is estimated so: pass inconclusive and planned trials for the inconclusive share.
    Edges: n = 0 gives None thrice. Every y_i 0 or 1 (one repeat, say, or all passed) gives the plain Wilson
    interval over n cases with the normal critical value; so, for want of a variance, does n = 1 (G = 1: over one).
    At exactly 0 % and 100 % the limit depends on the number of cases alone, so 149 of 150 trials can have a
    higher lower limit than 150 of 150.
    Raises ValueError where the sequences differ in length or some c_i is not in 0 … R_i.
    """
    c, r = counted(passes, decided)
    shown = r > 0
    groups = family_index(families, len(r))[shown]
    return mean_share(c[shown] / r[shown], r[shown], groups, confidence=confidence)


def pass_rate_bounds(
    passes: ArrayLike, decided: ArrayLike, planned: ArrayLike, families: ArrayLike | None = None
) -> Bounds:
    """Worst and best case for the trials that were planned but not decided, over cases with a planned trial.

    worst = mean(c_i / P_i), best = mean((c_i + P_i - R_i) / P_i) for P_i planned trials; the limits are those of
    `pass_rate`, the lower one of the worst and the upper one of the best, so they cover whatever was lost and
    why. Nothing planned gives None throughout. Raises ValueError as `pass_rate` does, and where R_i > P_i.
    """
    c, r = counted(passes, decided)
    _, p = counted(r, planned, "decided", "planned trials")
    worst, best = pass_rate(c, p, families), pass_rate(c + p - r, p, families)
    return Bounds(worst=worst.value, best=best.value, low=worst.low, high=best.high)


def flip_rate(passes: ArrayLike, decided: ArrayLike, families: ArrayLike | None = None) -> FlipRate:
    """The share of cases that both passed and failed, with its Wilson interval over cases.

    Over the n cases with R_i ≥ 2; a flip is 0 < c_i < R_i. The same system shows more flips the more often
    it is asked, so `repeats` (the largest R_i of any case) belongs to the number and is printed with it.
    n = 0 gives None thrice. Raises ValueError as `pass_rate` does.
    """
    c, r = counted(passes, decided)
    repeated = r >= 2
    flips = (c[repeated] > 0) & (c[repeated] < r[repeated])
    rate = pass_rate(flips, np.ones(len(flips)), family_index(families, len(r))[repeated])
    repeats = int(r.max()) if len(r) else 0
    return FlipRate(**rate.model_dump(), flipped=int(flips.sum()), cases=len(flips), repeats=repeats)


def quantile(values: ArrayLike, q: float) -> float | None:
    """The inverse ECDF: the smallest observed value with at least a share `q` of all at or below it.

    In the unit of the values; None where there are none.
    """
    observed = np.asarray(values, dtype=np.float64)
    return float(np.quantile(observed, q, method="inverted_cdf")) if len(observed) else None


def wilson(share: float, n: float, critical: float) -> tuple[float, float]:
    """Wilson's score interval (low, high) of a share observed over `n` units; `n` > 0 need not be whole.

    (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), Wilson (1927), clipped to [0, 1].
    """
    z2 = critical * critical
    centre = share + z2 / (2 * n)
    half = critical * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # At 0 and 1 one limit is the share itself; rounding would put it a hair to the wrong side.
    low = min(share, max(0.0, (centre - half) / (1 + z2 / n)))
    high = max(share, min(1.0, (centre + half) / (1 + z2 / n)))
    return low, high


def mean_share(shares: Floats, trials: Floats, groups: NDArray[np.intp], *, confidence: float = CONFIDENCE) -> Rate:
    """The mean of per-case figures in [0, 1], each from `trials` ≥ 1 trials, with the interval of `pass_rate`.

    `groups`: the family of each case, as `family_index` numbers them.
    """
    if len(shares) == 0:
        return Rate(value=None, low=None, high=None)
    mean = float(shares.mean())
    units = len(np.unique(groups))
    yes_or_no = units == len(shares) and bool(np.all((shares == 0) | (shares == 1)))
    if units == 1 or yes_or_no or mean in (0, 1):
        low, high = wilson(mean, units, critical_z(confidence))
    else:
        low, high = wilson(mean, effective_cases(shares, trials, groups), critical_t(units - 1, confidence))
    return Rate(value=mean, low=low, high=high)


def effective_cases(shares: Floats, trials: Floats, groups: NDArray[np.intp] | None = None) -> float:
    """How many independent yes/no cases per-case shares y_i of `trials` R_i are worth.

    m(1-m) / v with v = G/(G-1) Σ_g (Σ_{i in g} (y_i - m))² / n², which without families (G = n) is
    var(y, ddof=1) / n; at most max(G, Σ_g Σ_{i in g} w_i / (1 + (n_g - 1) ρ)), w_i = R_i / (1 + (R_i - 1) ρ),
    n_g the cases of family g and ρ = SMALLEST_ICC. At least two families, not all shares 0 or 1 alike.
    """
    n, mean = len(shares), float(shares.mean())
    _, index = np.unique(np.arange(n) if groups is None else groups, return_inverse=True)
    units, most = int(index.max()) + 1, most_effective(trials, index)
    variance = float((np.bincount(index, weights=shares - mean) ** 2).sum()) / n**2 * units / (units - 1)
    return min(mean * (1 - mean) / variance, most) if variance > 0 else most


def most_effective(trials: Floats, index: NDArray[np.intp]) -> float:
    """The cap of `effective_cases`: what the trials are worth if repeats and families are as unlike as can be."""
    sizes = np.bincount(index)
    worth = np.bincount(index, weights=trials / (1 + (trials - 1) * SMALLEST_ICC))
    return max(float((worth / (1 + (sizes - 1) * SMALLEST_ICC)).sum()), float(len(sizes)))


def counted(
    hits: ArrayLike, trials: ArrayLike, hit: str = "passes", trial: str = "decided trials"
) -> tuple[Floats, Floats]:
    """Both as arrays, one entry per case. Raises ValueError, in these words, as `pass_rate` says."""
    c, r = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if len(c) != len(r):
        raise ValueError(f"{len(c)} cases have {hit} but {len(r)} have {trial}")
    wrong = np.flatnonzero(~((c >= 0) & (c <= r)))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(f"case {at} has {c[at]:g} {hit} of {r[at]:g} {trial}")
    return c, r


def family_index(families: ArrayLike | None, cases: int) -> NDArray[np.intp]:
    """Each case's family as a number; every case its own where families are not given."""
    if families is None:
        return np.arange(cases, dtype=np.intp)
    named = np.asarray(families)
    if len(named) != cases:
        raise ValueError(f"{len(named)} cases have a family but {cases} have trials")
    return np.unique(named, return_inverse=True)[1].astype(np.intp)


@cache
def critical_z(confidence: float = CONFIDENCE) -> float:
    """The two-sided critical value of the normal distribution; 1.96 for 95 %."""
    return float(special.ndtri((1 + confidence) / 2))


@cache
def critical_t(df: int, confidence: float = CONFIDENCE) -> float:
    """The two-sided critical value of Student's t distribution with `df` ≥ 1 degrees of freedom."""
    return float(special.stdtrit(df, (1 + confidence) / 2))
