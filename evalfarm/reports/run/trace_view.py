"""One recorded trial, readable: what was asked, what was called, what came of it.

Everything a model or a tool wrote is printed harmless (no control character reaches the terminal) and cut
where it is long, with the count of what was cut; the stored trace has it whole.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from evalfarm.contracts.run import ModelRequest, ShellCommand, ToolCall, Trace
from evalfarm.contracts.verdict import Label, Result
from evalfarm.reports import numbers
from evalfarm.reports.safe_text import cut, harmless, one_line

WIDTH = 100
LONGEST_VALUE = 600  #: characters of one value, output or answer
_LABEL_STYLES = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}


class WitnessedCall(NamedTuple):
    """One tool call as the harness tells it, and what the tool gateway says to that."""

    call: ToolCall
    witness: str


class _Line(NamedTuple):
    """One printed paragraph."""

    text: str
    indent: int = 0
    style: str = ""


def render_trace(trace: Trace, result: Result | None, *, console: Console) -> None:
    """Print a trace, and its judgement where there is one, in at most 100 columns of the console's width."""
    width = min(console.width, WIDTH)
    for line in (
        *_header(trace),
        *_judgement(result),
        *_turns(trace),
        *_requests(trace.requests),
        *_telemetry(trace),
        *_versions(trace),
    ):
        text = Text(harmless(line.text), style=line.style)
        padded = Padding(text, (0, 0, 0, line.indent), expand=False)
        console.print(padded, width=width, markup=False, highlight=False)


def witnessed(told: Sequence[ToolCall], served: Sequence[ToolCall]) -> tuple[WitnessedCall, ...]:
    """The harness's calls, in order, each with the tool gateway's word on it; then those only the gateway saw.

    A call is the same one when its name and arguments are; each call that was served answers for one.
    """
    unmatched = list(served)
    seen = []
    for call in told:
        twin = next((other for other in unmatched if _key(other) == _key(call)), None)
        if twin is None:
            seen.append(WitnessedCall(call, "NOT seen by the tool gateway"))
            continue
        unmatched.remove(twin)
        same = _json(twin.result) == _json(call.result) and (twin.error is None) == (call.error is None)
        seen.append(WitnessedCall(call, "the tool gateway saw the same" if same else _differing(twin)))
    return (*seen, *(WitnessedCall(call, "seen by the tool gateway ONLY") for call in unmatched))


def _key(call: ToolCall) -> tuple[str, str]:
    return call.name, _json(call.arguments)


def _differing(served: ToolCall) -> str:
    return f"the tool gateway saw the same call with ANOTHER result: {_value(served.error or served.result)}"


def _json(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _value(value: JsonValue) -> str:
    return cut(one_line(_json(value)), LONGEST_VALUE)


def _header(trace: Trace) -> list[_Line]:
    trial = trace.trial
    where = f"{trial.arm.model} · {trial.arm.harness} · {trial.arm.variant}"
    lines = [
        _Line(f"Trial {trace.run}/{trial.index}: {trial.case}, repeat {trial.repeat + 1}", style="bold"),
        _Line(f"{where}, attempt {trace.attempt}, isolation {trace.isolation}"),
        _Line(
            f"Started {numbers.moment(trace.started_at)}, took {numbers.seconds(trace.duration_s)} s"
            f" ({numbers.seconds(trace.waited_s)} s of it waiting for limits and retries),"
            f" cost {numbers.cost(trace.cost_usd)}"
        ),
    ]
    if trace.simulated:
        lines.append(_Line("SIMULATED: a simulated model took part.", style="yellow"))
    failure = f": {one_line(trace.failure)}" if trace.failure else ""
    return [*lines, _Line(f"Outcome: {trace.outcome}{failure}")]


def _judgement(result: Result | None) -> list[_Line]:
    if result is None:
        return [_Line("Verdict: none yet")]
    return [
        _Line(f"Verdict: {result.verdict} (attempt {result.attempt} counts)", style="bold"),
        *(line for label in result.labels for line in _label(label)),
    ]


def _label(label: Label) -> list[_Line]:
    head = _Line(f"{label.grader} {label.version}: {label.value}", 2, _LABEL_STYLES[label.value])
    return [head, *(_Line(cut(one_line(reason), LONGEST_VALUE), 4) for reason in label.reasons)]


def _turns(trace: Trace) -> list[_Line]:
    calls = witnessed(trace.tool_calls, trace.served_calls)
    lines = []
    happened_in = [seen.call.turn for seen in calls] + [command.turn for command in trace.shell_commands]
    for at in range(max(len(trace.turns), 1 + max(happened_in, default=-1))):
        lines.append(_Line(f"\nTurn {at + 1}", style="bold cyan"))
        turn = trace.turns[at] if at < len(trace.turns) else None
        if turn is not None:
            lines.append(_Line(f"question: {cut(turn.query, LONGEST_VALUE)}", 2))
        for seen in calls:
            lines.extend(_call(seen) if seen.call.turn == at else ())
        for command in trace.shell_commands:
            lines.extend(_command(command) if command.turn == at else ())
        if turn is not None:
            lines.append(_Line(f"answer: {cut(turn.answer, LONGEST_VALUE) or '(none)'}", 2))
    return lines


def _call(seen: WitnessedCall) -> list[_Line]:
    call = seen.call
    took = "" if call.duration_s is None else f", {numbers.seconds(call.duration_s)} s"
    got = f"error: {_value(call.error)}" if call.error is not None else f"result: {_value(call.result)}"
    return [
        _Line(f"tool {call.name} at {numbers.seconds(call.started_s)} s{took}", 2, "bold"),
        _Line(f"arguments: {_value(call.arguments)}", 4),
        _Line(got, 4, "red" if call.error is not None else ""),
        _Line(f"witness: {seen.witness}", 4, "" if seen.witness.endswith("the same") else "yellow"),
    ]


def _command(command: ShellCommand) -> list[_Line]:
    took = "" if command.duration_s is None else f", {numbers.seconds(command.duration_s)} s"
    end = "no exit code" if command.exit_code is None else f"exit {command.exit_code}"
    lines = [_Line(f"shell {cut(command.command, LONGEST_VALUE)}", 2, "bold"), _Line(f"{end}{took}", 4)]
    return [*lines, *([_Line(cut(command.output, LONGEST_VALUE), 4)] if command.output else [])]


def _requests(requests: Sequence[ModelRequest]) -> list[_Line]:
    if not requests:
        return []
    head = _Line("\nModel requests, as the model gateway saw them", style="bold cyan")
    return [head, *(line for number, request in enumerate(requests, 1) for line in _request(number, request))]


def _request(number: int, request: ModelRequest) -> list[_Line]:
    status = "no answer" if request.status is None else f"status {request.status}"
    waited = f", {numbers.seconds(request.waited_s)} s waited" if request.waited_s else ""
    model = f", answered by {request.model}" if request.model else ""
    lines = [
        _Line(
            f"{number}. at {numbers.seconds(request.started_s)} s: {status},"
            f" {numbers.seconds(request.latency_s)} s{waited}{model}",
            2,
        ),
        _Line(
            f"tokens: {numbers.tokens(request.input_tokens)} in ({numbers.tokens(request.cached_tokens)} cached),"
            f" {numbers.tokens(request.output_tokens)} out ({numbers.tokens(request.reasoning_tokens)} reasoning)",
            5,
        ),
    ]
    if request.tries:
        lines.append(_Line(f"earlier tries: {one_line(', '.join(request.tries))}", 5, "yellow"))
    if request.error:
        lines.append(_Line(f"error: {cut(one_line(request.error), LONGEST_VALUE)}", 5, "red"))
    return lines


def _telemetry(trace: Trace) -> list[_Line]:
    if trace.telemetry.complete:
        return [_Line("\nTelemetry: complete, the witnesses agree")]
    head = _Line("\nTelemetry: INCOMPLETE, so silence proves nothing", style="yellow")
    return [head, *(_Line(one_line(gap), 2) for gap in trace.telemetry.gaps)]


def _versions(trace: Trace) -> list[_Line]:
    named = ", ".join(f"{name} {version}" for name, version in sorted(trace.versions.items()))
    return [_Line(f"Versions: {one_line(named)}")] if named else []
