from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.analysis.conversations.attention import Item, Thresholds, attention

Make = Callable[..., Any]


def test_nothing_needs_a_look_where_all_is_well(row: Make) -> None:
    assert attention([row()], [row()], Thresholds()) == ()


def test_a_write_is_listed_with_the_latest_conversation_that_shows_it(row: Make) -> None:
    rows = [
        row(conversation="r/0/1", started_at=1.0, writes=1, skill="refunds"),
        row(conversation="r/1/1", started_at=3.0, writes=2, skill="refunds"),
        row(conversation="r/2/1", started_at=5.0, skill="refunds"),
    ]
    assert attention(rows, None, Thresholds()) == (Item("writes", "refunds", "wrote to a server in 2 of 3", "r/1/1"),)


def test_a_conversation_without_its_tools_is_listed(row: Make) -> None:
    (item,) = attention([row(conversation="r/0/1", tools_unavailable=True)], None, Thresholds())
    assert item == Item("without_tools", "(no skill)", "ran without its tools in 1 of 1", "r/0/1")


def test_a_skill_that_succeeds_less_often_than_its_baseline_is_listed_with_a_failure(row: Make) -> None:
    rows = [row(conversation="r/0/1", success=False), row(conversation="r/1/1", started_at=9.0)]
    assert attention(rows, [row(), row()], Thresholds()) == (
        Item("succeeds_less", "(no skill)", "50.0% against 100.0%", "r/0/1"),
    )
    assert attention(rows, [row(), row(success=False)], Thresholds()) == ()


def test_a_skill_that_the_baseline_lacks_is_not_held_against_it(row: Make) -> None:
    assert attention([row(skill="new", success=False)], [row(skill="old")], Thresholds()) == ()


@pytest.mark.parametrize(("cost", "listed"), [(1.24, False), (1.25, True), (1.5, True)])
def test_a_skill_is_listed_from_25_percent_above_its_baseline_on(row: Make, cost: float, listed: bool) -> None:
    found = attention([row(cost_usd=cost)], [row(cost_usd=1.0)], Thresholds())
    assert [item.flag for item in found] == (["costs_more"] if listed else [])


def test_a_cost_that_is_not_known_is_held_against_nobody(row: Make) -> None:
    assert attention([row(cost_usd=None)], [row()], Thresholds()) == ()
    assert attention([row()], [row(cost_usd=0.0)], Thresholds()) == ()


@pytest.mark.parametrize(("repeats", "listed"), [(2, False), (3, True)])
def test_a_call_is_listed_when_it_was_issued_three_times_more(row: Make, repeats: int, listed: bool) -> None:
    found = attention([row(most_repeats=repeats, repeated_calls=9)], None, Thresholds())
    assert [item.flag for item in found] == (["repeats"] if listed else [])


@pytest.mark.parametrize(
    ("calls", "failed", "other", "listed"),
    [(2, 2, 0, False), (3, 0, 0, False), (6, 1, 0, False), (5, 1, 0, True), (5, 0, 1, True)],
)
def test_a_tool_is_listed_from_3_calls_and_a_fifth_of_failures_on(
    row: Make, use: Make, calls: int, failed: int, other: int, listed: bool
) -> None:
    tool = use("query", calls=calls, failed_calls=failed, other_errors=other)
    found = attention([row(conversation="r/0/1", tools=(tool,))], None, Thresholds())
    share = (failed + other) / calls
    told = f"{failed + other} of {calls} calls fail, {share:.0%}"
    assert found == ((Item("tool_fails", "query", told, "r/0/1"),) if listed else ())


def test_the_shell_is_no_tool_that_fails(row: Make, use: Make) -> None:
    tool = use("shell", kind="builtin", calls=9, other_errors=9)
    assert attention([row(tools=(tool,))], None, Thresholds()) == ()


@pytest.mark.parametrize(
    ("flag", "showing", "fine"),
    [
        ("writes", {"writes": 1}, {}),
        ("without_tools", {"tools_unavailable": True}, {}),
        ("succeeds_less", {"success": False}, {}),
        ("costs_more", {"cost_usd": 2.0}, {"cost_usd": 1.0}),
        ("repeats", {"most_repeats": 3}, {"most_repeats": 2}),
        ("tool_fails", {"calls": 3, "failed_calls": 3}, {"calls": 3, "failed_calls": 0}),
    ],
)
def test_each_item_names_the_latest_conversation_that_shows_it_and_no_later_one(
    row: Make, use: Make, flag: str, showing: dict[str, Any], fine: dict[str, Any]
) -> None:
    def made(conversation: str, started_at: float, told: dict[str, Any]) -> Any:
        if flag == "tool_fails":
            told = {"tools": (use("query", **told),)}
        return row(conversation=conversation, started_at=started_at, **told)

    rows = [made("r/1/1", 5.0, showing), made("r/0/1", 3.0, showing), made("r/2/1", 9.0, fine)]
    (item,) = attention(rows, [row(cost_usd=1.0)], Thresholds())
    assert (item.flag, item.conversation) == (flag, "r/1/1")


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        ({"writes": 2}, "writes"),
        ({"success_drop": 0.6}, "succeeds_less"),
        ({"cost_increase": 1.1}, "costs_more"),
        ({"repeats": 4}, "repeats"),
        ({"tool_calls": 6}, "tool_fails"),
        ({"tool_failures": 0.5}, "tool_fails"),
    ],
)
def test_each_threshold_moves_what_it_is_of_and_nothing_else(
    row: Make, use: Make, limit: dict[str, Any], gone: str
) -> None:
    tool = use("query", calls=5, failed_calls=2)
    rows = [row(writes=1, most_repeats=3, success=False, cost_usd=3.0, tools_unavailable=True, tools=(tool,)), row()]
    before = [row()]
    flags = [item.flag for item in attention(rows, before, Thresholds())]
    assert flags == ["writes", "without_tools", "succeeds_less", "costs_more", "repeats", "tool_fails"]
    left = [item.flag for item in attention(rows, before, Thresholds(**limit))]
    assert left == [flag for flag in flags if flag != gone]
