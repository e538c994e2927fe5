from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import (
    FigureChange,
    clopper_pearson,
    figure_change,
    log_t_interval,
    order_interval,
    t_interval,
)
from evalfarm.analysis.statistics.stats import Estimate

NOTHING = Estimate(None, None, None)
positive = st.floats(0.01, 1e4)


def near(value: float | None) -> Any:
    return pytest.approx(value, rel=1e-9)


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


@given(st.lists(positive, min_size=2, max_size=30))
def test_a_mean_of_positive_values_has_positive_limits_around_it(values: list[float]) -> None:
    found = log_t_interval(values)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value * (1 + 1e-12)
    assert found.value <= found.high * (1 + 1e-12)
