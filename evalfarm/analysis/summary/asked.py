"""What the cases of a run ask and expect, in sentences: a report shows them beside what came instead."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from evalfarm.contracts.answer import Fact
from evalfarm.contracts.route import CallRule, Check, Expectation, Scalar
from evalfarm.contracts.run import Plan
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Asked

_MOST_VALUES = 10
_LONGEST = 300  #: characters of a call's arguments, of a value

_MUST = {
    "present": "the answer must hold",
    "absent": "the answer must not hold",
    "not_contradicted": "the answer must not contradict",
}


def asked(plan: Plan) -> tuple[Asked, ...]:
    """Every case of a plan, in its order."""
    cases = {case.id: case for case in plan.suite.cases}
    return tuple(_asked(cases[name]) for name in plan.cases)


def described_variants(plan: Plan) -> dict[str, str]:
    """The plan's variants that have a description, with it."""
    named = dict.fromkeys(arm.variant for arm in plan.arms)
    return {name: text for name in named if (text := plan.suite.variants[name].description)}


def expected(expect: Expectation) -> Iterator[str]:
    """What a route must hold, a sentence each."""
    if expect.no_calls:
        yield "no tool is called"
    if expect.tools:
        yield f"calls of {', '.join(expect.tools)}"
    yield from (f"no call of {tool}" for tool in expect.never)
    yield from (f"{_call(rule)}, {_often(rule)}" for rule in expect.calls)
    if expect.sequence:
        yield f"in this order: {', then '.join(_call(rule) for rule in expect.sequence)}"
    yield from (_checked(check, "is asked for") for check in expect.arguments)
    yield from (_checked(check, "returns") for check in expect.results)


def _asked(case: Case) -> Asked:
    direct = case.direct
    return Asked(
        case=case.id,
        turns=case.turns,
        expected=(*expected(case.expect), *map(_meant, case.facts)) if case.turns else (),
        call=None if direct is None else f"{direct.tool}({_arguments(direct.arguments)})",
        expected_of_call=() if direct is None else tuple(expected(direct.expect)),
    )


def _checked(check: Check, does: str) -> str:
    """As in `fetch_bls_data is asked for exactly LNS14000000`."""
    told = [
        f"{words} {_listed(values)}" if values else "nothing"
        for words, values in (("exactly", check.exactly), ("at least", check.includes), ("nothing but", check.within))
        if values is not None
    ]
    highest = "" if check.highest is None else f" where {check.highest} is highest"
    return f"{check.tool} {does} {told[0]}{highest}"


def _call(rule: CallRule) -> str:
    """As in `order_lookup(order=DEMO-102)`, patterns between slashes."""
    patterns = {name: f"/{pattern}/" for name, pattern in (rule.matching or {}).items()}
    turn = "" if rule.turn is None else f" in turn {rule.turn}"
    return f"{rule.tool}({_arguments({**(rule.exactly or rule.including or {}), **patterns})}){turn}"


def _often(rule: CallRule) -> str:
    if rule.at_most == 0:
        return "never"
    least = f"at least {_times(rule.fewest)}" if rule.fewest else ""
    most = "" if rule.at_most is None else f"at most {_times(rule.at_most)}"
    return " and ".join(part for part in (least, most) if part)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _meant(fact: Fact) -> str:
    """As in `the answer must hold: number 30 (return-window)`."""
    value = getattr(fact, fact.kind)
    words = " or ".join(value) if isinstance(value, tuple) else _text(value)
    if fact.kind == "concludes":
        words = {True: f"{words}: yes", False: f"{words}: no", None: words}[fact.holds]
    told = "that it cannot be had" if fact.kind == "unavailable" else f"{fact.kind.replace('_', ' ')} {words}"
    return f"{_MUST[fact.must]}: {told} ({fact.id})"


def _arguments(arguments: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in arguments.items())


def _listed(values: Sequence[Scalar]) -> str:
    more = len(values) - _MOST_VALUES
    shown = ", ".join(map(_text, values[:_MOST_VALUES]))
    return f"{shown} and {more} more" if more > 0 else shown


def _text(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
