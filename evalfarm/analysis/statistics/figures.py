"""Figures per question that are no rates, as tool calls and tokens; with intervals that may be open.

As in `stats` the case is the unit, and its figure the mean of its trials. One that was not reported (NaN) is missing,
never zero.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special  # scipy.stats costs 45 MB and most of a second at import

from evalfarm.analysis.statistics.stats import CONFIDENCE, Estimate, Floats, critical_t

LEAST_CASES = 10
"""Below so many cases the mean of a skewed figure gets no interval: at five it covers .83 to .95 in simulation."""


_ROUNDING = 1e-12  #: differences of logarithms below this are none


@dataclass(frozen=True, slots=True)
class FigureChange:
    """By what factor a figure changed from one arm to another, over the cases that report it in both."""

    factor: Estimate
    t: float | None
    p: float | None  #: two-sided
    p_higher: float | None  #: one-sided, against "no higher"
    cases: int


def figure_change(before: ArrayLike, after: ArrayLike) -> FigureChange:
    """The factor from `before` to `after`, two aligned sequences of per-case means, by a paired t test of their logs.

    exp of the mean of log(after_i) - log(before_i), t interval on n - 1 degrees of freedom. Over cases with two
    positive figures; fewer than two of them give no test. Where all changed by one same factor, t has no meaning and
    the p values are those of the sign test, 1 / 2^n one-sided.
    """
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    both = (first > 0) & (second > 0)
    logs = np.log(second[both]) - np.log(first[both])
    change = t_interval(logs)
    factor = Estimate(*(None if end is None else math.exp(end) for end in (change.value, change.low, change.high)))
    n = len(logs)
    if n < 2:
        return FigureChange(factor=factor, t=None, p=None, p_higher=None, cases=n)
    mean, error = float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(n)
    if error <= _ROUNDING * max(1.0, float(np.abs(logs).max())):
        same = abs(mean) <= _ROUNDING
        p, higher = (1.0, 1.0) if same else (2 * 0.5**n, 0.5**n if mean > 0 else 1.0)
        return FigureChange(factor=factor, t=None, p=p, p_higher=higher, cases=n)
    t = mean / error
    p, higher = 2 * float(special.stdtr(n - 1, -abs(t))), float(special.stdtr(n - 1, -t))
    return FigureChange(factor=factor, t=t, p=p, p_higher=higher, cases=n)


def t_interval(values: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of independent values with Student's interval m ± t(.975, n-1) s / √n; open below two values."""
    seen = np.asarray(values, dtype=np.float64)
    n, mean = len(seen), _mean(seen)
    if mean is None or n < 2:
        return Estimate(mean, None, None)
    half = critical_t(n - 1, confidence) * float(seen.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half)


def log_t_interval(values: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of values that are not negative, with the interval m exp(± t(.975, n-1) s / (m √n)).

    Student's interval for log m by the delta method: never below zero, and better than the plain one for skewed
    figures. Open below two values and where all are zero.
    """
    plain = t_interval(values, confidence=confidence)
    if plain.value is None or plain.high is None or plain.value <= 0:
        return Estimate(plain.value, None, None)
    factor = math.exp((plain.high - plain.value) / plain.value)
    return Estimate(plain.value, plain.value / factor, plain.value * factor)


def order_interval(values: ArrayLike, q: float, *, confidence: float = CONFIDENCE) -> Estimate:
    """A quantile of n independent values with the interval between order statistics, exact by the binomial.

    Ends at ranks l and u, the innermost with P(Bin(n, q) < l) ≤ α/2 and P(Bin(n, q) ≥ u) ≤ α/2; open where there is
    no such rank (the median below six values). `planning.values_needed` says how many a quantile needs.
    """
    ranked = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ranked)
    if n == 0:
        return Estimate(None, None, None)
    tail = (1 - confidence) / 2
    low, high = _binomial_quantile(tail, n, q), _binomial_quantile(1 - tail, n, q) + 1
    return Estimate(
        _at_share(ranked, q),
        float(ranked[low - 1]) if low >= 1 else None,
        float(ranked[high - 1]) if high <= n else None,
    )


def clopper_pearson(share: float, n: float, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval (low, high) of a share over `n` units, which need not be whole (Korn and Graubard 1998).

    Beta quantiles: low of (x, n - x + 1), high of (x + 1, n - x), x = share n; 0 and 1 at the ends.
    """
    tail, x = (1 - confidence) / 2, share * n
    low = float(special.betaincinv(x, n - x + 1, tail)) if x > 0 else 0.0
    high = float(special.betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
    return low, high


def _at_share(ranked: Floats, share: float) -> float:
    """The smallest of sorted values with at least this share of all at or below it."""
    rank = math.ceil(share * len(ranked) - 1e-9)  # a rounding error of share × n is no observation
    return float(ranked[max(rank, 1) - 1])


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _binomial_quantile(p: float, n: int, q: float) -> int:
    """The smallest k with P(at most k of n) ≥ p, each a hit with chance q."""
    return int(np.searchsorted(special.bdtr(np.arange(n + 1), n, q), p))
