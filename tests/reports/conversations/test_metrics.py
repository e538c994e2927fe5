from typing import Any

from evalfarm.analysis.conversations.attention import Thresholds
from evalfarm.analysis.conversations.metrics import Metrics, Subject, measure
from evalfarm.contracts.conversation import Conversation, ToolUse
from evalfarm.reports.comparison.blocks import Listed, Said
from evalfarm.reports.conversations.metrics import report
from evalfarm.reports.table import Table

_USE = ToolUse(
    **dict.fromkeys(("schema_errors", "access_errors", "upstream_errors", "bad_arguments"), 0),
    timeouts=1,
    failed_calls=1,
    other_errors=0,
    kind="plugin",
    server=None,
    tool="stock",
    calls=4,
    repeated_calls=1,
    writes=0,
)


def _row(name: str, **fields: Any) -> Conversation:
    told: dict[str, Any] = {
        **{key: "x" for key, field in Conversation.model_fields.items() if field.annotation is str},
        **{key: 0 for key, field in Conversation.model_fields.items() if field.annotation is int},
        **{key: True for key, field in Conversation.model_fields.items() if field.annotation is bool},
        **dict.fromkeys(("plugin_digest", "skill", "skill_digest", "verdict", "cached_write_tokens"), None),
        **dict.fromkeys(("input_tokens", "output_tokens", "cached_read_tokens"), 0),
        **dict.fromkeys(("cost_usd", "duration_s", "request_p50_s", "request_p95_s", "started_at"), 1.0),
        "conversation": name,
        "harness": "codex",
        "outcome": "finished",
        "tools_unavailable": False,
        "guards": {},
        "misses": (),
        "tools": (_USE,),
    }
    return Conversation.model_validate(told | fields)


def _metrics(now: list[Conversation], before: list[Conversation], prompts: str = "same") -> Metrics:
    baseline = Subject("yesterday", tuple(before), "same")
    return measure(Subject("tonight", tuple(now), prompts), baseline, Thresholds())


def _tables(found: Metrics, *levels: str) -> dict[str, Table]:
    return {block.title: block for block in report(found, levels) if isinstance(block, Table)}


def test_the_first_lines_tell_success_and_whether_it_and_the_cost_changed() -> None:
    now = [_row(f"r/{n}/1", case=f"c{n}", success=False, cost_usd=2.0) for n in range(20)]
    before = [_row(f"q/{n}/1", case=f"c{n}") for n in range(20)]
    said = [block.text for block in report(_metrics(now, before), ()) if isinstance(block, Said)]
    assert said == [
        "tonight: 20 conversations of 20 cases, success 0.0 % (by the rules alone 100.0 %), $2.00 each.",
        "Success against yesterday: worse on new cases, -100.0 [-100.0, -81.3] points over 20 pairs;"
        " on a rerun of these too little evidence.",
        "Cost against yesterday: dearer, ×2.00 [2.00, 2.00] over 20 pairs, p < 0.001.",
        "Every figure is a count, a sum or a fixed rule over what was recorded; no model scored anything. Whether the"
        " answers are right is the graders' to say: evalfarm report, evalfarm compare. Success takes a complete answer,"
        " which has a widget or as many characters as the suite's conversations.completed_chars, 200 by default; a call"
        " to the plugin; no error of a schema; no write; and the tools at hand.",
    ]


def test_what_needs_a_look_is_listed_with_its_conversation() -> None:
    found = _metrics([_row("r/0/1", writes=1, tools=())], [_row("q/0/1", tools=())])
    (listed,) = [block for block in report(found, ()) if isinstance(block, Listed)]
    assert listed.lines == ("Wrote to a server: (no skill): wrote to a server in 1 of 1; see r/0/1",)
    calm = _metrics([_row("r/0/1", tools=())], [_row("q/0/1", tools=())])
    (listed,) = [block for block in report(calm, ()) if isinstance(block, Listed)]
    assert listed.lines == ("Nothing: every figure is within its threshold.",)


def test_the_versions_of_both_sides_are_told_the_baseline_s_first() -> None:
    now, before = (f"sha256:{digit * 64}" for digit in "ab")
    found = _metrics(
        [_row("r/0/1", plugin_version="2", plugin_digest=now)],
        [_row("q/0/1", plugin_version="1", plugin_digest=before)],
    )
    rows = _tables(found)["Versions of the plugin, oldest first"].rows
    assert [row[:5] for row in rows] == [("before", "x 1", "x", "bbbbbbbb", "1"), ("now", "x 2", "x", "aaaaaaaa", "1")]


def test_figures_that_never_came_up_are_left_out_and_guards_are_told() -> None:
    found = _metrics([_row("r/0/1", guards={"scoped": 2})], [_row("q/0/1", timeouts=2)])
    figures = _tables(found)["Figures: shares, means per conversation, medians of latency"]
    rows = {row[0]: row[1:] for row in figures.rows}
    assert rows["timeouts"] == ("0.00", "2.00", "-100.0 %")
    assert rows["guard scoped"] == ("2.00", "n/a", "–")
    assert "schema_errors" not in rows


def test_a_group_that_one_side_lacks_is_told_too() -> None:
    found = _metrics([_row("r/0/1", skill="new")], [_row("q/0/1", skill="old")])
    rows = _tables(found, "skill")["By skill"].rows
    assert [row[:4] for row in rows] == [("new", "1", "100.0 %", "–"), ("old", "0", "n/a", "–")]


def test_a_call_that_fails_by_no_class_is_among_those_that_fail() -> None:
    found = _metrics([_row("r/0/1", skill="s", failed_calls=0, other_errors=51)], [_row("q/0/1", skill="s")])
    tables = _tables(found, "skill")
    assert [row[-1] for row in tables["Versions of the plugin, oldest first"].rows] == ["0.00", "51.00"]
    (skill,) = tables["By skill"].rows
    assert skill[-2] == "51.00"


def test_a_tool_says_what_it_fails_by() -> None:
    found = _metrics([_row("r/0/1")], [_row("q/0/1", tools=())])
    assert _tables(found, "tool")["By tool"].rows == (("stock", "plugin", "1 timeouts", "4", "1", "25.0 %", "1", "0"),)


def test_misses_are_told_by_cause_and_by_what_they_show() -> None:
    rows = [_row("r/0/1", misses=("no_tool", "asked_user")), _row("r/1/1", misses=("asked_user",)), _row("r/2/1")]
    title = "What explains the misses: the share of misses whose cause it is, and that show it"
    assert _tables(_metrics(rows, rows))[title].rows == (
        ("x · codex · x", "2 of 3", "no tool", "50.0 %", "50.0 %"),
        ("x · codex · x", "2 of 3", "asked user", "50.0 %", "100.0 %"),
    )
