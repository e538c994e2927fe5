"""Empirical coverage of every interval, on simulated suites whose truth is known.

    python -m bench.simulate docs/statistics-coverage.md

Suites are drawn from seven kinds of plugin at 5, 20 and 108 cases and 3, 10 and 30 repeats, and given to the very
functions that the reports use. The table tells the worst and the mean coverage over the seven kinds. Seeded; exits
with 1 where a figure falls below its floor by more than three standard errors of the simulation.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.coverage_page import NIGHTS, REPEATS, SIZES, SUITES, TESTS, Table, fallen_short, page
from evalfarm.analysis.statistics.drift import against_bar
from evalfarm.analysis.statistics.figures import latency_quantile, log_t_interval
from evalfarm.analysis.statistics.judges import Labelled, post_stratified_rate
from evalfarm.analysis.statistics.of_k import pass_hat_k
from evalfarm.analysis.statistics.paired import case_counts, paired_difference, rerun_difference, rerun_test
from evalfarm.analysis.statistics.regression import NightlyRule, judge_night
from evalfarm.analysis.statistics.rule_check import nightly_odds
from evalfarm.analysis.statistics.single_runs import newcombe, tango
from evalfarm.analysis.statistics.stats import Estimate, effective_cases, flip_rate, pass_rate
from evalfarm.analysis.statistics.steadiness import disagreement, rarefied_flip_rate, repeat_spread
from evalfarm.contracts.verdict import Rate

FEW = min(SIZES)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """A kind of plugin: how the true pass rates of cases are spread."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    moments: Callable[[int], tuple[float, float]]  #: k -> E p^k and E (1 - p)^k

    def flips(self, k: int) -> float:
        """The true chance that k repeats of a case do not all end alike."""
        passing, failing = self.moments(k)
        return 1 - passing - failing


def beta_kind(mean: float, icc: float) -> Kind:
    weight = 1 / icc - 1
    a, b = mean * weight, (1 - mean) * weight

    def moments(k: int) -> tuple[float, float]:
        steps = np.arange(k)
        return float(np.prod((a + steps) / (a + b + steps))), float(np.prod((b + steps) / (a + b + steps)))

    return Kind(f"beta {mean} {icc}", lambda rng, shape: rng.beta(a, b, shape), moments)


def mixed_kind(rates: tuple[float, ...], weights: tuple[float, ...]) -> Kind:
    p, w = np.array(rates), np.array(weights)
    return Kind(
        "mixed",
        lambda rng, shape: rng.choice(p, size=shape, p=w),
        lambda k: (float(w @ p**k), float(w @ (1 - p) ** k)),
    )


KINDS = (
    beta_kind(0.877, 0.342),
    beta_kind(0.5, 0.3),
    beta_kind(0.98, 0.5),
    beta_kind(0.99, 0.3),
    beta_kind(0.95, 0.7),
    beta_kind(0.9, 0.05),
    mixed_kind((1.0, 0.0, 0.6), (0.70, 0.08, 0.22)),
)


Found = dict[str, list[float]]


def covers(interval: Rate | Estimate, truth: float) -> bool:
    """An open end reaches everywhere. Limits at 0 and 1 hold truths of 0 and 1 in spite of rounding."""
    low = -np.inf if interval.low is None else interval.low
    high = np.inf if interval.high is None else interval.high
    return bool(low - 1e-9 <= truth <= high + 1e-9)


def rates_cell(kind: Kind, cases: int, repeats: int, rng: np.random.Generator) -> Found:
    """Every interval of a rate, on one kind of plugin at one size."""
    found: Found = {}
    mean, fresh = kind.moments(1)[0], rng.random((SUITES, cases)) < 0.2
    first = kind.draw(rng, (SUITES, cases))
    second = 0.95 * np.where(fresh, kind.draw(rng, (SUITES, cases)), first)
    third, fourth = 0.9 * first, 0.9 * np.where(fresh, kind.draw(rng, (SUITES, cases)), first)
    a, b, c, d = (rng.binomial(repeats, p) for p in (first, second, third, fourth))
    r = np.full(cases, repeats)
    truths = {"flips": kind.flips(repeats), "d": kind.flips(2), "f3": kind.flips(3), "hat3": kind.moments(3)[0]}
    for at in range(SUITES):
        one, two = case_counts(a[at], r), case_counts(b[at], r)
        shift = float((second[at] - first[at]).mean())
        gaps = (a[at] - b[at] - c[at] + d[at]) / repeats
        held = {
            "pass": covers(pass_rate(a[at], r), mean),
            "flips": covers(flip_rate(a[at], r), truths["flips"]),
            "d": covers(disagreement(a[at], r), truths["d"]),
            "f3": covers(rarefied_flip_rate(a[at], r, 3).rate, truths["f3"]),
            "hat3": covers(pass_hat_k(a[at], r, 3).rate, truths["hat3"]),
            "paired": covers(paired_difference((b[at] - a[at]) / repeats).estimate, -0.05 * mean),
            "did": covers(paired_difference(gaps, limit=2.0).estimate, 0.05 * mean),
            "rerun": covers(rerun_difference(one, two)[0], shift),
            "bar": (against_bar(a[at], r, mean).at_least or 0.0) <= mean + 1e-9,
        }
        for name, value in held.items():
            found.setdefault(name, []).append(value)
    return found | family_cell(kind, cases, repeats, rng) | judged_cell(kind, cases, repeats, rng)


def family_cell(kind: Kind, cases: int, repeats: int, rng: np.random.Generator) -> Found:
    """The pass rate where cases come in families of five that share their true rate two times in three."""
    if cases <= FEW:
        return {}
    families = np.arange(cases) // 5
    shared = kind.draw(rng, (SUITES, int(families.max()) + 1))[:, families]
    p = np.where(rng.random((SUITES, cases)) < 2 / 3, shared, kind.draw(rng, (SUITES, cases)))
    passes, r, mean = rng.binomial(repeats, p), np.full(cases, repeats), kind.moments(1)[0]
    return {"family": [covers(pass_rate(passes[at], r, families), mean) for at in range(SUITES)]}


def judged_cell(kind: Kind, cases: int, repeats: int, rng: np.random.Generator) -> Found:
    """The corrected pass rate of a judge with FAR .10 and FRR .05, from 60 labels shared out over its verdicts."""
    if cases != max(SIZES):
        return {}
    p = kind.draw(rng, (SUITES, cases))
    passed = rng.random((SUITES, cases, repeats)) < p[:, :, None]
    judged = np.where(passed, rng.random(passed.shape) >= 0.05, rng.random(passed.shape) < 0.10)
    mean = kind.moments(1)[0]
    held: list[float] = []
    for at in range(SUITES):
        sides = [passed[at][judged[at]], passed[at][~judged[at]]]
        few = min(30, len(sides[1]))
        sizes = zip(sides, (60 - few, few), strict=True)
        labelled = [rng.choice(side, min(size, len(side)), replace=False) for side, size in sizes]
        shares = judged[at].mean(axis=1)
        varied = bool(shares.var() > 0)
        worth = effective_cases(shares, np.full(cases, float(repeats))) if varied else float(cases)
        counts = [Labelled(int(side.sum()), len(side)) for side in labelled]
        held.append(covers(post_stratified_rate(float(shares.mean()), worth, counts[0], counts[1]), mean))
    return {"judged": held}


def single_cell(kind: Kind, cases: int, rng: np.random.Generator) -> Found:
    """What to use where every case ran once."""
    found: Found = {}
    mean = kind.moments(1)[0]
    p = kind.draw(rng, (SUITES, cases))
    q = 0.95 * np.where(rng.random((SUITES, cases)) < 0.2, kind.draw(rng, (SUITES, cases)), p)
    a, b = rng.random(p.shape) < p, rng.random(p.shape) < q
    r = np.ones(cases)
    for at in range(SUITES):
        both, only_a, only_b = int((a[at] & b[at]).sum()), int((a[at] & ~b[at]).sum()), int((~a[at] & b[at]).sum())
        passes = int(a[at].sum())
        held = {
            "pass": covers(pass_rate(a[at], r), mean),
            "paired": covers(paired_difference(b[at] * 1.0 - a[at]).estimate, -0.05 * mean),
            "newcombe": covers(newcombe(both, only_a, only_b, cases - both - only_a - only_b), 0.05 * mean),
            "tango": covers(tango(only_a, only_b, cases), 0.05 * mean),
            "bar": (against_bar(a[at], r, mean).at_least or 0.0) <= mean + 1e-9,
            "wilson": (pass_rate(a[at], r, confidence=0.90).low or 0.0) <= mean,
            "jeffreys": bool(stats.beta.ppf(0.05, passes + 0.5, cases - passes + 0.5) <= mean),
        }
        for name, value in held.items():
            found.setdefault(name, []).append(value)
    return found


def figures_cell(between: float, cases: int, repeats: int, rng: np.random.Generator) -> Found:
    """Latency and tokens, log-normal: a share `between` of the variance of the logarithm lies between cases."""
    found: Found = {}
    names = np.repeat(np.arange(cases), repeats)
    for _ in range(SUITES):
        logs = np.sqrt(between) * rng.standard_normal(cases)[:, None]
        logs = logs + np.sqrt(1 - between) * rng.standard_normal((cases, repeats))
        latency = np.exp(0.6 * logs).ravel()
        median, tail = latency_quantile(names, latency, 0.5), latency_quantile(names, latency, 0.95)
        held = {
            "p50": covers(median, 1.0),
            "p95": covers(tail, float(np.exp(0.6 * stats.norm.ppf(0.95)))),
            "closed": tail.low is not None and tail.high is not None,
        }
        if cases > FEW:
            held |= {
                name: covers(log_t_interval(np.exp(sd * logs).mean(axis=1)), float(np.exp(sd**2 / 2)))
                for name, sd in (("moderate", 0.7), ("heavy", 1.5))
            }
        for name, value in held.items():
            found.setdefault(name, []).append(value)
    return found


def levels_cell(kind: Kind, cases: int, repeats: int, rng: np.random.Generator) -> Found:
    """How often the tests reject where nothing differs."""
    p = kind.draw(rng, (TESTS, cases))
    r = np.full(cases, repeats)
    labels = rng.random((TESTS, cases, repeats)) < p[:, :, None]
    again = rng.binomial(repeats, p)
    tests = [rerun_test(case_counts(labels[at].sum(axis=1), r), case_counts(again[at], r)) for at in range(TESTS)]
    return {
        "test": [test.two_sided_mid <= 0.05 for test in tests],
        "spread": [bool(repeat_spread(labels[at]).more_than_noise) for at in range(TESTS)],
    }


def nights_cell(nights: int, points: int, rng: np.random.Generator) -> Found:
    """Whether the nightly rule alerts, on 108 cases with 3 repeats a night of which the last is `points` worse."""
    kind, cases, rule = KINDS[0], max(SIZES), NightlyRule(most_nights=nights)
    alerts: list[float] = []
    for _ in range(NIGHTS if points == 0 else TESTS):
        before = kind.draw(rng, (cases,))
        after = before * (1 - points / 100 / kind.moments(1)[0])
        accepted = [case_counts(rng.binomial(3, before), np.full(cases, 3)) for _ in range(nights)]
        tonight = case_counts(rng.binomial(3, after), np.full(cases, 3))
        fresh = case_counts(rng.binomial(rule.confirm_repeats, after), np.full(cases, rule.confirm_repeats))
        screened = judge_night(accepted, tonight, rule=rule).verdict == "to confirm"
        alerts.append(screened and judge_night(accepted, tonight, fresh, rule).verdict == "regressed")
    odds = nightly_odds(cases, 3, points / 100, disagreement=kind.flips(2), rate=kind.moments(1)[0], rule=rule)
    return {"alerts": alerts, "said": [odds.power if points else odds.false_alarm]}


def cells() -> Iterator[tuple[str, int, int, Callable[[np.random.Generator], Found]]]:
    """Everything to simulate: table, cases and repeats (of nights: nights and points of the drop), and how."""
    for cases, repeats, kind in product(SIZES, REPEATS, KINDS):
        yield "rates", cases, repeats, partial(rates_cell, kind, cases, repeats)
        yield "levels", cases, repeats, partial(levels_cell, kind, cases, repeats)
    for cases, kind in product(SIZES, KINDS):
        yield "single", cases, 1, partial(single_cell, kind, cases)
    for cases, repeats, between in product(SIZES, REPEATS, (0.2, 0.5, 0.8)):
        yield "figures", cases, repeats, partial(figures_cell, between, cases, repeats)
    for nights, points in product((10, 5), (0, 3, 4, 5, 8)):
        yield "nights", nights, points, partial(nights_cell, nights, points)


def shares(place: int) -> dict[str, float]:
    """The share that held, for the cell at this place; its own seed, so that the order of work does not matter."""
    *_, simulate = list(cells())[place]
    found = simulate(np.random.default_rng(np.random.SeedSequence(20240711, spawn_key=(place,))))
    return {name: float(np.mean(held)) for name, held in found.items()}


def main(path: Path) -> int:
    tables: dict[str, Table] = {}
    planned = list(cells())
    with ProcessPoolExecutor(2) as pool:
        for (name, cases, repeats, _), found in zip(planned, pool.map(shares, range(len(planned))), strict=True):
            tables.setdefault(name, {}).setdefault((cases, repeats), []).append(found)
    path.write_text(page(tables), encoding="utf-8")
    short = fallen_short(tables)
    print("\n".join([f"written to {path}", *short]))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
