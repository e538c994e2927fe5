from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.drift import BarCheck, Drift, against_bar, anytime_test, drift, shiryaev_roberts
from evalfarm.analysis.statistics.figures import clopper_pearson
from evalfarm.analysis.statistics.paired import case_counts
from evalfarm.analysis.statistics.planning import repeats_to_see


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-9)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    decided = draw(st.lists(st.integers(0, 9), min_size=1, max_size=10))
    return [draw(st.integers(0, r)) for r in decided], decided


def test_a_bar_is_met_by_as_many_flawless_cases_as_it_takes_to_see_a_flake() -> None:
    enough = repeats_to_see(0.1)
    assert against_bar([1] * enough, [1] * enough, 0.9).verdict == "met"
    assert against_bar([3] * (enough - 1), [3] * (enough - 1), 0.9).verdict == "too little evidence"


def test_a_bar_far_above_is_missed() -> None:
    found = against_bar([1, 0, 2, 1] * 10, [3] * 40, 0.9)
    assert (found.verdict, found.value) == ("missed", near(1 / 3))


def test_single_runs_and_families_are_measured_by_their_number() -> None:
    low, high = clopper_pearson(0.5, 4, confidence=0.9)
    assert against_bar([1, 1, 0, 0], [1] * 4, 0.5) == BarCheck(0.5, near(low), near(high), "too little evidence")
    low, high = clopper_pearson(1.0, 2, confidence=0.9)
    assert against_bar([3] * 6, [3] * 6, 0.2, ["a", "b"] * 3) == BarCheck(1.0, near(low), 1.0, "met")


def test_as_many_cases_are_needed_as_decide_at_the_rate_seen() -> None:
    needed = against_bar([3] * 5, [3] * 5, 0.9).cases_needed
    assert needed == repeats_to_see(0.1)
    found = against_bar([3, 3, 2, 3, 1] * 2, [3] * 10, 0.9)
    assert (found.verdict, found.cases_needed) == ("too little evidence", 23)
    assert against_bar([3, 3, 2, 3, 1] * 5, [3] * 25, 0.9).verdict == "missed"
    in_families = against_bar([3] * 6, [3] * 6, 0.9, ["a", "a", "b", "b", "c", "c"])
    assert in_families.cases_needed == 2 * repeats_to_see(0.1)


def test_no_number_of_cases_decides_at_the_bar_itself() -> None:
    assert against_bar([1, 0], [1, 1], 0.5).cases_needed is None
    assert against_bar([3] * 60, [3] * 60, 0.9).cases_needed is None


def test_without_a_decided_trial_a_bar_is_neither_met_nor_missed() -> None:
    assert against_bar([0], [0], 0.0) == BarCheck(None, None, None, "too little evidence")


def test_one_night_has_no_drift() -> None:
    assert drift([]) == drift([case_counts([3], [3])]) == Drift(levels=(), alarm_night=None)


def test_a_slow_fall_alarms_and_steady_nights_do_not() -> None:
    rng = np.random.default_rng(11)

    def night(rate: float) -> Any:
        return case_counts(rng.binomial(3, rate, 60), [3] * 60)

    steady = [night(0.9) for _ in range(12)]
    assert drift(steady).alarm_night is None
    falling = steady + [night(0.9 - 0.03 * step) for step in range(1, 8)]
    found = drift(falling)
    assert found.alarm_night is not None
    assert found.alarm_night >= 12
    assert found.levels[found.alarm_night - 1] >= 365
    assert drift(falling, alarm=1e20).alarm_night is None


def test_a_night_without_any_evidence_of_a_fall_resets_the_detector() -> None:
    assert shiryaev_roberts([3.0, -float("inf")])[-1] == 0.0


def test_a_stream_without_trials_excludes_no_rate() -> None:
    found = anytime_test(0, 0, 0.5)
    assert (found.e_value, found.low, found.high) == (1.0, 0.0, 1.0)


def test_overwhelming_evidence_stays_a_number() -> None:
    found = anytime_test(0, 10_000, 0.999)
    assert (found.e_value > 1e300, found.low) == (True, 0.0)
    assert found.high < 0.01


@given(cases(), st.floats(0.01, 0.99))
def test_the_limits_hold_the_rate_and_the_verdict_follows_them(counts: tuple[list[int], list[int]], bar: float) -> None:
    found = against_bar(*counts, bar)
    if found.value is not None:
        assert found.at_least is not None
        assert found.at_most is not None
        assert 0 <= found.at_least <= found.value <= found.at_most <= 1
        assert (found.verdict == "met") == (found.at_least >= bar)
        assert (found.verdict == "missed") == (found.at_most < bar)


@given(cases())
def test_swapping_pass_and_fail_mirrors_the_limits(counts: tuple[list[int], list[int]]) -> None:
    passes, decided = counts
    there = against_bar(passes, decided, 0.5)
    back = against_bar([r - c for c, r in zip(passes, decided, strict=True)], decided, 0.5)
    if there.at_least is not None and there.at_most is not None:
        assert (back.at_least, back.at_most) == (near(1 - there.at_most), near(1 - there.at_least))


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=20), st.integers(0, 19))
def test_a_worse_night_raises_the_detector(z: list[float], at: int) -> None:
    worse = [value + (place == at % len(z)) for place, value in enumerate(z)]
    assert shiryaev_roberts(worse)[-1] >= shiryaev_roberts(z)[-1]


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_the_anytime_interval_holds_what_the_evidence_does_not_reject(passed: int, failed: int, rate: float) -> None:
    found = anytime_test(passed, failed, rate)
    assert 0 <= found.low <= found.high <= 1
    if found.e_value < 19.999:
        assert found.low <= rate <= found.high
    if found.e_value > 20.001:
        assert not found.low <= rate <= found.high
    if passed + failed:
        assert found.low <= passed / (passed + failed) <= found.high
