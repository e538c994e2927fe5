"""Watching a rate: against a fixed bar, trial by trial, and night by night for what falls too slowly to alarm."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from evalfarm.analysis.statistics.figures import clopper_pearson
from evalfarm.analysis.statistics.paired import CaseCounts, rerun_test
from evalfarm.analysis.statistics.regression import pooled
from evalfarm.analysis.statistics.stats import (
    CONFIDENCE,
    counted,
    critical_t,
    critical_z,
    effective_cases,
    family_index,
)

BarVerdict = Literal["met", "missed", "too little evidence"]

ALARM = 365.0  #: the detector's level: at least so many nights on average before it alarms on nothing
_MOST_CASES = 1_000_000  #: a rate that takes more is too near to the bar
_LARGEST = 700.0  #: exp of more does not fit a float; evidence beyond it changes nothing
SIZES = (0.5, 1.0, 2.0)  #: drops looked for, in standard errors a night


@dataclass(frozen=True, slots=True)
class BarCheck:
    """A pass rate against a fixed bar, with one-sided limits at the confidence asked for."""

    value: float | None
    at_least: float | None
    at_most: float | None
    verdict: BarVerdict
    cases_needed: int | None = None  #: like these that would decide, were the rate seen the true one; None: no number


@dataclass(frozen=True, slots=True)
class Drift:
    """The slow-drift detector since re-baselining."""

    levels: tuple[float, ...]  #: after each night but the first
    alarm_night: int | None  #: place of the first alarming night in the list handed in; None: none


@dataclass(frozen=True, slots=True)
class AnytimeTest:
    """A stream of one case's trials against an expected rate, valid whenever one looks and stops."""

    e_value: float  #: evidence against the expected rate; at least 1 / α rejects it at α
    low: float
    high: float


def against_bar(
    passes: ArrayLike,
    decided: ArrayLike,
    bar: float,
    families: ArrayLike | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> BarCheck:
    """Whether the pass rate on cases like these is at least `bar`, "with 95 % confidence".

    One-sided Clopper-Pearson limits at the effective number of cases (`stats.effective_cases`) × (z / t)², the
    correction for degrees of freedom of Korn and Graubard (1998). In simulation (docs/statistics-coverage.md) the
    one-sided Wilson limit claims too much in up to 8 % of suites and Jeffreys' in up to 13 %, this one in up to 6 %
    where 5 % are allowed, mostly in far fewer. Met: the lower limit reaches the bar; missed:
    the upper one stays below it. No decided trial: too little evidence. Raises ValueError as `stats.pass_rate` does.
    """
    c, r = counted(passes, decided)
    shown = r > 0
    if not shown.any():
        return BarCheck(None, None, None, "too little evidence")
    groups = family_index(families, len(r))[shown]
    shares, both_sides = c[shown] / r[shown], 2 * confidence - 1
    units, value = len(np.unique(groups)), float(shares.mean())
    varied = units > 1 and not (units == len(shares) and bool(np.all((shares == 0) | (shares == 1)))) and 0 < value < 1
    each = effective_cases(shares, r[shown], groups) / units if varied else 1.0

    def limits(count: int) -> tuple[float, float]:
        narrowing = critical_z(both_sides) / critical_t(count - 1, both_sides) if varied else 1.0
        return clopper_pearson(value, count * each * narrowing**2, confidence=both_sides)

    low, high = limits(units)
    verdict: BarVerdict = "met" if low >= bar else "missed" if high < bar else "too little evidence"
    needed = None if verdict != "too little evidence" else _units_to_decide(limits, bar, units)
    return BarCheck(value, low, high, verdict, None if needed is None else math.ceil(needed * len(shares) / units))


def _units_to_decide(limits: Callable[[int], tuple[float, float]], bar: float, undecided: int) -> int | None:
    """The fewest cases (families) whose limits leave the bar out, more than so many."""
    decides = 2 * undecided
    while not _leaves_out(limits(decides), bar):
        undecided, decides = decides, 2 * decides
        if decides > _MOST_CASES:
            return None
    while decides - undecided > 1:
        middle = (undecided + decides) // 2
        if _leaves_out(limits(middle), bar):
            decides = middle
        else:
            undecided = middle
    return decides


def _leaves_out(limits: tuple[float, float], bar: float) -> bool:
    return limits[0] >= bar or limits[1] < bar


def drift(nights: Sequence[CaseCounts], *, alarm: float = ALARM) -> Drift:
    """The Shiryaev-Roberts e-detector over nights of the same cases, oldest first since re-baselining.

    Each night's exact (not mid-p) lower tail of `rerun_test` against all earlier nights, z = Φ⁻¹(1 - p), goes into
    `shiryaev_roberts`; the first level of at least `alarm` alarms. Exact tails are conservative, so the run length to
    a false alarm is at least `alarm` nights on average while nights are exchangeable (Shin, Ramdas and Rinaldo 2023).
    Fewer than two nights: nothing to say yet.
    """
    p_values = [rerun_test(pooled(nights[:night]), nights[night]).lower for night in range(1, len(nights))]
    levels = shiryaev_roberts([float(stats.norm.isf(p)) for p in p_values])
    alarming = (night for night, level in enumerate(levels, start=1) if level >= alarm)
    return Drift(levels=levels, alarm_night=next(alarming, None))


def shiryaev_roberts(z: Sequence[float], sizes: Sequence[float] = SIZES) -> tuple[float, ...]:
    """R_λ ← (1 + R_λ) exp(λ z - λ² / 2) for each drop size λ; the mean over them after each z. -∞ is a valid z."""
    state, levels = np.zeros(len(sizes)), []
    rates = np.asarray(sizes, dtype=np.float64)
    for drop in z:
        state = (1 + state) * np.exp(rates * drop - rates**2 / 2)
        levels.append(float(state.mean()))
    return tuple(levels)


def anytime_test(
    passed: int,
    failed: int,
    expected: float,
    *,
    prior: tuple[float, float] = (1.0, 1.0),
    confidence: float = CONFIDENCE,
) -> AnytimeTest:
    """Beta-binomial mixture martingale M(p) = B(a + s, b + f) / (B(a, b) p^s (1 - p)^f) at `expected`, in (0, 1).

    For one case, or trials that are alike and independent; not for pooled cases. The interval is {p: M(p) < 1 / α},
    a confidence sequence: it may be looked at after every trial. Without a trial M = 1 and it is [0, 1].
    """
    a, b = prior
    gained = float(special.betaln(a + passed, b + failed) - special.betaln(a, b))

    def evidence(rate: float) -> float:
        return gained - float(special.xlogy(passed, rate) + special.xlog1py(failed, -rate))

    limit = -math.log(1 - confidence)
    if passed + failed == 0:
        return AnytimeTest(1.0, 0.0, 1.0)
    seen = passed / (passed + failed)
    return AnytimeTest(
        e_value=math.exp(min(evidence(expected), _LARGEST)),
        low=_crossing(lambda rate: evidence(rate) - limit, 0.0, seen) if passed else 0.0,
        high=_crossing(lambda rate: evidence(rate) - limit, 1.0, seen) if failed else 1.0,
    )


def _crossing(function: Callable[[float], float], edge: float, inside: float) -> float:
    """Where the function, infinite at `edge` and negative at `inside`, is zero."""
    near = edge + (inside - edge) * 1e-15
    return float(optimize.brentq(function, near, inside, xtol=1e-14)) if function(near) > 0 else edge
