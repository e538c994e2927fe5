import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.planning import (
    cases_for_difference,
    cases_for_equivalence,
    repeats_for_difference,
    repeats_for_drop,
    repeats_to_see,
    resolution,
    smallest_difference,
    smallest_drop,
    values_needed,
    variance_of_difference,
)
from evalfarm.errors import UsageError

effects = st.floats(0.005, 0.5)
variances = st.floats(0.001, 0.3)


@pytest.mark.parametrize(("repeats", "points"), [((1, 1), 9.0), ((3, 3), 5.2), ((3, 15), 4.0), ((10, 10), 2.9)])
def test_what_108_cases_resolve_on_a_rerun(repeats: tuple[int, int], points: float) -> None:
    assert round(100 * smallest_drop(0.142, 108, *repeats), 1) == points


@pytest.mark.parametrize(("cases", "repeats", "points"), [(108, 1, 11.2), (108, 3, 7.5), (108, 10, 5.7), (20, 1, 26.0)])
def test_what_a_plan_resolves_between_two_arms(cases: int, repeats: int, points: float) -> None:
    assert round(100 * resolution(cases, repeats).new_cases, 1) == points


def test_three_points_take_ten_repeats_of_108_cases() -> None:
    assert repeats_for_drop(0.03, 0.142, 108) == 10


def test_beyond_some_repeats_the_cases_limit_what_is_seen() -> None:
    assert resolution(108, 3, disagreement=0.142, between=0.03).useful_repeats == 5
    assert resolution(108, 3, disagreement=0.0, between=0.03).useful_repeats == 1
    assert resolution(108, 3, between=0.0).useful_repeats == 3


@pytest.mark.parametrize(("cases", "repeats"), [(0, 3), (5, 0)])
def test_a_plan_of_nothing_is_refused(cases: int, repeats: int) -> None:
    with pytest.raises(UsageError) as caught:
        resolution(cases, repeats)
    assert str(caught.value) == (
        f"a plan of {cases} cases × {repeats} repeats resolves nothing\n\nhint: give at least one case and one repeat"
    )


def test_no_repeats_make_up_for_cases_that_differ() -> None:
    assert repeats_for_difference(0.03, between=0.05, rerun=0.1, cases=108) is None
    assert repeats_for_difference(0.2, between=0.05, rerun=0.1, cases=108) == 1


def test_a_difference_outside_the_margin_is_never_equivalent() -> None:
    assert cases_for_equivalence(-0.03, 0.03, 0.1) is None


@given(effects, variances, variances, st.integers(1, 50))
def test_the_smallest_difference_needs_just_the_cases_there_are(
    effect: float, between: float, noise: float, repeats: int
) -> None:
    cases = cases_for_difference(effect, variance_of_difference(between, noise / 2, noise / 2, repeats))
    # σ² of an arm is D / 2, so two arms of one D have a rerun variance of D / K.
    assert math.isclose(cases, _cases(effect, between, noise, repeats), rel_tol=1e-9)


def _cases(effect: float, between: float, disagreement: float, repeats: int) -> float:
    """`smallest_difference` solved for n."""
    return (smallest_difference(between, disagreement, 1, repeats) / effect) ** 2


@given(effects, variances, st.integers(1, 500))
def test_the_repeats_for_a_drop_are_the_fewest(drop: float, disagreement: float, cases: int) -> None:
    repeats = repeats_for_drop(drop, disagreement, cases)
    assert smallest_drop(disagreement, cases, repeats, repeats) <= drop * (1 + 1e-6)
    assert repeats == 1 or smallest_drop(disagreement, cases, repeats - 1, repeats - 1) > drop


@given(effects, variances, variances, st.integers(1, 500))
def test_the_repeats_for_a_difference_are_the_fewest(effect: float, between: float, rerun: float, cases: int) -> None:
    repeats = repeats_for_difference(effect, between, rerun, cases)
    if repeats is None:
        assert cases_for_difference(effect, between) >= cases * (1 - 1e-9)
    else:
        assert cases_for_difference(effect, between + rerun / repeats) <= cases * (1 + 1e-6)
        assert repeats == 1 or cases_for_difference(effect, between + rerun / (repeats - 1)) > cases


@given(st.floats(0.01, 0.99))
def test_a_flake_is_seen_in_so_many_runs_and_not_in_one_fewer(rate: float) -> None:
    runs = repeats_to_see(rate)
    assert 1 - (1 - rate) ** runs >= 0.95 - 1e-9
    assert 1 - (1 - rate) ** (runs - 1) < 0.95 + 1e-9


@given(st.floats(0.01, 0.99))
def test_a_quantile_needs_as_many_values_as_its_mirror(q: float) -> None:
    assert abs(values_needed(q) - values_needed(1 - q)) <= 1  # 1 - q rounds
    assert values_needed(q, two_sided=False) <= values_needed(q)
