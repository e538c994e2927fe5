"""How often the nightly rule errs, worked out for a suite's size and tried on the suite's own repeats."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from evalfarm.analysis.statistics.paired import case_counts, rerun_test
from evalfarm.analysis.statistics.planning import ALPHA
from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.analysis.statistics.stats import Floats
from evalfarm.analysis.statistics.steadiness import NOISE_LEVEL, repeat_spread
from evalfarm.errors import UsageError

_GRID = 256  #: midpoints per axis of the numerical averages; twice as many change no printed digit


@dataclass(frozen=True, slots=True)
class Odds:
    """What a nightly rule does to a suite of this size."""

    false_alarm: float  #: per night on which nothing changed
    power: float  #: to alert on the night of the drop


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """An A/A check: some repeats of one configuration against the others, in many ways."""

    splits: int
    alarms: int
    stated: float  #: the share of alarms that the level allows
    p_repeats_alike: float  #: Cochran's Q over the repeats

    @property
    def held(self) -> bool:
        """No more alarms than stated, or repeats that lie no further apart than rerun noise puts them.

        The splits share their trials, so one set of repeats can give more alarms than stated by chance; Q says
        whether it was chance.
        """
        return self.alarms <= self.stated * self.splits or self.p_repeats_alike >= NOISE_LEVEL


def nightly_odds(
    cases: int, repeats: int, drop: float, *, disagreement: float, rate: float, rule: NightlyRule = NIGHTLY
) -> Odds:
    """The rule's false-alarm rate and its power against a drop (> 0) with a full baseline; no draws.

    Normal approximation: the drop seen by screen and confirm run together is Y ~ N(drop, w₂), that seen by the screen
    Y plus independent noise of variance w₁ - w₂; w = (D' / K + D / B) / 2n for K new and B baseline trials a case,
    D' being D scaled by p (1 - p) to the dropped rate, and φ averaged over χ² / (J - 1). At 108 cases with D = .142,
    rate .877 and 3 repeats: .0027 false alarms, power .50, .78 and .93 against 3, 4 and 5 points, where simulated
    nights gave .0025, .48, .75 and .90 (docs/statistics-coverage.md): the power is told a few points too high.
    A drop beyond the rate counts as one to nothing.
    """
    fallen = max(0.0, rate - drop)
    noise = (disagreement, disagreement * fallen * (1 - fallen) / (rate * (1 - rate)) if 0 < rate < 1 else disagreement)
    return Odds(
        false_alarm=_alarm_rate(cases, repeats, 0.0, (disagreement, disagreement), rule),
        power=_alarm_rate(cases, repeats, rate - fallen, noise, rule),
    )


def self_check(
    labels: ArrayLike, rng: np.random.Generator, *, level: float = ALPHA, most_splits: int = 200
) -> SelfCheck:
    """The one-sided test of the nightly rule between halves of one run's repeats, which must seldom alarm.

    `labels`: n cases × R repeats, 1 passed, 0 failed, NaN not decided. Every split of the repeats into ⌊R/2⌋ and the
    rest, or `most_splits` drawn from `rng`; an alarm is a mid-p of `rerun_test` of at most `level`.
    Raises UsageError with fewer than two repeats or no case decided in all of them.
    """
    table = np.asarray(labels, dtype=np.float64)
    spread = repeat_spread(table)
    if spread.p is None:
        raise UsageError(
            f"a self-check of {table.shape[1]} repeats over {spread.cases} whole cases shows nothing",
            hint="give at least two repeats and one case that is decided in each",
        )
    found = [_split_p(table, chosen) for chosen in _splits(table.shape[1], rng, most_splits)]
    return SelfCheck(
        splits=len(found),
        alarms=sum(p <= level for p in found),
        stated=level,
        p_repeats_alike=spread.p,
    )


def _alarm_rate(cases: int, repeats: int, drop: float, noise: tuple[float, float], rule: NightlyRule) -> float:
    before, after = noise
    old = repeats * rule.most_nights
    once, both = repeats, repeats + rule.confirm_repeats
    middles = (np.arange(_GRID) + 0.5) / _GRID
    spread = np.sqrt(np.maximum(1.0, stats.chi2.ppf(middles, rule.most_nights - 1) / (rule.most_nights - 1)))

    def tested(new: int) -> float:
        """The standard error that the test reckons with: both sides pooled, as if nothing had changed."""
        mixed = (after * new + before * old) / (new + old)
        return math.sqrt(mixed / (2 * cases) * (1 / new + 1 / old))

    w_once, w_both = ((after / new + before / old) / (2 * cases) for new in (once, both))
    if w_both == 0:
        return float(drop >= rule.least_drop and drop > 0)
    screen = float(stats.norm.isf(rule.screen)) * spread * tested(once)
    confirm = np.maximum(float(stats.norm.isf(rule.confirm)) * spread * tested(both), rule.least_drop)
    tail = stats.norm.sf(confirm, drop, math.sqrt(w_both))
    seen = stats.norm.isf(tail[:, None] * middles[None, :], drop, math.sqrt(w_both))
    passed_screen: Floats = stats.norm.cdf((seen - screen[:, None]) / math.sqrt(w_once - w_both))
    return float((tail * passed_screen.mean(axis=1)).mean())


def _splits(repeats: int, rng: np.random.Generator, most: int) -> Iterator[NDArray[np.intp]]:
    """Places of the repeats that stand for tonight: each choice once if there are few, else drawn."""
    size = repeats // 2
    if math.comb(repeats, size) <= most:
        return (np.array(chosen, dtype=np.intp) for chosen in combinations(range(repeats), size))
    return (rng.permutation(repeats)[:size].astype(np.intp) for _ in range(most))


def _split_p(table: Floats, chosen: NDArray[np.intp]) -> float:
    new = np.zeros(table.shape[1], dtype=bool)
    new[chosen] = True
    shown = ~np.isnan(table)
    passed = np.where(shown, table, 0)
    baseline, tonight = (case_counts(passed[:, side].sum(axis=1), shown[:, side].sum(axis=1)) for side in (~new, new))
    return rerun_test(baseline, tonight).lower_mid
