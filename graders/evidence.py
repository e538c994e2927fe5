"""What a trace proves at all: whether it is whole, and which of the suite's fixtures were returned in it."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from evalfarm.contracts.answer import Fixture
from evalfarm.contracts.run import ToolCall, Trace
from evalfarm.contracts.suite import Case


def refuse_strange(case: Case, trace: Trace) -> None:
    """Raise ValueError for a trace that infrastructure ended, and for one that is not this case's."""
    if trace.outcome == "infra_failed":
        raise ValueError("an attempt that infrastructure ended says nothing about the plugin, and is not graded")
    if trace.trial.case != case.id:
        raise ValueError(f"the trace of case {trace.trial.case!r} cannot be graded as case {case.id!r}")


def gaps(trace: Trace) -> tuple[str, ...]:
    """Why nothing can be concluded from the trace; empty: it is whole.

    The witnesses disagree, or it holds fewer events than were counted when it was written down.
    """
    found = () if trace.telemetry.complete else (trace.telemetry.gaps or ("telemetry is incomplete",))
    if trace.telemetry.counted is None:
        return found
    counted, held = trace.telemetry.counted, trace.counts
    lost = tuple(
        f"the trace holds {held.get(name, 0)} of the {counted[name]} {name.replace('_', ' ')} observed"
        for name in counted
        if held.get(name) != counted[name]
    )
    return (*found, *lost)


def returned(fixtures: Mapping[str, Fixture], calls: tuple[ToolCall, ...], turn: int) -> dict[str, JsonValue]:
    """The fixtures that calls up to a turn (counted from 0) asked for, by name, each with what was returned for it."""
    found: dict[str, JsonValue] = {}
    for call in calls:
        if call.error is None and call.turn <= turn:
            for name, fixture in fixtures.items():
                if fixture.tool == call.name and fixture.arguments == call.arguments:
                    found[name] = read(call.result)
    return found


def read(document: JsonValue) -> JsonValue:
    """A result that is text is read as JSON where it is JSON: many servers give no structured content."""
    if not isinstance(document, str):
        return document
    try:
        found: JsonValue = json.loads(document)
    except (ValueError, RecursionError):
        return document
    return found
