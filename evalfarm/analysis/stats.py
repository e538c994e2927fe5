"""The statistics of a run: every rate with an interval that does not promise too much.

The unit is the case, not the trial. Repeats of one case resemble each other, so an interval over pooled
trials is too narrow: at 108 cases × 10 repeats a nominal 95 % covers little more than half.
Every proportion is therefore a mean over cases, with the Wilson interval on an effective number of cases:
deterministic, never of zero width, and inside [0, 1].

Shapes: `passes` and `decided` are aligned, one entry per case: c_i passed trials of R_i decided ones.
A case without a decided trial (R_i = 0) says nothing and is left out.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evalfarm.contracts.verdict import FlipRate, Rate

CONFIDENCE = 0.95
SMALLEST_ICC = 1 / 3
"""Repeats of a case are never taken to be less alike than this. Published agents lie at .30 to .77; without
the floor a near-perfect plugin with many repeats gets an interval that covers .83 to .87 in simulation."""

_Z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))


def pass_rate(passes: Sequence[int], decided: Sequence[int]) -> Rate:
    """The mean over cases of c_i / R_i, with its 95 % interval for new cases of the same kind.

    With y_i = c_i / R_i over n cases: m = mean(y); v = var(y, ddof=1) / n; n_eff = m(1-m) / v, at most
    max(n, Σ R_i / (1 + (R_i - 1) ρ)) with ρ = SMALLEST_ICC; the interval is Wilson's score interval at m with
    N = n_eff and the critical value t(.975, n-1). After Korn and Graubard (1998) and Franco et al. (2019),
    the cap added.

    Edges: n = 0 gives None thrice. Every y_i 0 or 1 (one repeat, say, or all passed) gives the plain Wilson
    interval over n cases with the normal critical value; so, for want of a variance, does n = 1.
    Raises ValueError where the two sequences differ in length or some c_i is not in 0 … R_i.
    """
    c, r = _decided_cases(passes, decided)
    n = len(c)
    if n == 0:
        return Rate(value=None, low=None, high=None)
    y = c / r
    mean = float(y.mean())
    if n == 1 or bool(np.all((y == 0) | (y == 1))):
        low, high = wilson(mean, n, _Z)
    else:
        critical = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
        low, high = wilson(mean, effective_cases(c, r), critical)
    return Rate(value=mean, low=low, high=high)


def flip_rate(passes: Sequence[int], decided: Sequence[int]) -> FlipRate:
    """The share of cases that both passed and failed, with its Wilson interval over cases.

    Over the n cases with R_i ≥ 2; a flip is 0 < c_i < R_i. The same system shows more flips the more often
    it is asked, so `repeats` (the largest R_i of any case) belongs to the number and is printed with it.
    n = 0 gives None thrice. Raises ValueError as `pass_rate` does.
    """
    c, r = _decided_cases(passes, decided)
    repeated = r >= 2
    flips = (c[repeated] > 0) & (c[repeated] < r[repeated])
    flipped, cases = int(flips.sum()), int(repeated.sum())
    rate = pass_rate([int(flip) for flip in flips], [1] * cases)
    repeats = int(r.max()) if len(r) else 0
    return FlipRate(**rate.model_dump(), flipped=flipped, cases=cases, repeats=repeats)


def quantile(values: Sequence[float], q: float) -> float | None:
    """The inverse ECDF: the smallest observed value with at least a share `q` of all at or below it.

    In the unit of the values; None where there are none.
    """
    return float(np.quantile(values, q, method="inverted_cdf")) if len(values) else None


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


def effective_cases(c: NDArray[np.float64], r: NDArray[np.float64]) -> float:
    """How many independent yes/no cases the per-case rates c_i / R_i are worth; formula in `pass_rate`.

    At least two cases, not all of them 0 or 1 alike.
    """
    n = len(c)
    y = c / r
    mean = float(y.mean())
    variance = float(y.var(ddof=1)) / n
    most = max(float((r / (1 + (r - 1) * SMALLEST_ICC)).sum()), float(n))
    return min(mean * (1 - mean) / variance, most) if variance > 0 else most


def _decided_cases(passes: Sequence[int], decided: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(passes) != len(decided):
        raise ValueError(f"{len(passes)} cases have passes but {len(decided)} have decided trials")
    for at, (c, r) in enumerate(zip(passes, decided, strict=True)):
        if not 0 <= c <= r:
            raise ValueError(f"case {at} has {c} passes of {r} decided trials")
    c_all, r_all = np.asarray(passes, dtype=np.float64), np.asarray(decided, dtype=np.float64)
    return c_all[r_all > 0], r_all[r_all > 0]
