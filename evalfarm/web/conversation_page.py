"""One conversation as its page shows it: the thread, every call, three witnesses side by side, what was refused."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from evalfarm.analysis.conversations.bundles import trace_of
from evalfarm.contracts.bundle import Bundle, CallRow
from evalfarm.contracts.conversation import as_json
from evalfarm.contracts.run import ShellCommand, ToolCall, Trace
from evalfarm.reports import numbers
from evalfarm.reports.run.trace_view import witnessed
from evalfarm.web.pages import LONGEST

#: What a command's output says when the sandbox, or the network that is not there, stood in its way.
_SANDBOX = re.compile(
    r"operation not permitted|permission denied|read-only file system|network is unreachable|connection refused"
    r"|could not resolve|name resolution|sandbox",
    re.IGNORECASE,
)


class Step(NamedTuple):
    """One call or command, as the ledger lists it."""

    name: str
    kind: str  #: `tool` or `shell`
    about: str  #: when, how long, how it ended
    witness: str
    agreed: bool
    ended_well: bool
    given: str
    got: str


class Part(NamedTuple):
    """One turn of the thread."""

    number: int
    question: str
    answer: str
    steps: tuple[Step, ...]


class Said(NamedTuple):
    """One thing that a witness tells of."""

    at: str
    what: str
    how: str
    well: bool


class Witness(NamedTuple):
    """One of the three accounts."""

    name: str
    about: str
    said: tuple[Said, ...]


class Refused(NamedTuple):
    """Something that was asked for and not let through."""

    what: str
    why: str


class Shown(NamedTuple):
    """All of it."""

    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    witnesses: tuple[Witness, ...]
    refused: tuple[Refused, ...]


def shown(bundle: Bundle) -> Shown:
    """What the page shows of a conversation."""
    trace, _ = trace_of(bundle)
    return Shown(tuple(_facts(bundle)), tuple(_parts(trace)), _witnesses(bundle), tuple(_refused(bundle)))


def _facts(bundle: Bundle) -> Iterator[tuple[str, str]]:
    facts = bundle.facts
    yield "started", numbers.moment(facts.started_at)
    yield "took", f"{numbers.seconds(facts.duration_s)} s"
    yield "cost", numbers.cost(facts.cost_usd)
    yield "outcome", facts.outcome if facts.failure is None else f"{facts.outcome}: {facts.failure}"
    yield "counts", "yes: this attempt closed its trial" if facts.counted else "no: in no figure"
    yield "suite", f"{facts.suite} {facts.suite_version}"
    yield "plugin", f"{facts.plugin} {facts.plugin_version}, {facts.plugin_digest or 'digest not known'}"
    yield "isolation", facts.isolation
    if facts.redacted:
        yield "redacted", ", ".join(f"{count} × {kind}" for kind, count in sorted(facts.redacted.items()))
    if facts.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(facts.versions.items()))


def _parts(trace: Trace) -> Iterator[Part]:
    calls = witnessed(trace.tool_calls, trace.served_calls)
    turns = [*(seen.call.turn for seen in calls), *(command.turn for command in trace.shell_commands)]
    for turn in range(max(len(trace.turns), 1 + max(turns, default=-1))):
        said = trace.turns[turn] if turn < len(trace.turns) else None
        steps = [_call(seen.call, seen.witness) for seen in calls if seen.call.turn == turn]
        steps += [_command(command) for command in trace.shell_commands if command.turn == turn]
        yield Part(turn + 1, said.query if said else "", said.answer if said else "", tuple(steps))


def _call(call: ToolCall, witness: str) -> Step:
    took = "" if call.duration_s is None else f", {numbers.seconds(call.duration_s)} s"
    whose = f" of {call.server}" if call.server else ""
    return Step(
        name=call.name,
        kind="tool",
        about=f"at {numbers.seconds(call.started_s)} s{took}{whose}",
        witness=witness.partition(":")[0],
        agreed=witness.endswith("the same"),
        ended_well=call.error is None,
        given=_readable(as_json(call.arguments)),
        got=_readable(as_json(call.result)) if call.error is None else call.error,
    )


def _command(command: ShellCommand) -> Step:
    took = "" if command.duration_s is None else f", {numbers.seconds(command.duration_s)} s"
    told = "told by the harness; no gateway is between it and its shell"
    return Step(
        "shell",
        "shell",
        f"{_ended(command.exit_code)}{took}",
        told,
        True,
        command.exit_code == 0,
        command.command,
        command.output,
    )


def _readable(text: str) -> str:
    """JSON with its lines broken, text as itself; what is too long to be shown stays as it is."""
    if len(text) > LONGEST:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _witnesses(bundle: Bundle) -> tuple[Witness, ...]:
    told = {kind: [row for row in bundle.tool_calls if row.witness == kind] for kind in ("harness", "shell", "gateway")}
    requests = tuple(
        Said(
            at=numbers.seconds(row.started_s),
            what=row.model or "model",
            how=f"{row.status or 'no answer'}, {numbers.seconds(row.latency_s)} s,"
            f" {numbers.tokens(row.input_tokens)} in, {numbers.tokens(row.output_tokens)} out",
            well=row.status is not None and row.status < 400,
        )
        for row in bundle.requests
    )
    return (
        Witness("The harness", "what it says it called", tuple(map(_said, told["harness"] + told["shell"]))),
        Witness("The tool gateway", "what it served", tuple(map(_said, told["gateway"]))),
        Witness("The model gateway", "what was asked of the model", requests),
    )


def _said(row: CallRow) -> Said:
    if row.witness == "shell":
        return Said("", "shell", _ended(row.exit_code), row.exit_code == 0)
    well = row.error is None
    return Said(numbers.seconds(row.started_s), row.name, "answered" if well else "error", well)


def _ended(exit_code: int | None) -> str:
    return "no exit code" if exit_code is None else f"exit {exit_code}"


def _refused(bundle: Bundle) -> Iterator[Refused]:
    for decision in bundle.decisions:
        yield Refused(f"call of {decision.tool}, turn {decision.turn + 1}", decision.reason)
    for row in bundle.tool_calls:
        if row.witness == "shell" and row.exit_code not in (0, None):
            output = _readable(row.result)
            if line := next((line for line in output.splitlines() if _SANDBOX.search(line)), None):
                yield Refused(_readable(row.input), line)
