"""Whether a trial took the expected route through the tools; one grader for every level and every plugin.

What was called is what the tool gateway served (`served_calls`): the harness's own account is asked only for
what never reached the gateway, malformed arguments and calls of tools that do not exist. Where the two do not
agree, telemetry is incomplete, and nothing is concluded.
"""

import json
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from evalfarm.contracts.route import Check, Expectation, Scalar
from evalfarm.contracts.run import ToolCall, Trace
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Label
from graders.call_rules import broken_rules
from graders.evidence import gaps, read, refuse_strange
from graders.paths import found_instead, groups_at

GRADER = "tool_route"
VERSION = "2"  #: another meaning is another version
_SHOWN = 120  #: characters of what a plugin or a model wrote, in a reason

_Key = tuple[bool, Scalar]
"""A value as sets hold it: in JSON true is not 1, though in Python the two are equal."""


def judge_route(case: Case, trace: Trace) -> Label:
    """Judge one trace against its case: `case.direct.expect` for the harness `direct`, else `case.expect`.

    All reasons are collected, in an order that does not depend on the order of the calls. INCONCLUSIVE,
    with the gaps as reasons, where the trace is not whole, whatever else was seen. Raises ValueError for
    a trace that infrastructure ended, and for one that is not this case's.
    """
    refuse_strange(case, trace)
    if missing := gaps(trace):
        return Label(grader=GRADER, version=VERSION, value="INCONCLUSIVE", reasons=missing)
    reasons = tuple(_reasons(case, _expectation(case, trace), trace))
    return Label(grader=GRADER, version=VERSION, value="FAIL" if reasons else "PASS", reasons=reasons)


def _expectation(case: Case, trace: Trace) -> Expectation:
    if trace.trial.arm.harness != "direct":
        return case.expect
    if case.direct is None:
        raise ValueError(f"case {case.id!r} has no direct call, so it has no trial at the level `direct`")
    return case.direct.expect


def _reasons(case: Case, expect: Expectation, trace: Trace) -> Iterator[str]:
    calls = trace.served_calls
    yield from _unfinished(case, trace)
    yield from _route(expect, calls)
    yield from broken_rules(expect, calls)
    for check in expect.arguments:
        documents = [call.arguments for call in calls if call.name == check.tool]
        yield from _compared(check, documents, was="was asked for", was_not="was not asked for")
    for check in expect.results:
        documents = [call.result for call in calls if call.name == check.tool and call.error is None]
        yield from _compared(check, documents, was="returned", was_not="did not return")
    yield from _malformed((*trace.tool_calls, *calls))
    yield from _failed(trace)


def _unfinished(case: Case, trace: Trace) -> Iterator[str]:
    because = f": {_short(trace.failure)}" if trace.failure else ""
    match trace.outcome:
        case "gave_up":
            yield f"the run gave up before it answered{because}"
        case "timed_out":
            yield f"the run timed out{because}"
        case "crashed":
            yield f"the harness crashed on this case{because}"
    # Where the answer has a label of its own, an empty one is its fault and not the route's.
    if trace.trial.arm.harness != "direct" and not case.facts and not trace.answer.strip():
        yield "the answer is empty"


def _route(expect: Expectation, calls: tuple[ToolCall, ...]) -> Iterator[str]:
    called = {call.name for call in calls}
    succeeded = {call.name for call in calls if call.error is None}
    for tool in expect.tools:
        if tool not in called:
            yield f"{tool} was never called"
        elif tool not in succeeded:
            yield f"{tool} was called, but no call of it succeeded"
    for tool in expect.never:
        if tool in called:
            yield f"{tool} was called, and this case expects that it is not"


def _compared(check: Check, documents: list[JsonValue], *, was: str, was_not: str) -> Iterator[str]:
    for error in _errors(check, documents):
        yield f"{check.tool} {was} a record with {check.without}: {error}"
    seen = {_key(value) for document in documents for value in _values(check, document)}
    expected = {_key(value) for value in check.exactly or check.includes or check.within or ()}
    if check.includes is None and (extra := seen - expected):
        which = "which is" if len(extra) == 1 else "which are"
        yield f"{check.tool} {was} {_listed(extra)}, {which} outside the expected set ({_listed(expected)})"
    if check.within is None and (missing := expected - seen):
        read_ones = [read(document) for document in documents]
        lost = read_ones and not any(groups_at(document, check.at) for document in read_ones)
        instead = min((found_instead(document, check.at) for document in read_ones), default="")
        nothing = f": nothing was found at `{check.at}`, {instead}" if lost else ""
        yield f"{check.tool} {was_not} {_listed(missing)}{nothing}"


def _values(check: Check, document: JsonValue) -> Iterator[JsonValue]:
    """What a check compares in one document; records with an error are left out, as they hold no value."""
    for group in groups_at(read(document), check.at):
        records = [record for record in group if not _has_error(check, record)]
        for record in _highest(records, check.highest) if check.highest else records:
            value = record if check.field is None else _field(record, check.field)
            if value is not None:
                yield value


def _highest(records: list[JsonValue], field: str) -> list[JsonValue]:
    """The records whose field is the largest, ties included; a record without a number there has no rank."""
    ranked = [
        (value, record)
        for record in records
        if isinstance(value := _field(record, field), int | float) and not isinstance(value, bool)
    ]
    top = max((value for value, _ in ranked), default=None)
    return [record for value, record in ranked if value == top]


def _errors(check: Check, documents: list[JsonValue]) -> list[str]:
    if check.without is None:
        return []
    groups = [group for document in documents for group in groups_at(read(document), check.at)]
    errors = [_field(record, check.without) for group in groups for record in group]
    return sorted({_short(_text(error)) for error in errors if error is not None})


def _has_error(check: Check, record: JsonValue) -> bool:
    return check.without is not None and _field(record, check.without) is not None


def _malformed(calls: tuple[ToolCall, ...]) -> Iterator[str]:
    # None is a call without arguments, which MCP allows
    found = {(c.name, _short(_text(c.arguments))) for c in calls if _is_malformed(c)}
    for name, arguments in sorted(found):
        yield f"{name} was called with arguments that are no JSON object: {arguments}"


def _failed(trace: Trace) -> Iterator[str]:
    served = _failures(trace.served_calls)
    # both witnesses tell of one failure in different words, so the harness is asked only about tools
    # of which the gateway saw none fail
    names = {name for name, _ in served}
    told = {failure for failure in _failures(trace.tool_calls) if failure[0] not in names}
    for name, error in sorted(served | told):
        yield f"{name} failed: {error}"


def _failures(calls: tuple[ToolCall, ...]) -> set[tuple[str, str]]:
    return {
        (call.name, _short(call.error) or "it gave no reason")
        for call in calls
        if call.error is not None and not _is_malformed(call)
    }


def _is_malformed(call: ToolCall) -> bool:
    return call.arguments is not None and not isinstance(call.arguments, dict)


def _field(record: JsonValue, field: str) -> JsonValue:
    return record.get(field) if isinstance(record, dict) else None


def _key(value: JsonValue) -> _Key:
    plain = value if isinstance(value, str | int | float | bool) else _text(value)
    return isinstance(value, bool), plain


def _listed(keys: Iterable[_Key]) -> str:
    return ", ".join(sorted(repr(v) if isinstance(v, str) else json.dumps(v) for _, v in keys)) or "nothing"


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(text: str | None) -> str:
    """The first line, cut to what a table can show."""
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
