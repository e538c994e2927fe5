import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import (
    FigureChange,
    PerQuestion,
    clopper_pearson,
    figure_change,
    latency_quantile,
    log_t_interval,
    order_interval,
    per_question,
    t_interval,
)
from evalfarm.analysis.statistics.stats import Estimate

NOTHING = Estimate(None, None, None)
positive = st.floats(0.01, 1e4)


def near(value: float | None) -> Any:
    return pytest.approx(value, rel=1e-9)


def test_the_tail_of_few_trials_has_no_upper_limit() -> None:
    found = latency_quantile(range(20), np.arange(1.0, 21), 0.95)
    assert (found.value, found.high) == (19.0, None)
    assert found.low is not None


def test_one_case_says_nothing_about_others_however_often_it_ran() -> None:
    assert latency_quantile(["a"] * 30, np.arange(1.0, 31), 0.5) == Estimate(15.0, None, None)


def test_with_enough_cases_the_tail_is_closed() -> None:
    found = latency_quantile(range(200), np.arange(1.0, 201), 0.95)
    assert found.value == 190.0
    assert found.low is not None
    assert found.high is not None
    assert found.low < 190.0 < found.high <= 200.0


def test_a_quantile_among_the_timeouts_is_only_known_to_exceed_the_limit() -> None:
    latency = [1.0] * 50 + [300.0] * 50
    cut = [False] * 50 + [True] * 50
    assert latency_quantile(range(100), latency, 0.95, timed_out=cut) == Estimate(None, 300.0, None)
    median = latency_quantile(range(100), latency, 0.5, timed_out=cut)
    assert median == Estimate(1.0, 1.0, None)


def test_timeouts_beyond_the_quantile_change_nothing_but_its_end() -> None:
    latency, cut = np.arange(1.0, 101), np.arange(1, 101) > 97
    assert latency_quantile(range(100), latency, 0.5, timed_out=cut) == latency_quantile(range(100), latency, 0.5)


def test_a_latency_that_is_missing_is_left_out() -> None:
    assert latency_quantile([1, 2, 3, 4], [1.0, np.nan, 3.0, 5.0], 0.5) == latency_quantile([1, 3, 4], [1.0, 3, 5], 0.5)
    assert latency_quantile([], [], 0.5) == latency_quantile([1], [np.nan], 0.5) == NOTHING


def test_a_figure_that_nobody_reports_is_not_zero() -> None:
    assert per_question(["a", "b"], [np.nan, np.nan]) == PerQuestion(
        mean=NOTHING,
        median=NOTHING,
        lowest=None,
        highest=None,
        sd=None,
        cases=0,
        missing=2,
        widest=None,
        widest_range=None,
    )


def test_few_questions_get_a_range_and_no_interval() -> None:
    assert per_question(["a", "a", "b", "b", "c"], [1, 3, 5, 5, np.nan]) == PerQuestion(
        mean=Estimate(3.5, None, None),
        median=Estimate(2.0, None, None),
        lowest=2.0,
        highest=5.0,
        sd=near(math.sqrt(4.5)),
        cases=2,
        missing=1,
        widest="a",
        widest_range=(1.0, 3.0),
    )


def test_from_ten_questions_on_the_mean_has_an_interval() -> None:
    values = np.arange(1.0, 11)
    found = per_question(list("abcdefghij"), values)
    assert found.mean == log_t_interval(values)
    assert found.median == order_interval(values, 0.5)
    assert found.widest is None


def test_the_median_of_five_values_has_no_interval_and_of_six_it_has_the_range() -> None:
    assert order_interval(range(1, 6), 0.5) == Estimate(3.0, None, None)
    assert order_interval(range(1, 7), 0.5) == Estimate(3.0, 1.0, 6.0)
    assert order_interval([], 0.5) == NOTHING


def test_a_mean_of_nothing_one_or_zeros_is_open() -> None:
    assert t_interval([]) == log_t_interval([]) == NOTHING
    assert t_interval([2.0]) == log_t_interval([2.0]) == Estimate(2.0, None, None)
    assert log_t_interval([0.0, 0.0]) == Estimate(0.0, None, None)


def test_clopper_pearson_ends_at_none_and_all() -> None:
    assert clopper_pearson(0.0, 5)[0] == 0.0
    assert clopper_pearson(1.0, 5)[1] == 1.0


def test_a_figure_that_doubled_everywhere_is_judged_by_the_sign_test() -> None:
    found = figure_change([1, 2, 4], [2, 4, 8])
    assert (found.factor.value, found.t, found.p, found.p_higher, found.cases) == (near(2.0), None, 0.25, 0.125, 3)
    halved, same = figure_change([2, 4], [1, 2]), figure_change([1, 5], [1, 5])
    assert (halved.p, halved.p_higher) == (0.5, 1.0)
    assert (same.factor.value, same.p, same.p_higher) == (1.0, 1.0, 1.0)


def test_a_change_is_told_over_the_cases_that_report_it_in_both() -> None:
    assert figure_change([1, np.nan, 2, 0], [2, 3, 5, 7]) == figure_change([1, 2], [2, 5])
    assert figure_change([], []) == FigureChange(NOTHING, None, None, None, 0)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=12))
def test_swapping_the_arms_inverts_the_factor(pairs: list[tuple[float, float]]) -> None:
    before, after = [first for first, _ in pairs], [second for _, second in pairs]
    there, back = figure_change(before, after), figure_change(after, before)
    assert there.factor.value is not None
    assert back.factor.value == near(1 / there.factor.value)
    assert back.p == (None if there.p is None else near(there.p))


@given(st.lists(st.tuples(st.integers(0, 8), positive), min_size=1, max_size=40), st.sampled_from([0.5, 0.9, 0.95]))
def test_a_latency_interval_holds_its_quantile_and_ends_at_observed_values(
    trials: list[tuple[int, float]], q: float
) -> None:
    cases, latency = [case for case, _ in trials], [value for _, value in trials]
    found = latency_quantile(cases, latency, q)
    assert found.value in latency
    assert found.low is None or (found.low in latency and found.low <= found.value)
    assert found.high is None or (found.high in latency and found.value <= found.high)


@given(st.lists(st.tuples(st.integers(0, 8), positive), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_trials_and_the_unit_of_time_do_not_matter(trials: list[tuple[int, float]], shuffle: Any) -> None:
    found = latency_quantile([case for case, _ in trials], [value for _, value in trials], 0.5)
    shuffle.shuffle(trials)
    again = latency_quantile([case for case, _ in trials], [value * 1000 for _, value in trials], 0.5)
    assert (again.value, again.low, again.high) == tuple(
        None if end is None else end * 1000 for end in (found.value, found.low, found.high)
    )


@given(st.lists(positive, min_size=2, max_size=30))
def test_a_mean_of_positive_values_has_positive_limits_around_it(values: list[float]) -> None:
    found = log_t_interval(values)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value * (1 + 1e-12)
    assert found.value <= found.high * (1 + 1e-12)
