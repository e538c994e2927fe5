"""Which rules about single calls a route breaks: how many calls fit a rule, and in which order they came."""

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from evalfarm.contracts.route import CallRule, Expectation
from evalfarm.contracts.run import ToolCall


def broken_rules(expect: Expectation, calls: tuple[ToolCall, ...]) -> Iterator[str]:
    """One reason for each rule that the calls, in the order in which they were served, do not keep."""
    if expect.no_calls and calls:
        yield f"no call was expected, and there were calls of {_listed(calls)}"
    for rule in expect.calls:
        fitting = [call for call in calls if fits(rule, call)]
        if len(fitting) < rule.fewest:
            yield f"{_said(rule)} {_called(len(fitting))}, and at least {_often(rule.fewest)} was expected"
        if rule.at_most is not None and len(fitting) > rule.at_most:
            most = f"at most {_often(rule.at_most)} was expected" if rule.at_most else "it was not to be called so"
            yield f"{_said(rule)} {_called(len(fitting))}, and {most}"
    yield from _out_of_order(expect.sequence, calls)


def fits(rule: CallRule, call: ToolCall) -> bool:
    """Whether a call is one of those that a rule counts."""
    if call.name != rule.tool or (rule.turn is not None and call.turn != rule.turn - 1):
        return False
    if rule.exactly is not None:
        return _same(call.arguments if call.arguments is not None else {}, rule.exactly)
    if rule.including is None and rule.matching is None:
        return True
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    return all(
        name in arguments and _same(arguments[name], value) for name, value in (rule.including or {}).items()
    ) and (_matches(rule.matching or {}, arguments))


def _matches(patterns: Mapping[str, str], arguments: Mapping[str, JsonValue]) -> bool:
    return all(name in arguments and re.fullmatch(p, _text(arguments[name])) for name, p in patterns.items())


def _out_of_order(sequence: tuple[CallRule, ...], calls: tuple[ToolCall, ...]) -> Iterator[str]:
    remaining = iter(calls)
    for place, rule in enumerate(sequence):
        if not any(fits(rule, call) for call in remaining):
            before = f" after {_said(sequence[place - 1])}" if place else ""
            yield f"{_said(rule)} was not called{before}, as the expected sequence has it"
            return


def _said(rule: CallRule) -> str:
    arguments = [
        *(rule.exactly or rule.including or {}).items(),
        *((n, f"/{p}/") for n, p in (rule.matching or {}).items()),
    ]
    told = ", ".join(f"{name}={_text(value)}" for name, value in arguments)
    return f"{rule.tool}({told})" + (f" in turn {rule.turn}" if rule.turn is not None else "")


def _listed(calls: tuple[ToolCall, ...]) -> str:
    return ", ".join(sorted({call.name for call in calls}))


def _often(times: int) -> str:
    return {1: "once", 2: "twice"}.get(times, f"{times} times")


def _called(times: int) -> str:
    return "was not called" if times == 0 else f"was called {_often(times)}"


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: true is not 1, though in Python the two are equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
