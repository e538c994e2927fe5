import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import clopper_pearson
from evalfarm.analysis.statistics.latency import latency_quantile
from evalfarm.analysis.statistics.stats import Estimate

Trials = list[tuple[int, float]]
TRIALS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from([0.5, 1.0, 1.5, 2.0, 7.0, 30.0, math.inf])), min_size=1)


def quantile(trials: Sequence[tuple[int, float]], q: float, limit_s: float = math.inf) -> Estimate:
    """Of trials in any order, each a case and its latency."""
    ranked = sorted(trials, key=lambda trial: trial[1])
    return latency_quantile([case for case, _ in ranked], [value for _, value in ranked], q, limit_s=limit_s)


def limits_at(trials: Trials, value: float) -> tuple[float, float]:
    """Clopper and Pearson's limits for the share of trials at or below a value, as the docstring has them."""
    below: dict[int, list[bool]] = {}
    for case, latency in trials:
        below.setdefault(case, []).append(latency <= value)
    shares = np.array([np.mean(hits) for hits in below.values()])
    sizes = np.array([float(len(hits)) for hits in below.values()])
    share = float(np.mean([latency <= value for _, latency in trials]))
    worth = float(len(shares))
    if len(shares) > 1 and shares.std() > 1e-9:
        between = float(shares.var(ddof=1)) / len(shares)
        most = max(float((sizes / (1 + (sizes - 1) / 3)).sum()), float(len(shares)))
        worth = min(share * (1 - share) / between, most)
    return clopper_pearson(share, worth)


def test_the_tail_of_few_trials_has_no_upper_limit() -> None:
    found = quantile([(case, case + 1.0) for case in range(20)], 0.95)
    assert (found.value, found.high) == (19.0, None)
    assert found.low is not None


def test_the_tail_of_few_cases_has_no_upper_limit_however_often_they_ran() -> None:
    trials = [(case, case + repeat / 30) for case in range(20) for repeat in range(30)]
    assert quantile(trials, 0.95) == Estimate(18 + 29 / 30, 16.3, None)


def test_one_case_says_nothing_about_others_however_often_it_ran() -> None:
    assert quantile([(0, repeat + 1.0) for repeat in range(30)], 0.5) == Estimate(15.0, None, None)


def test_with_enough_cases_the_tail_is_closed() -> None:
    found = quantile([(case, case + 1.0) for case in range(200)], 0.95)
    assert (found.value, found.low, found.high) == (190.0, 184.0, 197.0)


def test_a_quantile_among_the_timeouts_is_only_known_to_exceed_the_limit() -> None:
    trials = [(case, 1.0 if case < 50 else math.inf) for case in range(100)]
    assert quantile(trials, 0.95, limit_s=300.0) == Estimate(None, 300.0, None)
    assert quantile(trials, 0.5, limit_s=300.0) == Estimate(1.0, 1.0, None)


def test_timeouts_beyond_the_quantile_change_nothing_but_its_end() -> None:
    whole = [(case, case + 1.0) for case in range(100)]
    cut = [(case, latency if latency <= 97 else math.inf) for case, latency in whole]
    assert quantile(cut, 0.5, limit_s=98.0) == quantile(whole, 0.5)


def test_nothing_to_measure_gives_nothing() -> None:
    assert quantile([], 0.5) == Estimate(None, None, None)


def test_where_every_case_ran_once_the_median_lies_between_order_statistics() -> None:
    assert quantile([(case, case + 1.0) for case in range(15)], 0.5) == Estimate(8.0, 4.0, 12.0)


@given(TRIALS, st.sampled_from([0.1, 0.5, 0.9, 0.95]))
def test_an_interval_ends_at_the_nearest_values_that_the_data_refuse(trials: Trials, q: float) -> None:
    found = quantile(trials, q, limit_s=math.inf)
    values = sorted({latency for _, latency in trials})
    value = math.inf if found.value is None else found.value
    above = [x for x in values if x >= value and limits_at(trials, x)[0] >= q - 1e-12]
    assert found.high == (None if not above or math.isinf(above[0]) else above[0])
    refused = [x for x in values if x <= value and limits_at(trials, np.nextafter(x, 0))[1] <= q + 1e-12]
    assert found.low == (refused[-1] if refused else None)


@given(TRIALS)
def test_the_order_of_trials_and_the_unit_of_time_do_not_matter(trials: Trials) -> None:
    found = quantile(trials, 0.5)
    again = quantile([(case, latency * 1000) for case, latency in reversed(trials)], 0.5)
    assert (again.value, again.low, again.high) == tuple(
        None if end is None else end * 1000 for end in (found.value, found.low, found.high)
    )


@given(TRIALS, st.sampled_from([0.5, 0.95]))
def test_how_cases_are_named_does_not_matter(trials: Trials, q: float) -> None:
    ranked = sorted(trials, key=lambda trial: trial[1])
    values = [latency for _, latency in ranked]
    by_place = latency_quantile(np.array([case for case, _ in ranked], dtype=np.uint32), values, q)
    assert by_place == latency_quantile([f"case {case}" for case, _ in ranked], values, q)


def test_a_long_tail_is_searched_as_far_as_it_goes() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.exponential(size=40_000))
    found = latency_quantile(rng.integers(0, 300, 40_000), values, 0.5)
    assert found.low is not None
    assert found.high is not None
    assert 0.6 < found.low < float(np.log(2)) < found.high < 0.8
