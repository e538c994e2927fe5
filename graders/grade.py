"""From a stored trace to a trial's result: labels, verdict, figures. Pure, so that regrading is the same call."""

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import ModelRequest, Outcome, Trace
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Label, Result, Verdict
from graders import tool_route


def grade_trace(case: Case, trace: Trace) -> tuple[Label, ...]:
    """Every grader's label, in a fixed order. Raises ValueError for a trace that infrastructure ended."""
    return (tool_route.judge_route(case, trace),)


def verdict_of(outcome: Outcome, labels: tuple[Label, ...]) -> Verdict:
    """What labels add up to: a FAIL decides, then an INCONCLUSIVE; no label at all is no evidence, and no pass."""
    if outcome == "infra_failed":
        return "infra_failed"
    values = {label.value for label in labels}
    if "FAIL" in values:
        return "failed"
    return "passed" if values == {"PASS"} else "inconclusive"


def result_of(case: Case, trace: Trace) -> Result:
    """The result of a trial whose counted attempt is this trace; without labels where infrastructure ended it."""
    labels = () if trace.outcome == "infra_failed" else grade_trace(case, trace)
    requests = trace.requests
    return Result(
        trial=trace.trial,
        attempt=trace.attempt,
        outcome=trace.outcome,
        verdict=verdict_of(trace.outcome, labels),
        labels=labels,
        failure=trace.failure,
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
    return digest({tool_route.GRADER: tool_route.VERSION})


def _answered(request: ModelRequest) -> bool:
    """Whether the provider did any work: an error or silence costs no tokens, an answer cut half-way does."""
    return request.status is not None and 200 <= request.status < 300


def _summed(counts: list[int | None]) -> int | None:
    """The sum; None where a count is unknown, because a sum of the rest would look like the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
