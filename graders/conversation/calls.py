"""The calls of a conversation, each counted once whoever tells of it and however often, and what each counts as."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from evalfarm.contracts.conversation import SHELL, Kind, as_json, storable
from evalfarm.contracts.conversation_rules import ERROR_CLASSES, ConversationRules, Guard
from evalfarm.contracts.run import HARNESS_TOOLS, ToolCall, Trace
from graders.conversation.rules import Matcher

_NOT_A_LETTER = re.compile("[^A-Za-z0-9]+")
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Call:
    """One call and what the rules make of it."""

    kind: Kind
    server: str | None
    tool: str
    input: str  #: the arguments, or the command's text, as JSON
    classes: frozenset[str]  #: the error classes that its result is in
    error: bool  #: it ended in an error
    writes: bool
    breaks: frozenset[str]  #: the suite's guards that it breaks

    @property
    def failed(self) -> bool:
        """Whether its result is in any class."""
        return bool(self.classes)


def calls_of(trace: Trace, matcher: Matcher) -> list[Call]:
    """Every call once.

    The harness's account first; a call that only the tool gateway served counts too, and one that both tell of, by
    server, name and input, counts with the result that the harness was given. What one witness tells twice under one
    id is one call. Shell commands are calls of the harness's own.
    """
    told = list(_each_id_once(trace.tool_calls))
    known = Counter(_key(call) for call in told)
    for call in _each_id_once(trace.served_calls):
        if known[_key(call)] > 0:
            known[_key(call)] -= 1
        else:
            told.append(call)
    return [_read(call, matcher) for call in told] + [
        Call("builtin", None, SHELL, as_json(command.command), frozenset(), False, False, frozenset())
        for command in trace.shell_commands
    ]


def _each_id_once(calls: Iterable[ToolCall]) -> Iterator[ToolCall]:
    seen: set[str] = set()
    for call in calls:
        if call.call_id is not None:
            if call.call_id in seen:
                continue
            seen.add(call.call_id)
        yield call


def _key(call: ToolCall) -> tuple[str | None, str, str]:
    return call.server, call.name, as_json(call.arguments)


def _read(call: ToolCall, matcher: Matcher) -> Call:
    if call.server == HARNESS_TOOLS:
        return Call(
            "builtin", None, storable(call.name), as_json(call.arguments), frozenset(), False, False, frozenset()
        )
    text = storable(call.error) if call.error is not None else _text(call.result)
    return Call(
        kind="plugin" if call.server is None else "mcp",
        server=call.server,
        tool=storable(call.name),
        input=as_json(call.arguments),
        classes=frozenset(name for name in ERROR_CLASSES if matcher.found(name, text)),
        error=call.error is not None,
        writes=_writes(call, matcher.rules),
        breaks=frozenset(name for name, guard in matcher.rules.guards.items() if _breaks(guard, call)),
    )


def _text(result: JsonValue) -> str:
    return storable(result) if isinstance(result, str) else as_json(result)


def _writes(call: ToolCall, rules: ConversationRules) -> bool:
    words = {word.lower() for word in _NOT_A_LETTER.split(_HUMP.sub("_", call.name))}
    methods = {_argument(call, name) for name in rules.method_arguments}
    return bool(words & set(rules.write_verbs)) or any(
        method.isascii() and method.upper() in rules.write_methods for method in methods
    )


def _breaks(guard: Guard, call: ToolCall) -> bool:
    if call.name not in guard.tools:
        return False
    text = as_json(call.arguments) if guard.argument is None else _argument(call, guard.argument)
    if guard.must_match is not None:
        return re.search(guard.must_match, text, re.ASCII) is None
    return guard.must_not_match is not None and re.search(guard.must_not_match, text, re.ASCII) is not None


def _argument(call: ToolCall, name: str) -> str:
    """The text of one argument; empty where it is missing or no text."""
    value = call.arguments.get(name) if isinstance(call.arguments, dict) else None
    return storable(value) if isinstance(value, str) else ""
