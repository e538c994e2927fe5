import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import LEAST_CASES, log_t_interval, order_interval
from evalfarm.analysis.statistics.stats import Estimate, pass_rate
from evalfarm.analysis.statistics.steadiness import repeat_spread
from evalfarm.analysis.summary.aggregate import summarize_rows
from evalfarm.analysis.summary.foreign import read_rows
from evalfarm.contracts.figures import Measure, PerQuestion
from evalfarm.contracts.verdict import AttemptRate, CellSummary


@pytest.fixture
def described(tmp_path: Path) -> Any:
    """The one arm of some rows, each (case, tool calls, attempt, passed), numbered within its case."""

    def describe(trials: list[tuple[int, float | None, int, bool]]) -> CellSummary:
        repeats: dict[int, int] = {}
        rows = []
        for case, calls, attempt, passed in sorted(trials, key=lambda trial: trial[0]):
            repeats[case] = repeats.get(case, -1) + 1
            rows.append(
                {
                    "case": f"c{case:02}",
                    "repeat": repeats[case],
                    "pass": passed,
                    "tool_calls": calls,
                    "attempt": attempt,
                }
            )
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        with read_rows(path) as read:
            (cell,) = summarize_rows(read, "rows").cells
        return cell

    return describe


TRIALS = st.lists(
    st.tuples(
        st.integers(0, 14),
        st.none() | st.integers(0, 9).map(float),
        st.integers(1, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)
QUIET = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_figure_that_nobody_reports_is_not_zero(described: Any) -> None:
    nothing = Measure(value=None, low=None, high=None)
    assert described([(0, None, 1, True), (1, None, 1, True)]).tool_calls == PerQuestion(
        mean=nothing,
        median=nothing,
        lowest=None,
        highest=None,
        sd=None,
        cases=0,
        missing=2,
        widest=None,
        widest_low=None,
        widest_high=None,
    )


def test_few_questions_get_a_range_and_no_interval(described: Any) -> None:
    calls = [(0, 1.0), (0, 3.0), (1, 5.0), (1, 5.0), (2, None)]
    assert described([(case, figure, 1, True) for case, figure in calls]).tool_calls == PerQuestion(
        mean=Measure(value=3.5, low=None, high=None),
        median=Measure(value=2.0, low=None, high=None),
        lowest=2.0,
        highest=5.0,
        sd=math.sqrt(4.5),
        cases=2,
        missing=1,
        widest="c00",
        widest_low=1.0,
        widest_high=3.0,
    )


@QUIET
@given(trials=TRIALS)
def test_a_question_counts_once_however_often_it_was_asked(
    described: Any, trials: list[tuple[int, float | None, int, bool]]
) -> None:
    figures: dict[int, list[float]] = {}
    for case, figure, _, _ in trials:
        if figure is not None:
            figures.setdefault(case, []).append(figure)
    means = [sum(of_case) / len(of_case) for _, of_case in sorted(figures.items())]
    found: PerQuestion = described(trials).tool_calls
    mean = log_t_interval(means) if len(means) >= LEAST_CASES else Estimate(found.mean.value, None, None)
    assert (found.mean.value, found.mean.low, found.mean.high) == pytest.approx((mean.value, mean.low, mean.high))
    assert found.mean.value == (pytest.approx(sum(means) / len(means)) if means else None)
    assert Estimate(found.median.value, found.median.low, found.median.high) == order_interval(means, 0.5)
    assert (found.cases, found.missing) == (len(means), sum(figure is None for _, figure, _, _ in trials))


@QUIET
@given(trials=TRIALS)
def test_a_pass_rate_by_attempt_is_the_pass_rate_of_what_that_attempt_decided(
    described: Any, trials: list[tuple[int, float | None, int, bool]]
) -> None:
    expected = []
    for number in sorted({trial[2] for trial in trials}):
        ended = [(case, passed) for case, _, attempt, passed in trials if attempt == number]
        cases = sorted({case for case, _ in ended})
        passes = [sum(passed for other, passed in ended if other == case) for case in cases]
        rate = pass_rate(passes, [sum(other == case for other, _ in ended) for case in cases])
        expected.append(AttemptRate(attempt=number, trials=len(ended), rate=rate))
    assert described(trials).pass_rate_by_attempt == tuple(expected)


@QUIET
@given(table=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8))
def test_the_spread_over_repeats_is_the_references(described: Any, table: list[list[bool]]) -> None:
    trials = [(case, None, 1, passed) for case, row in enumerate(table) for passed in row]
    incomplete = [(99, None, 1, True)]
    found, expected = described(trials + incomplete).repeat_spread, repeat_spread(table)
    assert (found.cases, found.repeats, found.lowest, found.highest) == (
        len(table),
        3,
        expected.lowest,
        expected.highest,
    )
    assert (found.q, found.p, found.more_than_noise) == (expected.q, expected.p, expected.more_than_noise)


def test_every_k_that_is_told_has_cases_with_as_many_trials(described: Any) -> None:
    cell = described([(0, None, 1, True)] * 7 + [(1, None, 1, False)] * 2)
    assert [(of.k, of.cases, of.dropped) for of in cell.pass_hat_k] == [
        (1, 2, 0),
        (2, 2, 0),
        (3, 1, 1),
        (4, 1, 1),
        (5, 1, 1),
        (7, 1, 1),
    ]
    assert [of.k for of in cell.rarefied_flips] == [2, 3, 4, 5, 7]
