from collections.abc import Callable
from itertools import permutations

import pytest

from evalfarm.contracts.answer import GRADERS
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import ModelRequest, Outcome, ShellCommand, ToolCall, Trace
from evalfarm.contracts.suite import Suite
from evalfarm.contracts.verdict import Label, LabelValue, Result, Verdict
from graders.grade import grade_trace, grader_digest, result_of
from graders.verdict_table import verdict_of

Traced = Callable[..., Trace]
ROUTE_PASSED = Label(grader="tool_route", version="2", value="PASS")


def request(tokens: int | None = None, *, status: int | None = 200, model: str | None = "m-1") -> ModelRequest:
    return ModelRequest(
        started_s=0.0,
        latency_s=0.5,
        waited_s=0.25,
        status=status,
        model=model,
        input_tokens=tokens,
        cached_tokens=tokens,
        output_tokens=tokens,
        reasoning_tokens=tokens,
    )


@pytest.mark.parametrize(
    ("outcome", "values", "verdict"),
    [
        ("finished", ("PASS",), "passed"),
        ("finished", ("PASS", "PASS"), "passed"),
        ("finished", ("PASS", "INCONCLUSIVE"), "inconclusive"),
        ("finished", ("PASS", "INCONCLUSIVE", "FAIL"), "failed"),
        ("timed_out", ("FAIL",), "failed"),
        ("finished", (), "inconclusive"),
        ("infra_failed", (), "infra_failed"),
        ("infra_failed", ("FAIL",), "infra_failed"),
    ],
)
def test_labels_add_up_to_one_verdict(outcome: Outcome, values: tuple[LabelValue, ...], verdict: Verdict) -> None:
    for order in permutations(values):
        labels = tuple(
            Label(grader=grader, version="2", value=value) for grader, value in zip(GRADERS, order, strict=False)
        )
        assert verdict_of(outcome, labels) == verdict


def test_a_trace_gets_the_label_of_the_tool_route(
    catalog: Suite, traced: Traced, resolve: ToolCall, fetch: ToolCall
) -> None:
    assert grade_trace(catalog, traced(resolve, fetch)) == (ROUTE_PASSED,)


def test_a_result_holds_the_label_the_verdict_and_the_figures(
    catalog: Suite, traced: Traced, resolve: ToolCall, fetch: ToolCall
) -> None:
    trace = traced(
        resolve,
        fetch,
        requests=(request(10), request(None, status=429, model=None), request(20, model="m-2"), request(1)),
        shell_commands=(ShellCommand(command="ls"),),
        cost_usd=0.125,
    )
    assert result_of(catalog, trace) == Result(
        trial=trace.trial,
        attempt=1,
        outcome="finished",
        verdict="passed",
        labels=(ROUTE_PASSED,),
        tool_calls=2,
        shell_commands=1,
        input_tokens=31,
        cached_tokens=31,
        output_tokens=31,
        reasoning_tokens=31,
        latency_s=1.0,
        request_latency_s=(0.5, 0.5, 0.5),
        waited_s=1.0,
        cost_usd=0.125,
        answered_models=("m-1", "m-2"),
    )


def test_tokens_are_unknown_when_an_answered_request_does_not_report_them(catalog: Suite, traced: Traced) -> None:
    result = result_of(catalog, traced(requests=(request(10), request(None))))
    assert (result.input_tokens, result.reasoning_tokens) == (None, None)


def test_latency_is_never_negative(catalog: Suite, traced: Traced) -> None:
    assert result_of(catalog, traced(requests=(request(1),), duration_s=0.1)).latency_s == 0.0


def test_an_attempt_that_infrastructure_ended_has_no_label(catalog: Suite, traced: Traced) -> None:
    trace = traced(outcome="infra_failed", failure="the worker was lost", turns=())
    assert result_of(catalog, trace) == Result(
        trial=trace.trial,
        attempt=1,
        outcome="infra_failed",
        verdict="infra_failed",
        failure="the worker was lost",
        tool_calls=0,
        input_tokens=0,
        cached_tokens=0,
        output_tokens=0,
        reasoning_tokens=0,
        latency_s=2.0,
    )


def test_the_digest_names_every_grader_and_its_version() -> None:
    assert grader_digest() == digest({"tool_route": "2", "answer": "2"})
