"""Empirical coverage of every interval, on simulated suites whose truth is known.

    python -m bench.simulate docs/statistics-coverage.md

Suites are drawn from seven kinds of plugin at 5, 20 and 108 cases and 3, 10 and 30 repeats, and given to the very
functions that the reports use. The table tells the worst and the mean coverage over the seven kinds. What falls below
its floor is simulated again on ten times as many suites, and told from these. Seeded; exits with 1 where a figure is
then still below its floor by more than the error of the simulations allows.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats

from bench.coverage_page import AGAIN, NIGHTS, REPEATS, SIZES, SUITES, TESTS, Table, below_floor, fallen_short, page
from bench.kinds import KINDS, Kind
from evalfarm.analysis.statistics.drift import against_bar
from evalfarm.analysis.statistics.figures import log_t_interval
from evalfarm.analysis.statistics.judges import Labelled, post_stratified_rate
from evalfarm.analysis.statistics.latency import latency_quantile
from evalfarm.analysis.statistics.of_k import pass_hat_k
from evalfarm.analysis.statistics.paired import case_counts, paired_difference, rerun_difference, rerun_test
from evalfarm.analysis.statistics.regression import NightlyRule, judge_night
from evalfarm.analysis.statistics.rule_check import nightly_odds
from evalfarm.analysis.statistics.single_runs import newcombe, tango
from evalfarm.analysis.statistics.stats import Estimate, effective_cases, flip_rate, pass_rate
from evalfarm.analysis.statistics.steadiness import disagreement, rarefied_flip_rate, repeat_spread
from evalfarm.contracts.verdict import Rate

FEW = min(SIZES)


Found = dict[str, list[float]]
Names = frozenset[str]  #: of the figures to simulate
ALL: Names = frozenset()


def covers(interval: Rate | Estimate, truth: float) -> bool:
    """An open end reaches everywhere. Limits at 0 and 1 hold truths of 0 and 1 in spite of rounding."""
    low = -np.inf if interval.low is None else interval.low
    high = np.inf if interval.high is None else interval.high
    return bool(low - 1e-9 <= truth <= high + 1e-9)


def over_suites(held: dict[str, Callable[[int], float]], names: Names) -> Found:
    """Suite by suite, whether each figure that is asked for held."""
    return {name: [holds(at) for at in range(SUITES)] for name, holds in held.items() if not names or name in names}


def rates_cell(kind: Kind, cases: int, repeats: int, names: Names, rng: np.random.Generator) -> Found:
    """Every interval of a rate, on one kind of plugin at one size."""
    mean, fresh = kind.moments(1)[0], rng.random((SUITES, cases)) < 0.2
    first = kind.draw(rng, (SUITES, cases))
    second = 0.95 * np.where(fresh, kind.draw(rng, (SUITES, cases)), first)
    third, fourth = 0.9 * first, 0.9 * np.where(fresh, kind.draw(rng, (SUITES, cases)), first)
    a, b, c, d = (rng.binomial(repeats, p) for p in (first, second, third, fourth))
    r, gaps, shifts = np.full(cases, repeats), (a - b - c + d) / repeats, (second - first).mean(axis=1)
    held: dict[str, Callable[[int], float]] = {
        "pass": lambda at: covers(pass_rate(a[at], r), mean),
        "flips": lambda at: covers(flip_rate(a[at], r), kind.flips(repeats)),
        "d": lambda at: covers(disagreement(a[at], r), kind.flips(2)),
        "f3": lambda at: covers(rarefied_flip_rate(a[at], r, 3).rate, kind.flips(3)),
        "hat3": lambda at: covers(pass_hat_k(a[at], r, 3).rate, kind.moments(3)[0]),
        "paired": lambda at: covers(paired_difference((b[at] - a[at]) / repeats).estimate, -0.05 * mean),
        "did": lambda at: covers(paired_difference(gaps[at], limit=2.0).estimate, 0.05 * mean),
        "rerun": lambda at: covers(rerun_difference(case_counts(a[at], r), case_counts(b[at], r))[0], shifts[at]),
        "bar": lambda at: (against_bar(a[at], r, mean).at_least or 0.0) <= mean + 1e-9,
    }
    return over_suites(held, names)


def family_cell(kind: Kind, cases: int, repeats: int, _names: Names, rng: np.random.Generator) -> Found:
    """The pass rate where cases come in families of five that share their true rate two times in three."""
    families = np.arange(cases) // 5
    shared = kind.draw(rng, (SUITES, int(families.max()) + 1))[:, families]
    p = np.where(rng.random((SUITES, cases)) < 2 / 3, shared, kind.draw(rng, (SUITES, cases)))
    passes, r, mean = rng.binomial(repeats, p), np.full(cases, repeats), kind.moments(1)[0]
    return {"family": [covers(pass_rate(passes[at], r, families), mean) for at in range(SUITES)]}


def judged_cell(kind: Kind, cases: int, repeats: int, _names: Names, rng: np.random.Generator) -> Found:
    """The corrected pass rate of a judge with FAR .10 and FRR .05, from 60 labels shared out over its verdicts."""
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


def single_cell(kind: Kind, cases: int, names: Names, rng: np.random.Generator) -> Found:
    """What to use where every case ran once."""
    mean = kind.moments(1)[0]
    p = kind.draw(rng, (SUITES, cases))
    q = 0.95 * np.where(rng.random((SUITES, cases)) < 0.2, kind.draw(rng, (SUITES, cases)), p)
    a, b = rng.random(p.shape) < p, rng.random(p.shape) < q
    r = np.ones(cases)
    both, only_a, only_b = (a & b).sum(axis=1), (a & ~b).sum(axis=1), (~a & b).sum(axis=1)
    passes = a.sum(axis=1)

    def newcombe_of(at: int) -> Estimate:
        cells = (int(counts[at]) for counts in (both, only_a, only_b, cases - both - only_a - only_b))
        return newcombe(*cells)

    held: dict[str, Callable[[int], float]] = {
        "pass": lambda at: covers(pass_rate(a[at], r), mean),
        "paired": lambda at: covers(paired_difference(b[at] * 1.0 - a[at]).estimate, -0.05 * mean),
        "newcombe": lambda at: covers(newcombe_of(at), 0.05 * mean),
        "tango": lambda at: covers(tango(int(only_a[at]), int(only_b[at]), cases), 0.05 * mean),
        "bar": lambda at: (against_bar(a[at], r, mean).at_least or 0.0) <= mean + 1e-9,
        "wilson": lambda at: (pass_rate(a[at], r, confidence=0.90).low or 0.0) <= mean,
        "jeffreys": lambda at: bool(stats.beta.ppf(0.05, passes[at] + 0.5, cases - passes[at] + 0.5) <= mean),
    }
    return over_suites(held, names)


def figures_cell(between: float, cases: int, repeats: int, names: Names, rng: np.random.Generator) -> Found:
    """Latency and tokens, log-normal: a share `between` of the variance of the logarithm lies between cases."""
    logs = np.sqrt(between) * rng.standard_normal((SUITES, cases, 1))
    logs = logs + np.sqrt(1 - between) * rng.standard_normal((SUITES, cases, repeats))
    case = np.repeat(np.arange(cases), repeats)

    def quantile(at: int, q: float) -> Estimate:
        trials = np.exp(0.6 * logs[at]).ravel()
        order = np.argsort(trials)
        return latency_quantile(case[order], trials[order], q)

    def closed(at: int) -> bool:
        tail = quantile(at, 0.95)
        return tail.low is not None and tail.high is not None

    held: dict[str, Callable[[int], float]] = {
        "p50": lambda at: covers(quantile(at, 0.5), 1.0),
        "p95": lambda at: covers(quantile(at, 0.95), float(np.exp(0.6 * stats.norm.ppf(0.95)))),
        "closed": closed,
    }
    if cases > FEW:
        held |= {
            "moderate": lambda at: covers(
                log_t_interval(np.exp(0.7 * logs[at]).mean(axis=1)), float(np.exp(0.7**2 / 2))
            ),
            "heavy": lambda at: covers(log_t_interval(np.exp(1.5 * logs[at]).mean(axis=1)), float(np.exp(1.5**2 / 2))),
        }
    return over_suites(held, names)


def levels_cell(kind: Kind, cases: int, repeats: int, _names: Names, rng: np.random.Generator) -> Found:
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


def nights_cell(nights: int, points: int, _names: Names, rng: np.random.Generator) -> Found:
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


def cells() -> Iterator[tuple[str, int, int, Callable[[Names, np.random.Generator], Found]]]:
    """Everything to simulate: table, cases and repeats (of nights: nights and points of the drop), and how."""
    for cases, repeats, kind in product(SIZES, REPEATS, KINDS):
        yield "rates", cases, repeats, partial(rates_cell, kind, cases, repeats)
        if cases > FEW:
            yield "rates", cases, repeats, partial(family_cell, kind, cases, repeats)
        if cases == max(SIZES):
            yield "rates", cases, repeats, partial(judged_cell, kind, cases, repeats)
        yield "levels", cases, repeats, partial(levels_cell, kind, cases, repeats)
    for cases, kind in product(SIZES, KINDS):
        yield "single", cases, 1, partial(single_cell, kind, cases)
    for cases, repeats, between in product(SIZES, REPEATS, (0.2, 0.5, 0.8)):
        yield "figures", cases, repeats, partial(figures_cell, between, cases, repeats)
    for nights, points in product((10, 5), (0, 3, 4, 5, 8)):
        yield "nights", nights, points, partial(nights_cell, nights, points)


def shares(place: int, names: Names = ALL, rounds: Iterable[int] = (0,)) -> dict[str, float]:
    """The share that held, for the cell at this place; its own seeds, so that the order of work does not matter."""
    *_, simulate = list(cells())[place]
    seeds = [np.random.SeedSequence(20240711, spawn_key=(place, once)) for once in rounds]
    found = [simulate(names, np.random.default_rng(seed)) for seed in seeds]
    return {name: float(np.mean([once[name] for once in found])) for name in found[0]}


def main(path: Path) -> int:
    planned = list(cells())
    places = range(len(planned))
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(shares, places))
        low = {place: below_floor(*planned[place][:3], found[place]) for place in places}
        again = [place for place in places if low[place]]
        surer = pool.map(partial(shares, rounds=range(1, AGAIN + 1)), again, [low[place] for place in again])
        for place, better in zip(again, surer, strict=True):
            found[place] |= better
    tables: dict[str, Table] = {}
    for (name, cases, repeats, _), told in zip(planned, found, strict=True):
        tables.setdefault(name, {}).setdefault((cases, repeats), []).append(told)
    path.write_text(page(tables), encoding="utf-8")
    short = fallen_short(tables)
    print("\n".join([f"written to {path}", *short]))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
