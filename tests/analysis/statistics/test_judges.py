import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.judges import (
    Labelled,
    agreement,
    post_stratified_rate,
    prediction_powered_mean,
    rogan_gladen,
)
from evalfarm.analysis.statistics.stats import Estimate
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import UsageError

NOTHING = Estimate(None, None, None)
counts = st.integers(0, 40)


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-9)


def test_one_label_throughout_has_no_kappa_but_raw_agreement() -> None:
    found = agreement(30, 0, 0, 0)
    assert (found.raw, found.kappa, found.kappa_se, found.human_pass_share) == (1.0, NOTHING, None, 1.0)
    assert found.false_accept == Rate(value=None, low=None, high=None)


def test_nothing_labelled_says_nothing() -> None:
    found = agreement(0, 0, 0, 0)
    assert (found.raw, found.kappa, found.kappa_se, found.human_pass_share) == (None, NOTHING, None, None)


def test_a_judge_that_passes_all_agrees_by_chance_alone() -> None:
    found = agreement(28, 0, 2, 0)
    assert (found.raw, found.kappa.value) == (near(28 / 30), near(0.0))
    assert found.false_accept.value == 1.0


def test_few_human_failures_leave_the_false_accepts_wide_open() -> None:
    found = agreement(53, 0, 1, 6).false_accept
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.45


def test_a_side_without_labels_has_no_corrected_rate_unless_it_never_occurs() -> None:
    assert post_stratified_rate(0.9, 50, Labelled(5, 5), Labelled(0, 0)) == NOTHING
    assert post_stratified_rate(1.0, 50, Labelled(5, 5), Labelled(0, 0)).value == 1.0


def test_a_judge_without_sense_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        rogan_gladen(Labelled(5, 10), Labelled(6, 10), Labelled(6, 10))
    assert str(caught.value) == (
        "a judge with 1 - FAR - FRR = 0.20 cannot be corrected for; 0.3 is the least\n\n"
        "hint: label more answers, or mend the rubric"
    )


def test_scores_that_never_vary_are_not_weighted() -> None:
    assert prediction_powered_mean([1, 0], [1, 1], [1, 1, 1]).value == 0.5


@given(counts, counts, counts, counts)
def test_agreement_does_not_depend_on_who_is_called_the_judge(a: int, b: int, c: int, d: int) -> None:
    there, back = agreement(a, b, c, d), agreement(a, c, b, d)
    assert (back.raw, back.kappa.value, back.kappa_se) == (
        near(there.raw),
        near(there.kappa.value),
        pytest.approx(there.kappa_se, abs=1e-6) if there.kappa_se is not None else None,
    )


@given(st.floats(0, 1), st.integers(1, 200), st.data())
def test_the_corrected_interval_holds_its_value_and_stays_inside(
    judged: float, effective: int, data: st.DataObject
) -> None:
    sizes = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    passed, failed = (Labelled(data.draw(st.integers(0, size)), size) for size in sizes)
    found = post_stratified_rate(judged, effective, passed, failed)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(st.integers(0, 50), st.integers(50, 60), st.integers(50, 60))
def test_a_judge_measured_elsewhere_is_corrected_within_bounds(hits: int, kept: int, caught: int) -> None:
    found = rogan_gladen(Labelled(hits, 50), Labelled(kept, 60), Labelled(caught, 60))
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=10))
def test_a_judge_that_is_always_right_adds_its_own_scores(scores: list[tuple[float, float]]) -> None:
    human = [score for score, _ in scores]
    more = [score for pair in scores for score in pair]
    found = prediction_powered_mean(human, human, more, tuned=False)
    assert found.value is not None
    assert math.isclose(found.value, sum(more) / len(more), abs_tol=1e-9)
