import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.regression import NightlyRule
from evalfarm.analysis.statistics.rule_check import nightly_odds, self_check
from evalfarm.errors import UsageError


@pytest.mark.parametrize(
    ("nights", "drop", "false_alarm", "power"),
    [(10, 0.03, 0.0027, 0.48), (10, 0.05, 0.0027, 0.89), (5, 0.05, 0.0029, 0.82), (10, 0.08, 0.0027, 1.0)],
)
def test_the_odds_are_those_of_simulated_nights(nights: int, drop: float, false_alarm: float, power: float) -> None:
    found = nightly_odds(108, 3, drop, disagreement=0.142, rate=0.877, rule=NightlyRule(most_nights=nights))
    assert found.false_alarm == pytest.approx(false_alarm, abs=0.0004)
    assert found.power == pytest.approx(power, abs=0.06)


def test_a_suite_that_never_flips_alarms_on_any_drop_that_counts() -> None:
    found = nightly_odds(20, 3, 0.05, disagreement=0.0, rate=1.0)
    assert (found.false_alarm, found.power) == (0.0, 1.0)
    assert nightly_odds(20, 3, 0.01, disagreement=0.0, rate=1.0).power == 0.0


def test_repeats_of_one_configuration_hold_against_each_other() -> None:
    labels = np.random.default_rng(3).random((60, 8)) < 0.9
    found = self_check(labels, np.random.default_rng(1))
    assert (found.splits, found.stated, found.held) == (70, 0.05, True)


def test_repeats_of_two_configurations_do_not() -> None:
    rng = np.random.default_rng(3)
    labels = np.hstack([rng.random((60, 4)) < 0.95, rng.random((60, 4)) < 0.6])
    found = self_check(labels, rng)
    assert found.alarms > found.stated * found.splits
    assert not found.held


def test_many_repeats_are_split_by_the_seed() -> None:
    labels = np.random.default_rng(3).random((30, 12)) < 0.8
    first, again = (self_check(labels, np.random.default_rng(7), most_splits=50) for _ in range(2))
    assert (first.splits, first) == (50, again)


@pytest.mark.parametrize(
    ("labels", "said"), [([[1.0], [0.0]], "1 repeats over 2"), ([[1.0, np.nan]], "2 repeats over 0")]
)
def test_a_self_check_of_nothing_is_refused(labels: list[list[float]], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        self_check(labels, np.random.default_rng(0))
    assert str(caught.value) == (
        f"a self-check of {said} whole cases shows nothing\n\n"
        "hint: give at least two repeats and one case that is decided in each"
    )


@given(st.integers(5, 300), st.integers(1, 10), st.floats(0.01, 0.2), st.floats(0.02, 0.4), st.floats(0.3, 0.95))
def test_a_larger_drop_is_found_more_often(
    cases: int, repeats: int, drop: float, disagreement: float, rate: float
) -> None:
    small, large = (
        nightly_odds(cases, repeats, fall, disagreement=disagreement, rate=rate) for fall in (drop / 2, drop)
    )
    assert small.false_alarm == large.false_alarm
    assert 0 <= small.power <= large.power + 1e-9
    assert large.power <= 1 + 1e-9
