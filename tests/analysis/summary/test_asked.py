from typing import Any

import pytest

from evalfarm.analysis.summary.asked import asked, expected
from evalfarm.contracts.answer import Fact
from evalfarm.contracts.route import CallRule, Check, Expectation
from evalfarm.contracts.run import Plan
from evalfarm.contracts.suite import Case, DirectCall, Plugin, Server, Suite
from evalfarm.contracts.verdict import Asked


def check(**more: Any) -> Check:
    return Check(tool="fetch", at="ids[*]", **more)


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        (Expectation(), []),
        (Expectation(no_calls=True), ["no tool is called"]),
        (Expectation(tools=("find", "fetch"), never=("buy",)), ["calls of find, fetch", "no call of buy"]),
        (Expectation(arguments=(check(exactly=("A", 2)),)), ["fetch is asked for exactly A, 2"]),
        (Expectation(arguments=(check(exactly=()),)), ["fetch is asked for nothing"]),
        (
            Expectation(results=(check(includes=tuple("abcdefghijkl"), highest="score"),)),
            ["fetch returns at least a, b, c, d, e, f, g, h, i, j and 2 more where score is highest"],
        ),
        (Expectation(results=(check(within=(True,)),)), ["fetch returns nothing but true"]),
        (
            Expectation(calls=(CallRule(tool="fetch", including={"id": "A"}, matching={"day": r"\d+"}, turn=2),)),
            [r"fetch(id=A, day=/\d+/) in turn 2, at least once"],
        ),
        (
            Expectation(
                calls=(
                    CallRule(tool="buy", at_most=0),
                    CallRule(tool="fetch", at_least=2, at_most=3),
                    CallRule(tool="find", at_most=1),
                )
            ),
            ["buy(), never", "fetch(), at least 2 times and at most 3 times", "find(), at most once"],
        ),
        (
            Expectation(sequence=(CallRule(tool="find"), CallRule(tool="fetch", exactly={"ids": ["A"]}))),
            ['in this order: find(), then fetch(ids=["A"])'],
        ),
    ],
)
def test_an_expectation_is_told_in_sentences(expect: Expectation, told: list[str]) -> None:
    assert list(expected(expect)) == told


def test_a_case_is_told_in_both_its_forms() -> None:
    facts: list[dict[str, Any]] = [
        {"id": "days", "number": 30},
        {"id": "open", "concludes": "returnable", "holds": True},
        {"id": "neither", "concludes": "returnable", "must": "absent"},
        {"id": "price", "number": 9.5, "must": "not_contradicted"},
        {"id": "gone", "unavailable": True},
        {"id": "which", "asks_for": ("order", "number")},
    ]
    cases = (
        Case(
            id="both",
            turns=("May I?", "Really?"),
            facts=tuple(Fact(rests_on=("request",), **fact) for fact in facts),
            direct=DirectCall(tool="find", arguments={"id": 7}, expect=Expectation(tools=("find",))),
        ),
        Case(id="alone", direct=DirectCall(tool="find")),
        Case(id="left-out", turns=("?",)),
    )
    suite = Suite(suite="s", version="1", plugin=Plugin(name="p"), server=Server(python="server.py"), cases=cases)
    arm = {"model": "m", "harness": "loop", "variant": "plain"}
    plan = Plan.model_validate({"run": "r", "suite": suite, "arms": [arm], "cases": ("both", "alone"), "repeats": 1})
    assert asked(plan) == (
        Asked(
            case="both",
            turns=("May I?", "Really?"),
            expected=(
                "the answer must hold: number 30.0 (days)",
                "the answer must hold: concludes returnable: yes (open)",
                "the answer must not hold: concludes returnable (neither)",
                "the answer must not contradict: number 9.5 (price)",
                "the answer must hold: that it cannot be had (gone)",
                "the answer must hold: asks for order or number (which)",
            ),
            call="find(id=7)",
            expected_of_call=("calls of find",),
        ),
        Asked(case="alone", call="find()"),
    )
