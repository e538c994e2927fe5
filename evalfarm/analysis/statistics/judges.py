"""A judge against human labels: how far its verdicts can be trusted, and the pass rate corrected for its errors.

A judge passes or fails an answer; a person labels some of the same answers. Labels must not be picked by the
judge's verdict unless the estimator reweights for it: `post_stratified_rate` does, `rogan_gladen` does not, and
with such labels covers .00 to .43 in simulation.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalfarm.analysis.statistics.stats import Estimate, critical_z, wilson
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import UsageError

LEAST_SENSE = 0.3  #: 1 - FAR - FRR below which a judge knows too little to be corrected for


@dataclass(frozen=True, slots=True)
class Labelled:
    """How often, among labelled answers of one kind, the count was so."""

    hits: int
    of: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Judge and human on the same answers. Kappa is None where both gave one and the same label throughout."""

    raw: float | None  #: share of equal labels
    kappa: Estimate
    kappa_se: float | None
    human_pass_share: float | None
    false_accept: Rate  #: judge PASS among human FAIL
    false_reject: Rate  #: judge FAIL among human PASS


def agreement(both_pass: int, judge_fails: int, judge_passes: int, both_fail: int) -> Agreement:
    """Kappa, raw agreement and the two error rates from the four counts.

    `judge_fails`: human PASS, judge FAIL; `judge_passes`: human FAIL, judge PASS. κ = (p_o - p_e) / (1 - p_e) with the
    large-sample standard error of Fleiss, Cohen and Everitt (1969), clipped to [-1, 1]; error rates with Wilson
    intervals. Nothing labelled gives None throughout; a plugin that is nearly always right leaves few human FAILs,
    and the interval of `false_accept` shows it.
    """
    table = np.array([[both_pass, judge_fails], [judge_passes, both_fail]], dtype=np.float64)
    total = float(table.sum())
    kappa, error = _kappa(table / total) if total else (None, None)
    error = None if error is None else error / math.sqrt(total)
    reach = None if error is None else critical_z() * error
    return Agreement(
        raw=float(np.trace(table)) / total if total else None,
        kappa=Estimate(kappa, None, None)
        if kappa is None or reach is None
        else Estimate(kappa, max(-1.0, kappa - reach), min(1.0, kappa + reach)),
        kappa_se=error,
        human_pass_share=float(table[0].sum()) / total if total else None,
        false_accept=_share(judge_passes, judge_passes + both_fail),
        false_reject=_share(judge_fails, judge_fails + both_pass),
    )


def post_stratified_rate(judged: float, effective: float, passed: Labelled, failed: Labelled) -> Estimate:
    """The pass rate that people would give, from labels drawn at random within this run's judge verdicts.

    p = q A + (1 - q) B: q = `judged`, the judge's pass rate, worth `effective` cases (`stats.effective_cases`);
    A and B the human pass shares among the labelled answers that the judge passed and failed. Interval: with
    A' = (k + 1) / (m + 2), B' alike and q' = (q n + z²/2) / (n + z²), centre q' A' + (1 - q') B', variance
    q² A'(1-A') / (m₁+2) + (1-q)² B'(1-B') / (m₀+2) + (A'-B')² q'(1-q') / (n + z²), clipped to [0, 1].
    Without labels on a side that occurs there is no value.
    """
    if (passed.of == 0 and judged > 0) or (failed.of == 0 and judged < 1):
        return Estimate(None, None, None)
    z = critical_z()
    right = passed.hits / passed.of if passed.of else 0.0
    missed = failed.hits / failed.of if failed.of else 0.0
    a, b = (passed.hits + 1) / (passed.of + 2), (failed.hits + 1) / (failed.of + 2)
    q = (judged * effective + z * z / 2) / (effective + z * z)
    variance = (
        judged**2 * a * (1 - a) / (passed.of + 2)
        + (1 - judged) ** 2 * b * (1 - b) / (failed.of + 2)
        + (a - b) ** 2 * q * (1 - q) / (effective + z * z)
    )
    return _around(judged * right + (1 - judged) * missed, q * a + (1 - q) * b, z * math.sqrt(variance))


def rogan_gladen(judged: Labelled, kept: Labelled, caught: Labelled) -> Estimate:
    """The pass rate corrected by a judge's error rates that another run measured (Rogan and Gladen 1978).

    p = (q + S - 1) / (E + S - 1): q = `judged`, passes of trials; E = `kept`, judge PASS among human PASS;
    S = `caught`, judge FAIL among human FAIL. Interval of Lang and Reiczigel (2014), clipped to [0, 1].
    Raises UsageError where E + S - 1 is below `LEAST_SENSE`: such a judge hardly tells passes from fails.
    """
    sense = kept.hits / kept.of + caught.hits / caught.of - 1 if kept.of and caught.of else 0.0
    if sense < LEAST_SENSE or judged.of == 0:
        raise UsageError(
            f"a judge with 1 - FAR - FRR = {sense:.2f} cannot be corrected for; {LEAST_SENSE} is the least",
            hint="label more answers, or mend the rubric",
        )
    z = critical_z()
    n = judged.of + z * z
    q = (judged.hits + z * z / 2) / n
    e, s = (kept.hits + 1) / (kept.of + 2), (caught.hits + 1) / (caught.of + 2)
    centre = (q + s - 1) / (e + s - 1)
    of_e, of_s = e * (1 - e) / (kept.of + 2), s * (1 - s) / (caught.of + 2)
    shift = 2 * z * z * (centre * of_e - (1 - centre) * of_s)
    error = math.sqrt(q * (1 - q) / n + centre**2 * of_e + (1 - centre) ** 2 * of_s) / (e + s - 1)
    value = (judged.hits / judged.of + caught.hits / caught.of - 1) / sense
    return _around(min(1.0, max(0.0, value)), centre + shift, z * error)


def prediction_powered_mean(
    human: ArrayLike, judge: ArrayLike, unlabelled: ArrayLike, *, tuned: bool = True
) -> Estimate:
    """The mean of scores that need not be yes or no, from few human scores and many of a judge (PPI++).

    λ mean(unlabelled) + mean(human - λ judge) ± z √(λ² var(unlabelled) / N + var(human - λ judge) / n), the λ that
    minimises the variance, in [0, 1], or 1 untuned (Angelopoulos et al. 2023). `human` and `judge` are aligned over n
    answers labelled at random; use it from 50 of them on. The interval is not clipped: scores have any range.
    """
    y, f, more = (np.asarray(scores, dtype=np.float64) for scores in (human, judge, unlabelled))
    weight = _power_tuning(y, f, more) if tuned else 1.0
    value = weight * float(more.mean()) + float((y - weight * f).mean())
    variance = weight**2 * float(more.var()) / len(more) + float((y - weight * f).var()) / len(y)
    half = critical_z() * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def _kappa(shares: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """κ and its standard error times √n."""
    human, judge = shares.sum(axis=1), shares.sum(axis=0)
    expected = float(human @ judge)
    if expected == 1:
        return None, None
    kappa = (float(np.trace(shares)) - expected) / (1 - expected)
    alike = float((np.diag(shares) * (1 - (human + judge) * (1 - kappa)) ** 2).sum())
    crossed = (judge[:, None] + human[None, :]) ** 2 * shares
    apart = (1 - kappa) ** 2 * float(crossed.sum() - np.trace(crossed))
    variance = (alike + apart - (kappa - expected * (1 - kappa)) ** 2) / (1 - expected) ** 2
    return kappa, math.sqrt(max(0.0, variance))


def _share(hits: int, of: int) -> Rate:
    if of == 0:
        return Rate(value=None, low=None, high=None)
    low, high = wilson(hits / of, of, critical_z())
    return Rate(value=hits / of, low=low, high=high)


def _around(value: float, centre: float, half: float) -> Estimate:
    """Clipped to [0, 1]; the shrunken centre may lie off the value, which the interval holds in any case."""
    return Estimate(value, min(value, max(0.0, centre - half)), max(value, min(1.0, centre + half)))


def _power_tuning(y: NDArray[np.float64], f: NDArray[np.float64], more: NDArray[np.float64]) -> float:
    """λ = cov(human, judge) / ((1 + n / N) var(all the judge's scores)), in [0, 1]; 0 if those never vary."""
    pooled = float(np.concatenate([f, more]).var(ddof=1))
    covariance = float(((y - y.mean()) * (f - f.mean())).mean())
    return min(1.0, max(0.0, covariance / ((1 + len(y) / len(more)) * pooled))) if pooled > 0 else 0.0
