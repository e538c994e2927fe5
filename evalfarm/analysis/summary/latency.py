"""Quantiles alone, without an interval; `statistics.latency` has those with one."""

import math

import numpy as np

from evalfarm.analysis.statistics.latency import rank
from evalfarm.analysis.summary.tables import Observed
from evalfarm.contracts.figures import Latency


def deciles(ranked: Observed) -> tuple[float | None, ...]:
    """The 10 %, 20 % … 90 % quantiles of values in ascending order; None for one that was cut off."""
    total = len(ranked.value)
    return tuple(_finite(float(ranked.value[rank(total, tenth / 10)])) for tenth in range(1, 10)) if total else ()


def points(observed: Observed) -> Latency:
    """p50 and p95 alone, of values in any order; None of nothing."""
    total = len(observed.value)
    if total == 0:
        return Latency(p50=None, p95=None)
    places = [rank(total, 0.5), rank(total, 0.95)]
    p50, p95 = np.partition(observed.value, places)[places]
    return Latency(p50=float(p50), p95=float(p95))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
