"""Rules about single calls: how many fit, in which turn, in which order."""

from typing import Any

import pytest
from pydantic import ValidationError

from evalfarm.contracts.route import Expectation
from evalfarm.contracts.run import ToolCall
from graders.call_rules import broken_rules

A, B, POLICY = (
    ToolCall(name="lookup", arguments={"id": "A", "deep": True}),
    ToolCall(name="lookup", arguments={"id": "B"}, turn=1),
    ToolCall(name="policy"),
)


def broken(expect: dict[str, Any], *calls: ToolCall) -> list[str]:
    return list(broken_rules(Expectation.model_validate(expect), calls))


@pytest.mark.parametrize(
    ("rule", "calls", "reasons"),
    [
        ({"tool": "lookup"}, (A,), []),
        ({"tool": "lookup"}, (POLICY,), ["lookup() was not called, and at least once was expected"]),
        ({"tool": "lookup", "exactly": {"id": "B"}}, (B,), []),
        ({"tool": "policy", "exactly": {}}, (POLICY,), []),
        (
            {"tool": "lookup", "exactly": {"id": "A"}},
            (A,),
            ["lookup(id=A) was not called, and at least once was expected"],
        ),
        ({"tool": "lookup", "including": {"id": "A"}}, (A,), []),
        # In JSON true is not 1.
        (
            {"tool": "lookup", "including": {"deep": 1}},
            (A,),
            ["lookup(deep=1) was not called, and at least once was expected"],
        ),
        ({"tool": "lookup", "matching": {"id": "[AB]"}, "at_least": 2}, (A, B), []),
        (
            {"tool": "lookup", "matching": {"id": "A|"}, "at_least": 2},
            (A, B),
            ["lookup(id=/A|/) was called once, and at least twice was expected"],
        ),
        ({"tool": "lookup", "turn": 2, "exactly": {"id": "B"}}, (A, B), []),
        (
            {"tool": "lookup", "turn": 1, "at_most": 0},
            (A, B),
            ["lookup() in turn 1 was called once, and it was not to be called so"],
        ),
        ({"tool": "lookup", "at_most": 1}, (), []),
        (
            {"tool": "lookup", "at_most": 1},
            (A, B),
            ["lookup() was called twice, and at most once was expected"],
        ),
    ],
)
def test_a_rule_counts_the_calls_that_fit_it(rule: Any, calls: tuple[ToolCall, ...], reasons: list[str]) -> None:
    assert broken({"calls": [rule]}, *calls) == reasons


def test_rules_are_kept_in_any_order_and_a_sequence_in_its_own() -> None:
    rules = [{"tool": "lookup", "including": {"id": "A"}}, {"tool": "policy"}]
    assert broken({"calls": rules}, POLICY, A) == []
    assert broken({"sequence": rules}, A, B, POLICY) == []
    assert broken({"sequence": rules}, POLICY, A) == [
        "policy() was not called after lookup(id=A), as the expected sequence has it"
    ]


def test_no_calls_means_none_at_all() -> None:
    assert broken({"no_calls": True}) == []
    assert broken({"no_calls": True}, POLICY, A) == ["no call was expected, and there were calls of lookup, policy"]


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        ({"no_calls": True, "tools": ["lookup"]}, "no_calls already says that nothing is called"),
        ({"sequence": [{"tool": "lookup", "at_most": 1}]}, "a sequence holds one call after another"),
        ({"calls": [{"tool": "t", "exactly": {}, "including": {}}]}, "exactly leaves nothing open"),
        ({"calls": [{"tool": "t", "at_least": 2, "at_most": 1}]}, "at least 2 and at most 1 calls cannot both be"),
        ({"calls": [{"tool": "t", "matching": {"id": "("}}]}, "not a regular expression"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(expect: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Expectation.model_validate(expect)
