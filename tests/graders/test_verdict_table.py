"""A suite's verdict table: the first row that covers the labels decides, and every combination is covered."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from evalfarm.contracts.answer import BOTH_MUST_PASS, VerdictTable, WholeVerdictTable, combinations
from evalfarm.contracts.verdict import Label
from graders.verdict_table import verdict_of

TABLE: TypeAdapter[VerdictTable] = TypeAdapter(WholeVerdictTable)


def labels(**values: Any) -> tuple[Label, ...]:
    return tuple(Label(grader=grader, version="1", value=value) for grader, value in values.items())


def test_by_default_a_fail_decides_then_an_inconclusive() -> None:
    for values in combinations():
        told = set(values.values())
        wanted = "failed" if "FAIL" in told else "inconclusive" if "INCONCLUSIVE" in told else "passed"
        assert verdict_of("finished", labels(**values), BOTH_MUST_PASS) == wanted


def test_a_suite_may_let_the_route_be_advice() -> None:
    table = TABLE.validate_python(
        [
            {"answer": "PASS", "judge": "FAIL", "verdict": "failed"},
            {"answer": "PASS", "verdict": "passed"},
            {"answer": "FAIL", "verdict": "failed"},
            {"verdict": "inconclusive"},
        ]
    )
    assert verdict_of("finished", labels(tool_route="FAIL", answer="PASS"), table) == "passed"
    assert verdict_of("finished", labels(tool_route="PASS", answer="INCONCLUSIVE"), table) == "inconclusive"


def test_a_grader_that_was_not_asked_stands_in_nobodys_way_but_somebody_must_have_said_something() -> None:
    assert verdict_of("finished", labels(tool_route="PASS")) == "passed"
    assert verdict_of("finished", ()) == "inconclusive"


def test_a_label_that_no_table_can_speak_of_is_refused() -> None:
    with pytest.raises(ValueError, match="no verdict table speaks of the grader 'mood'"):
        verdict_of("finished", labels(mood="PASS"))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            [{"tool_route": "FAIL", "verdict": "failed"}, {"tool_route": "PASS", "verdict": "passed"}],
            "the verdict table has a hole: no row covers {tool_route: INCONCLUSIVE, answer: PASS, judge: PASS}",
        ),
        ([], "the verdict table has a hole"),
        (
            [{"verdict": "passed"}, {"answer": "FAIL", "verdict": "failed"}],
            "row 2 of the verdict table decides nothing: the rows before it cover all of it",
        ),
    ],
)
def test_a_table_with_a_hole_or_a_dead_row_is_refused(rows: Any, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TABLE.validate_python(rows)
    assert why in str(caught.value)
