from collections.abc import Callable
from typing import Any

from evalfarm.analysis.conversations.totals import ToolGroup, counted, group, groups, tool_groups

Make = Callable[..., Any]


def test_what_infrastructure_ended_or_closed_no_trial_is_in_no_figure(row: Make) -> None:
    kept = row(conversation="kept")
    assert counted([kept, row(counted=False), row(outcome="infra_failed")]) == [kept]


def test_a_group_has_shares_means_and_medians(row: Make) -> None:
    rows = [
        row(conversation="r/0/1", case="a", success=True, cost_usd=1.0, turns=1, request_p50_s=1.0, guards={"g": 2}),
        row(conversation="r/1/1", case="b", success=False, cost_usd=2.0, turns=2, request_p50_s=9.0, started_at=5.0),
        row(conversation="r/2/1", case="b", success=False, cost_usd=6.0, turns=3, request_p50_s=None),
    ]
    found = group("all", rows)
    picked = {name: found.figures[name] for name in ("success", "cost_usd", "turns", "request_p50_s")}
    assert picked == {"success": 1 / 3, "cost_usd": 3.0, "turns": 2.0, "request_p50_s": 5.0}
    assert (found.conversations, found.cases, found.guards, found.latest) == (3, 2, {"g": 2 / 3}, "r/1/1")


def test_a_mean_of_which_a_part_is_not_known_is_not_known(row: Make) -> None:
    found = group("all", [row(cost_usd=1.0), row(cost_usd=None)])
    assert (found.figures["cost_usd"], found.figures["turns"]) == (None, 0.0)


def test_levels_group_by_what_they_are_called_after(row: Make) -> None:
    rows = [
        row(plugin="p", skill="s", model="m", harness="codex", variant="v", case="c", day="2026-02-01"),
        row(plugin="p", skill=None, model="m", harness="loop", variant="v", case="c", day="2026-01-31"),
    ]
    assert [one.name for one in groups(rows, "plugin")] == ["p"]
    assert [one.name for one in groups(rows, "skill")] == ["s", "(no skill)"]
    assert [one.name for one in groups(rows, "cell")] == ["m · codex · v", "m · loop · v"]
    assert [one.name for one in groups(rows, "case")] == ["c"]
    assert [one.name for one in groups(rows, "day")] == ["2026-01-31", "2026-02-01"]


def test_a_tool_adds_up_over_conversations_the_most_failing_first(row: Make, use: Make) -> None:
    rows = [
        row(conversation="r/0/1", started_at=1.0, tools=(use("a", calls=2, timeouts=1, failed_calls=1), use("b"))),
        row(conversation="r/1/1", started_at=2.0, tools=(use("a", repeated_calls=1, other_errors=1, writes=1),)),
        row(conversation="r/2/1", started_at=3.0, tools=(use("a"), use("a", kind="mcp", server="web"))),
    ]
    none = dict.fromkeys(("schema_errors", "access_errors", "upstream_errors", "bad_arguments", "timeouts"), 0)
    found = tool_groups(rows)
    assert found[0] == ToolGroup("a", "plugin", 4, 3, 2, {**none, "timeouts": 1}, 1, 1, 1, "r/1/1")
    assert [(tool.name, tool.kind, tool.latest) for tool in found[1:]] == [
        ("b", "plugin", "r/0/1"),
        ("web/a", "mcp", "r/2/1"),
    ]
    assert found[0].failing_share == 0.5
