"""A trace to a bundle of flat rows, and back. Only the harness's own event stream is left out."""

import json
from collections.abc import Iterator

from evalfarm.contracts.bundle import Bundle, CallRow, Decision, Facts, MessageRow, RequestRow, Witness
from evalfarm.contracts.conversation import SHELL, Origin, as_json, storable
from evalfarm.contracts.run import Arm, ModelRequest, ShellCommand, Telemetry, ToolCall, Trace, Trial, Turn

_ORIGIN = tuple(Origin.model_fields)


def bundle_of(trace: Trace, origin: Origin) -> Bundle:
    """The rows of one conversation. Half of a surrogate pair, which nothing can store, becomes a question mark."""
    name = f"{trace.run}/{trace.trial.index}/{trace.attempt}"
    messages = tuple(_messages(name, trace))
    return Bundle(
        facts=_facts(name, trace, origin),
        requests=tuple(
            RequestRow(conversation=name, n=n, **request.model_dump()) for n, request in enumerate(trace.requests)
        ),
        tool_calls=tuple(_calls(name, trace)),
        decisions=tuple(_decisions(trace)),
        messages=messages,
        transcript=_transcript(messages, trace),
    )


def trace_of(bundle: Bundle) -> tuple[Trace, Origin]:
    """The trace that a bundle was made of, without its events and what was counted of them, and where it comes from."""
    facts = bundle.facts
    calls = {witness: [row for row in bundle.tool_calls if row.witness == witness] for witness in _WITNESSES}
    trace = Trace(
        run=facts.run,
        trial=Trial(
            index=facts.index,
            case=facts.case,
            repeat=facts.repeat,
            arm=Arm(model=facts.model, harness=facts.harness, variant=facts.variant),
            seed=facts.seed,
        ),
        attempt=facts.attempt,
        session=facts.session,
        outcome=facts.outcome,
        failure=facts.failure,
        failure_kind=facts.failure_kind,
        turns=tuple(_turns(bundle)),
        tool_calls=tuple(_call(row) for row in calls["harness"]),
        served_calls=tuple(_call(row) for row in calls["gateway"]),
        requests=tuple(
            ModelRequest.model_validate(row.model_dump(exclude={"conversation", "n"})) for row in bundle.requests
        ),
        shell_commands=tuple(_command(row) for row in calls["shell"]),
        telemetry=Telemetry(complete=facts.telemetry_complete, gaps=facts.gaps),
        versions=facts.versions,
        simulated=facts.simulated,
        isolation=facts.isolation,
        started_at=facts.started_at,
        duration_s=facts.duration_s,
        cost_usd=facts.cost_usd,
        redacted=facts.redacted,
    )
    return trace, Origin.model_validate(facts.model_dump(include=set(_ORIGIN)))


_WITNESSES: tuple[Witness, ...] = ("harness", "gateway", "shell")


def _facts(name: str, trace: Trace, origin: Origin) -> Facts:
    trial = trace.trial
    said = origin.model_dump() | {"reasons": tuple(storable(reason) for reason in origin.reasons)}
    return Facts(
        conversation=name,
        run=trace.run,
        **trial.model_dump(exclude={"arm"}),
        **trial.arm.model_dump(),
        **said,
        attempt=trace.attempt,
        session=trace.session,
        started_at=trace.started_at,
        duration_s=trace.duration_s,
        cost_usd=trace.cost_usd,
        outcome=trace.outcome,
        failure=None if trace.failure is None else storable(trace.failure),
        failure_kind=trace.failure_kind,
        telemetry_complete=trace.telemetry.complete,
        gaps=tuple(storable(gap) for gap in trace.telemetry.gaps),
        versions=trace.versions,
        simulated=trace.simulated,
        isolation=trace.isolation,
        redacted=trace.redacted,
    )


def _calls(name: str, trace: Trace) -> Iterator[CallRow]:
    told: list[tuple[Witness, ToolCall]] = [("harness", call) for call in trace.tool_calls]
    told += [("gateway", call) for call in trace.served_calls]
    for n, (witness, call) in enumerate(told):
        yield CallRow(
            conversation=name,
            n=n,
            witness=witness,
            name=storable(call.name),
            input=as_json(call.arguments),
            result=as_json(call.result),
            error=None if call.error is None else storable(call.error),
            exit_code=None,
            **call.model_dump(include={"turn", "server", "call_id", "started_s", "duration_s"}),
        )
    for n, command in enumerate(trace.shell_commands, len(told)):
        yield CallRow(
            conversation=name,
            n=n,
            witness="shell",
            server=None,
            name=SHELL,
            call_id=None,
            input=as_json(command.command),
            result=as_json(command.output),
            error=None,
            started_s=0.0,
            **command.model_dump(include={"turn", "exit_code", "duration_s"}),
        )


def _call(row: CallRow) -> ToolCall:
    return ToolCall(
        name=row.name,
        arguments=json.loads(row.input),
        result=json.loads(row.result),
        **row.model_dump(include={"error", "turn", "server", "call_id", "started_s", "duration_s"}),
    )


def _command(row: CallRow) -> ShellCommand:
    return ShellCommand(
        command=json.loads(row.input),
        output=json.loads(row.result),
        **row.model_dump(include={"turn", "exit_code", "duration_s"}),
    )


def _messages(name: str, trace: Trace) -> Iterator[MessageRow]:
    """The question of every turn and its answer; no row where there is none."""
    n = 0
    for turn, said in enumerate(trace.turns):
        yield MessageRow(conversation=name, n=n, turn=turn, role="user", text=storable(said.query))
        n += 1
        if said.answer:
            yield MessageRow(conversation=name, n=n, turn=turn, role="assistant", text=storable(said.answer))
            n += 1


def _turns(bundle: Bundle) -> Iterator[Turn]:
    answers = {row.turn: row.text for row in bundle.messages if row.role == "assistant"}
    for row in bundle.messages:
        if row.role == "user":
            yield Turn(query=row.text, answer=answers.get(row.turn, ""))


def _decisions(trace: Trace) -> Iterator[Decision]:
    """The calls that the harness tells of as failed and that no server was ever asked for."""
    served = [(call.name, as_json(call.arguments)) for call in trace.served_calls]
    for call in trace.tool_calls:
        key = (call.name, as_json(call.arguments))
        if key in served:
            served.remove(key)
        elif call.error is not None and call.server is None:
            yield Decision(turn=call.turn, tool=storable(call.name), reason=storable(call.error))


def _transcript(messages: tuple[MessageRow, ...], trace: Trace) -> str:
    """The thread, message by message, with the tools that were called in between."""
    called: dict[int, list[str]] = {}
    for call in trace.tool_calls or trace.served_calls:
        called.setdefault(call.turn, []).append(storable(call.name))
    parts = []
    for message in messages:
        if message.role == "user":
            parts.append(f"## User\n\n{message.text}")
            parts += [f"*called {name}*" for name in called.get(message.turn, ())]
        else:
            parts.append(f"## Assistant\n\n{message.text}")
    return "\n\n".join(parts)
