"""Quantiles of many sets of trials that are cut out of one order.

`figures.latency_quantile` states the estimator and says what it gives at the edges; this computes the same from the
ranks, without sorting anew for every slice.
"""

import math

import numpy as np
from numpy.typing import NDArray

from evalfarm.analysis.statistics.figures import clopper_pearson
from evalfarm.analysis.statistics.stats import most_effective
from evalfarm.analysis.summary.tables import Observed
from evalfarm.contracts.figures import Latency, Measure

NOTHING = Measure(value=None, low=None, high=None)


def ranked_quantile(ranked: Observed, q: float, *, limit_s: float = math.inf) -> Measure:
    """A quantile over trials with its interval for new cases, as `figures.latency_quantile` gives it.

    `ranked` is in ascending order, its cells the cases of one arm; a value that was cut off is infinite, and `limit_s`
    the shortest limit.
    """
    total = len(ranked.value)
    if total == 0:
        return NOTHING
    value = float(ranked.value[_rank(total, q)])
    at_most = int(np.searchsorted(ranked.value, value, side="right"))
    low_share, high_share = clopper_pearson(q, _effective(ranked.cell, at_most, q))
    low = None if low_share * total < 1 else min(float(ranked.value[_rank(total, low_share)]), limit_s)
    high = None if high_share * total > total - 1 else float(ranked.value[_rank(total, high_share)])
    return Measure(value=_finite(value), low=low, high=None if high is None else _finite(high))


def deciles(ranked: Observed) -> tuple[float | None, ...]:
    """The 10 %, 20 % … 90 % quantiles of values in ascending order; None for one that was cut off."""
    total = len(ranked.value)
    return tuple(_finite(float(ranked.value[_rank(total, tenth / 10)])) for tenth in range(1, 10)) if total else ()


def points(observed: Observed) -> Latency:
    """p50 and p95 alone, of values in any order; None of nothing."""
    total = len(observed.value)
    if total == 0:
        return Latency(p50=None, p95=None)
    places = [_rank(total, 0.5), _rank(total, 0.95)]
    p50, p95 = np.partition(observed.value, places)[places]
    return Latency(p50=float(p50), p95=float(p95))


def _rank(total: int, share: float) -> int:
    """The place, from 0, of the smallest of so many sorted values with at least this share at or below it."""
    # A rounding error of share × n is no observation.
    return max(math.ceil(share * total - 1e-9), 1) - 1


def _effective(cell: NDArray[np.uint32], at_most: int, q: float) -> float:
    """How many independent trials the first `at_most` of the ranks are worth."""
    counts = np.bincount(cell)
    below = np.bincount(cell[:at_most], minlength=len(counts))[counts > 0]
    trials = counts[counts > 0].astype(np.float64)
    n = len(trials)
    variance = float((below / trials).var(ddof=1)) / n if n >= 2 else 0.0
    return min(q * (1 - q) / variance, most_effective(trials, np.arange(n))) if variance > 0 else float(n)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
