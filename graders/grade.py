"""From a stored trace to a trial's result: labels, verdict, figures. Pure, so that regrading is the same call."""

from collections.abc import Mapping

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import ModelRequest, Trace
from evalfarm.contracts.suite import Suite
from evalfarm.contracts.verdict import Label, Result
from graders import answer, tool_route
from graders.answer import NO_FUNCTIONS
from graders.reading.facts import AnswerFunction
from graders.verdict_table import verdict_of


def grade_trace(
    suite: Suite, trace: Trace, functions: Mapping[str, AnswerFunction] = NO_FUNCTIONS
) -> tuple[Label, ...]:
    """Every grader's label, in a fixed order. Raises ValueError for a trace that infrastructure ended.

    `functions` are those of the suite's `answer_functions`.
    """
    case = suite.case(trace.trial.case)
    labels = (tool_route.judge_route(case, trace), answer.judge_answer(suite, case, trace, functions))
    return tuple(label for label in labels if label is not None)


def result_of(suite: Suite, trace: Trace, functions: Mapping[str, AnswerFunction] = NO_FUNCTIONS) -> Result:
    """The result of a trial whose counted attempt is this trace; without labels where infrastructure ended it."""
    labels = () if trace.outcome == "infra_failed" else grade_trace(suite, trace, functions)
    requests = trace.requests
    return Result(
        trial=trace.trial,
        attempt=trace.attempt,
        outcome=trace.outcome,
        verdict=verdict_of(trace.outcome, labels, suite.verdict),
        labels=labels,
        failure=trace.failure,
        failure_kind=trace.failure_kind,
        tool_calls=len(trace.served_calls),
        shell_commands=len(trace.shell_commands),
        input_tokens=_summed([r.input_tokens for r in requests if _answered(r)]),
        cached_tokens=_summed([r.cached_tokens for r in requests if _answered(r)]),
        output_tokens=_summed([r.output_tokens for r in requests if _answered(r)]),
        reasoning_tokens=_summed([r.reasoning_tokens for r in requests if _answered(r)]),
        latency_s=max(0.0, trace.duration_s - trace.waited_s),
        request_latency_s=tuple(r.latency_s for r in requests if _answered(r)),
        waited_s=trace.waited_s,
        cost_usd=trace.cost_usd,
        answered_models=tuple(dict.fromkeys(r.model for r in requests if r.model is not None)),
    )


def grader_digest() -> str:
    """A digest over the names and versions of all graders: with it, equal labels mean the same thing."""
    return digest({tool_route.GRADER: tool_route.VERSION, answer.GRADER: answer.VERSION})


def _answered(request: ModelRequest) -> bool:
    """Whether the provider did any work: an error or silence costs no tokens, an answer cut half-way does."""
    return request.status is not None and 200 <= request.status < 300


def _summed(counts: list[int | None]) -> int | None:
    """The sum; None where a count is unknown, because a sum of the rest would look like the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
