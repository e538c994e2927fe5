"""What a trace that lost something proves: nothing, for every grader."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.answer import Fixture
from evalfarm.contracts.run import COUNTED, ModelRequest, ShellCommand, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Suite
from graders.evidence import gaps, returned
from graders.grade import grade_trace

Traced = Callable[..., Trace]

ORDER = {"order_id": "A-1", "final_sale": True}
LOOKUP = ToolCall(name="lookup", arguments={"order_id": "A-1"}, result=ORDER)
FIXTURES = {"A1": {"tool": "lookup", "arguments": {"order_id": "A-1"}, "result": ORDER}}
CASE = Case.model_validate(
    {
        "id": "headline",
        "query": "Is it final sale?",
        "expect": {"calls": [{"tool": "lookup", "at_most": 1}]},
        "facts": [
            {"id": "final", "concludes": "final", "holds": True, "rests_on": ["A1.final_sale"]},
            {"id": "done", "executed": "refund", "must": "absent", "rests_on": ["request"]},
        ],
    }
)


@pytest.fixture(scope="module")
def suite(suite_with: Callable[..., Suite]) -> Suite:
    return suite_with(
        CASE, fixtures=FIXTURES, conclusions={"final": {"asks": "Is it final sale?", "yes": [r"is final sale"]}}
    )


@pytest.fixture(scope="module")
def whole(traced: Traced) -> Trace:
    """A trace with two of everything, counted as it was written down."""
    trace = traced(
        LOOKUP,
        turns=(Turn(query="Hello", answer="Hi."), Turn(query="Is it final sale?", answer="It is final sale.")),
        requests=(ModelRequest(started_s=0, latency_s=1, status=200),) * 2,
        shell_commands=(ShellCommand(command="ls"),) * 2,
        events=({"type": "a"}, {"type": "b"}),
    )
    telemetry = trace.telemetry.model_copy(update={"counted": trace.counts})
    return trace.model_copy(update={"telemetry": telemetry})


def lossy(trace: Trace, lost: Mapping[str, set[int]]) -> Trace:
    """The trace without the records at these places."""
    kept = {
        name: tuple(record for at, record in enumerate(getattr(trace, name)) if at not in lost.get(name, set()))
        for name in COUNTED
    }
    return trace.model_copy(update=kept)


def test_a_whole_trace_has_no_gap_and_is_labelled_by_both_graders(suite: Suite, whole: Trace) -> None:
    labels = grade_trace(suite, whole)
    assert gaps(whole) == ()
    assert [(label.grader, label.value) for label in labels] == [("tool_route", "PASS"), ("answer", "PASS")]


@given(st.data())
def test_dropping_records_leaves_every_grader_inconclusive(suite: Suite, whole: Trace, data: st.DataObject) -> None:
    places = {name: range(len(getattr(whole, name))) for name in COUNTED}
    one = data.draw(st.sampled_from([(name, at) for name, there in places.items() for at in there]))
    more = data.draw(st.sets(st.sampled_from([(name, at) for name, there in places.items() for at in there])))
    lost: dict[str, set[int]] = {}
    for name, at in {one, *more}:
        lost.setdefault(name, set()).add(at)
    labels = grade_trace(suite, lossy(whole, lost))
    assert [(label.grader, label.value) for label in labels] == [
        ("tool_route", "INCONCLUSIVE"),
        ("answer", "INCONCLUSIVE"),
    ]


def test_a_gap_says_what_is_missing(whole: Trace) -> None:
    assert gaps(lossy(whole, {"served_calls": {0}, "events": {1}})) == (
        "the trace holds 0 of the 1 served calls observed",
        "the trace holds 1 of the 2 events observed",
    )


def test_a_trace_that_was_never_counted_is_taken_by_its_telemetry_alone(whole: Trace) -> None:
    plain = whole.telemetry.model_copy(update={"counted": None})
    assert gaps(lossy(whole, {"events": {0}}).model_copy(update={"telemetry": plain})) == ()


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ({}, {"A1": ORDER}),
        ({"result": '{"order_id": "A-1", "final_sale": true}'}, {"A1": ORDER}),
        ({"arguments": {"order_id": "A-2"}}, {}),
        ({"error": "gone", "result": None}, {}),
        ({"turn": 1}, {}),
    ],
)
def test_a_fixture_is_returned_by_a_call_that_asked_for_it_and_succeeded(call: Any, found: Any) -> None:
    fixtures = {name: Fixture.model_validate(made) for name, made in FIXTURES.items()}
    assert returned(fixtures, (LOOKUP.model_copy(update=call),), turn=0) == found
