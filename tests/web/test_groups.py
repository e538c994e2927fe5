"""Figures added up in SQL are those that Python adds up: groups, tools, the attention list, what is judged."""

import datetime
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.conversations import attention as in_python
from evalfarm.analysis.conversations import totals
from evalfarm.analysis.conversations.metrics import Subject, measure
from evalfarm.analysis.conversations.totals import LEVELS, Group
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.conversation import Conversation
from evalfarm.web import groups, versions
from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.holdings import Seen
from evalfarm.web.rows import open_rows

Make = Callable[..., Any]
TODAY = datetime.date(2026, 11, 30)


def opened(seen: Seen, folder: Path) -> AbstractContextManager[Rows]:
    return open_rows(seen, Ask(), Allowed(), today=TODAY, folder=folder)


def near(group: Group) -> Any:
    figures = {name: None if value is None else pytest.approx(value) for name, value in group.figures.items()}
    guards = {name: pytest.approx(value) for name, value in group.guards.items()}
    return (group.name, group.conversations, group.cases, group.latest, figures, guards)


def plain(group: Group) -> Any:
    return (group.name, group.conversations, group.cases, group.latest, group.figures, group.guards)


_COUNT = st.integers(0, 5)
_COST = st.none() | st.floats(0, 2).map(lambda usd: round(usd, 4))


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Fields of some conversations, from few values, so that groups have several and ties come up."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        tools = [
            {"tool": tool, "kind": kind, "calls": draw(st.integers(1, 4)), "failed_calls": draw(st.integers(0, 1))}
            for tool, kind in draw(st.sets(st.sampled_from([("a", "plugin"), ("b", "mcp"), ("c", "builtin")])))
        ]
        found.append(
            {
                "conversation": f"r/{number}/1",
                "plugin": "p",
                "plugin_version": draw(st.sampled_from(["1", "2"])),
                "variant": "v",
                "plugin_digest": draw(st.sampled_from([None, "sha256:" + "a" * 64])),
                "case": draw(st.sampled_from(["c1", "c2"])),
                "skill": draw(st.sampled_from([None, "", "s"])),
                "day": draw(st.sampled_from(["2026-11-29", "2026-11-30"])),
                "started_at": float(draw(_COUNT)),
                "counted": draw(st.booleans()) or draw(st.booleans()),
                "outcome": draw(st.sampled_from(["finished", "finished", "infra_failed", "crashed"])),
                "success": draw(st.booleans()),
                "completed": draw(st.booleans()),
                "tools_unavailable": draw(st.booleans()),
                "cost_usd": draw(_COST),
                "request_p50_s": draw(_COST),
                "input_tokens": draw(st.none() | _COUNT),
                "writes": draw(_COUNT),
                "most_repeats": draw(_COUNT),
                "failed_calls": draw(_COUNT),
                "guards": draw(st.dictionaries(st.sampled_from(["g", "h"]), _COUNT)),
                "tools": tools,
            }
        )
    return found


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations(), st.integers(1, 3))
def test_sql_and_python_add_up_to_the_same(
    row: Make, use: Make, hold: Make, tmp_path: Path, drawn: list[dict[str, Any]], limit: int
) -> None:
    rows = [row(**(one | {"tools": tuple(use(**tool) for tool in one["tools"])})) for one in drawn]
    counted = totals.counted(rows)
    limits = in_python.Thresholds(writes=limit, repeats=limit)
    with opened(hold(rows), tmp_path) as asked:
        for level in LEVELS:
            found = {group.name: plain(group) for group in groups.groups(asked, level)}
            assert found == {group.name: near(group) for group in totals.groups(counted, level)}
        tools = groups.tool_groups(asked)
        assert sorted(tools, key=str) == sorted(totals.tool_groups(counted), key=str)
        by_version = _by_version(counted)
        for now, before in [(now, before) for now in list(by_version)[:1] for before in (None, *by_version)]:
            told = in_python.attention(by_version[now], None if before is None else by_version[before], limits)
            assert _attention(asked, now, before, limits) == sorted(told, key=str)


Key = tuple[str, str, str | None]


def _by_version(rows: Sequence[Conversation]) -> dict[Key, list[Conversation]]:
    found: dict[Key, list[Conversation]] = {}
    for one in rows:
        found.setdefault((one.plugin_version, one.variant, one.plugin_digest), []).append(one)
    return found


def _attention(rows: Rows, now: Key, before: Key | None, limits: Any) -> list[Any]:
    which = groups.of_version(*now)
    other = None if before is None else groups.of_version(*before)
    return sorted(groups.attention(rows, which, other, limits, groups.tool_groups(rows, which)), key=str)


def test_two_versions_are_judged_as_the_command_judges_them(row: Make, hold: Make, tmp_path: Path) -> None:
    sides = [
        [
            row(
                conversation=f"r/{at}/{version}",
                plugin="p",
                plugin_version=version,
                case=f"c{at}",
                variant="v",
                started_at=float(version),
                success=version == "1" or at % 3 > 0,
                cost_usd=(1.0 + at % 4) * (1.5 if version == "2" else 1.0),
            )
            for at in range(30)
        ]
        for version in ("1", "2")
    ]
    with opened(hold([*sides[0], *sides[1]]), tmp_path) as asked:
        found = versions.compared(asked, "p", "", "")
    before, now = (Subject(str(at), tuple(side), "p") for at, side in enumerate(sides))
    told = measure(now, before, in_python.Thresholds())
    assert told.against is not None
    assert (found.judged, found.attention) == (told.against.judged, told.attention)
    assert plain(found.now.all)[1:] == near(told.all)[1:]
    assert found.before is not None
    assert plain(found.before.all)[1:] == near(told.against.all)[1:]
    assert [known.version for known in found.versions] == ["1~v", "2~v"]


def test_other_models_on_one_side_are_told(row: Make, hold: Make, tmp_path: Path) -> None:
    rows = [
        row(conversation=f"r/{version}/{model}", plugin="p", plugin_version=version, model=model, started_at=at)
        for at, (version, model) in enumerate([("1", "m"), ("2", "m"), ("2", "n")])
    ]
    with opened(hold(rows), tmp_path) as asked:
        mixed = [versions.compared(asked, "p", "2~x", against).mixed for against in ("1~x", "none")]
    assert mixed == ["the two versions were met by other models or harnesses", ""]
