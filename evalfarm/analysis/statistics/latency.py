"""A quantile of latency with an interval that is left open where nothing bounds it.

As in `stats` the case is the unit: `cases` names the case of each trial, aligned with its latency.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evalfarm.analysis.statistics.stats import CONFIDENCE, Estimate, Floats, most_effective

_LEAST_LOOK = 64  #: ranks looked at together on the way from the quantile to an end
_LOOK = 1 / 64  #: or this share of all, where that is more
_STRETCH = 64  #: ranks that are passed over together where none of them can be an end
_EQUAL = 1e-12  #: a variance between cases below this is rounding


def latency_quantile(
    cases: ArrayLike, latency_s: ArrayLike, q: float, *, limit_s: float = math.inf, confidence: float = CONFIDENCE
) -> Estimate:
    """A quantile over N trials in ascending order, in their unit, with its interval for new cases.

    The value is the inverse ECDF. For an observed x let F(x) be the share of all trials at or below it, I_i(x) that of
    case i's trials, v = var(I_i, ddof=1) / n, and n_eff = F(1 - F) / v, capped as in `stats.pass_rate` (n where v = 0).
    The interval ends at the observed values nearest to the quantile that the data refuse: above, the first x whose
    Clopper-Pearson lower limit for F(x) over n_eff trials reaches q; below, the first x for which the upper limit of
    the share *under* x does not exceed q. This is Woodruff's (1952) interval with Korn and Graubard's (1998) limits,
    inverted at every x instead of once at the quantile: where few cases fill the tail, the variance at the quantile
    says too little of that further out, and the upper end of p95 over twenty cases was passed in 9 % of suites
    (docs/statistics.md). An end that no observed value gives is open; no bound is made up.

    A trial that was cut off at the time limit is infinite, longer than every other; `limit_s` is the shortest limit.
    Where the value falls on such a trial there is none, and a low end that does is the limit, which the quantile
    exceeds. No trial gives None thrice; one case always has an open interval.
    """
    ranked = np.asarray(latency_s, dtype=np.float64)
    total = len(ranked)
    if total == 0:
        return Estimate(None, None, None)
    at = rank(total, q)
    shares = _Shares(_numbered(np.asarray(cases)), ranked)
    tail = (1 - confidence) / 2
    low, high = _low_end(shares, at, q, tail), _high_end(shares, at, q, tail)
    return Estimate(
        _finite(float(ranked[at])),
        None if low is None else min(float(ranked[low]), limit_s),
        None if high is None else _finite(float(ranked[high])),
    )


def rank(total: int, share: float) -> int:
    """The place, from 0, of the smallest of so many sorted values with at least this share at or below it."""
    # A rounding error of share × n is no observation.
    return max(math.ceil(share * total - 1e-9), 1) - 1


class _Shares:
    """The shares F(x) and I_i(x), rank by rank."""

    def __init__(self, index: NDArray[np.intp], ranked: Floats) -> None:
        self.ranked = ranked
        self.look = max(_LEAST_LOOK, int(len(ranked) * _LOOK))
        self._index = index
        self._trials = np.bincount(index).astype(np.float64)
        self.cases = len(self._trials)
        self._most = most_effective(self._trials, np.arange(self.cases))

    def effective(self, first: int, last: int) -> tuple[Floats, Floats]:
        """F and n_eff at the ranks `first` … `last - 1`."""
        n = self.cases
        before = np.bincount(self._index[:first], minlength=n)
        inside = self._index[first:last]
        r, shares = self._trials[inside], before / self._trials
        seen = before[inside] + _earlier_alike(inside)
        total = shares.sum() + np.cumsum(1 / r)
        squares = (shares**2).sum() + np.cumsum((2 * seen + 1) / r**2)
        f = np.arange(first + 1, last + 1) / len(self.ranked)
        between = (squares - total**2 / n) / (n - 1) if n > 1 else np.zeros(len(f))
        varied = between > _EQUAL
        worth = np.where(varied, np.minimum(f * (1 - f) * n / np.where(varied, between, 1.0), self._most), float(n))
        return f, worth

    def last_alike(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of these ranks is the last of its value: equal values have one share, which is that of the last."""
        ends = np.ones(last - first, dtype=bool)
        inner = min(last, len(self.ranked) - 1)
        ends[: inner - first] = self.ranked[first + 1 : inner + 1] > self.ranked[first:inner]
        return ends


def _high_end(shares: _Shares, at: int, q: float, tail: float) -> int | None:
    """The rank of the first value from the quantile on that surely has q or more at or below it."""
    first, total = at, len(shares.ranked)
    while first < total:
        last = min(total, first + shares.look)
        f, worth = shares.effective(first, last)
        refused = shares.last_alike(first, last) & _surely_above(f, worth, q, tail)
        if refused.any():
            return first + int(np.argmax(refused))
        first = last
    return None


def _low_end(shares: _Shares, at: int, q: float, tail: float) -> int | None:
    """The rank of the last value up to the quantile that surely has no more than q under it."""
    last = int(np.searchsorted(shares.ranked, shares.ranked[at]))
    while last > 0:
        first = max(0, last - shares.look)
        f, worth = shares.effective(first, last)
        refused = np.flatnonzero(shares.last_alike(first, last) & _surely_above(1 - f, worth, 1 - q, tail))
        if len(refused):
            return first + int(refused[-1]) + 1
        last = first
    return 0 if (1 - q) ** shares.cases <= tail else None


def _surely_above(f: Floats, worth: Floats, q: float, tail: float) -> NDArray[np.bool_]:
    """Where the Clopper-Pearson lower limit of a share f ≥ q over so many trials reaches q.

    That is P(Beta(f w, (1 - f) w + 1) ≤ q) ≤ tail. It falls in f and in w, so a stretch whose largest f and w together
    do not reach q holds none that does, and is not looked at rank by rank: most of the time went there.
    """
    starts = np.arange(0, len(f), _STRETCH)
    most_f, most_worth = np.maximum.reduceat(f, starts), np.maximum.reduceat(worth, starts)
    near = np.repeat(_below(most_f, most_worth, q) <= tail, _STRETCH)[: len(f)]
    near[near] = _below(f[near], worth[near], q) <= tail
    return near


def _below(f: Floats, worth: Floats, q: float) -> Floats:
    below: Floats = special.betainc(f * worth, (1 - f) * worth + 1, q)
    return below


def _numbered(cases: NDArray[Any]) -> NDArray[np.intp]:
    """The cases as numbers from 0, each of which occurs."""
    if cases.dtype.kind != "u":
        return np.unique(cases, return_inverse=True)[1].astype(np.intp)
    # A million places of cells are not sorted anew for each quantile.
    numbers: NDArray[np.intp] = (np.cumsum(np.bincount(cases) > 0) - 1)[cases]
    return numbers


def _earlier_alike(index: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each entry, how many before it are equal to it."""
    order = np.argsort(index, kind="stable")
    alike = index[order]
    starts = np.searchsorted(alike, alike)
    earlier = np.empty(len(index), dtype=np.intp)
    earlier[order] = np.arange(len(index)) - starts
    return earlier


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
