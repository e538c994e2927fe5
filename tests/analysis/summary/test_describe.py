import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import per_question
from evalfarm.analysis.statistics.steadiness import pass_rate_by_attempt, repeat_spread
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


@QUIET
@given(trials=TRIALS)
def test_a_figure_per_question_is_the_references(
    described: Any, trials: list[tuple[int, float | None, int, bool]]
) -> None:
    found: PerQuestion = described(trials).tool_calls
    expected = per_question([f"c{trial[0]:02}" for trial in trials], [trial[1] for trial in trials])
    low, high = expected.widest_range or (None, None)
    assert found == (
        PerQuestion(
            mean=Measure(value=expected.mean.value, low=expected.mean.low, high=expected.mean.high),
            median=Measure(value=expected.median.value, low=expected.median.low, high=expected.median.high),
            lowest=expected.lowest,
            highest=expected.highest,
            sd=expected.sd,
            cases=expected.cases,
            missing=expected.missing,
            widest=expected.widest,
            widest_low=low,
            widest_high=high,
        )
    )


@QUIET
@given(trials=TRIALS)
def test_the_pass_rate_by_attempt_is_the_references(
    described: Any, trials: list[tuple[int, float | None, int, bool]]
) -> None:
    expected = pass_rate_by_attempt(*([trial[at] for trial in trials] for at in (0, 2, 3)))
    assert described(trials).pass_rate_by_attempt == tuple(
        AttemptRate(attempt=of.attempt, trials=of.trials, rate=of.rate) for of in expected
    )


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
