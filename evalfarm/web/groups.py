"""Figures of groups of conversations, added up in SQL: what `totals` and `attention` find in Python, for any number."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from evalfarm.analysis.conversations.attention import Flag, Item, SkillFacts, Thresholds, listed
from evalfarm.analysis.conversations.totals import FIGURES, Group, Level, ToolGroup
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.conversation_rules import ERROR_CLASSES
from evalfarm.web import datasets

NAMES: dict[Level | str, str] = {
    "all": "'all'",
    "plugin": "plugin",
    "version": "version",
    "skill": datasets.SKILL,
    "cell": "model || ' · ' || harness || ' · ' || variant",
    "case": '"case"',
    "day": "day",
}
"""What a group of each level is called, as SQL over `counted`."""


class Which(NamedTuple):
    """Some of the conversations, as a condition in SQL over the columns as they are stored.

    Not over the name that is made of them: so whole stretches of a file are passed over unread.
    """

    condition: str = "true"
    values: tuple[object, ...] = ()


EVERY = Which()


def of_version(plugin_version: str, variant: str, digest: str | None) -> Which:
    """The conversations of one version of a plugin."""
    same = ("plugin_version = ? AND variant = ?", plugin_version, variant)
    if digest is None:
        return Which(f"{same[0]} AND plugin_digest IS NULL", same[1:])
    return Which(f"{same[0]} AND plugin_digest = ?", (*same[1:], digest))


def groups(rows: Rows, level: str, which: Which = EVERY) -> tuple[Group, ...]:
    """The groups of a level, oldest first."""
    name = NAMES[level]
    found = rows.records(
        f"""
        SELECT {name} AS name, count(*), count(DISTINCT "case"), {datasets.LATEST}, {datasets.FIGURES}
        FROM counted WHERE {which.condition} GROUP BY ALL ORDER BY min(started_at), name
        """,
        which.values,
    )
    broken = _guards(rows, name, which) if found else {}
    return tuple(
        Group(
            name=row[0],
            conversations=row[1],
            cases=row[2],
            latest=row[3],
            figures=dict(zip(FIGURES, row[4:], strict=True)),
            guards={guard: calls / row[1] for guard, calls in broken.get(row[0], {}).items()},
        )
        for row in (sorted(found) if level == "day" else found)
    )


def tool_groups(rows: Rows, which: Which = EVERY) -> tuple[ToolGroup, ...]:
    """Every tool that was called, the most failing first."""
    found = rows.records(
        f"""
        SELECT u.kind, {datasets.TOOL_NAME} AS tool, {datasets.TOOL_FIGURES}
        FROM ({datasets.USES} WHERE {which.condition}) GROUP BY ALL ORDER BY failing_calls DESC, calls DESC, tool
        """,
        which.values,
    )
    return tuple(_tool(row) for row in found)


def attention(
    rows: Rows, now: Which, before: Which | None, limits: Thresholds, tools: Sequence[ToolGroup]
) -> tuple[Item, ...]:
    """What needs a look in some conversations, of which `tools` are the tools, against others or against nothing."""

    def dear(skill: str, bar: float) -> str:
        ((conversation,),) = rows.records(
            f"SELECT {datasets.LATEST} FROM counted WHERE {now.condition} AND {datasets.SKILL} = ? AND cost_usd >= ?",
            [*now.values, skill, bar],
        )
        return str(conversation)

    facts = _skill_facts(rows, now, limits)
    return listed(facts, {} if before is None else _skill_facts(rows, before, limits), tools, limits, dear)


_SHOWN: dict[Flag, str] = {
    "writes": "writes >= {limits.writes}",
    "without_tools": "tools_unavailable",
    "repeats": "most_repeats >= {limits.repeats}",
}


def _skill_facts(rows: Rows, which: Which, limits: Thresholds) -> dict[str, SkillFacts]:
    shown = [shows.format(limits=limits) for shows in _SHOWN.values()]
    counted = ", ".join(
        f"count(*) FILTER ({shows}), {datasets.LATEST} FILTER ({shows})" for shows in (*shown, "NOT success")
    )
    found = rows.records(
        f"""
        SELECT {datasets.SKILL} AS name, count(*), avg(success::INTEGER),
            CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END, {counted}
        FROM counted WHERE {which.condition} GROUP BY ALL ORDER BY min(started_at), name
        """,
        which.values,
    )
    return {row[0]: _facts(row) for row in found}


def _facts(row: Sequence[Any]) -> SkillFacts:
    pairs = list(zip(row[4::2], row[5::2], strict=True))
    return SkillFacts(
        conversations=row[1],
        success=row[2],
        cost_usd=row[3],
        shown={flag: pair for flag, pair in zip(_SHOWN, pairs, strict=False) if pair[0]},
        failed=pairs[-1][1],
    )


def _guards(rows: Rows, name: str, which: Which) -> dict[str, dict[str, int]]:
    found = rows.records(
        f"""
        SELECT name, g.key, sum(g.value)::BIGINT
        FROM (SELECT {name} AS name, unnest(map_entries(guards)) AS g FROM counted WHERE {which.condition})
        GROUP BY ALL ORDER BY ALL
        """,
        which.values,
    )
    broken: dict[str, dict[str, int]] = {}
    for group, guard, calls in found:
        broken.setdefault(group, {})[guard] = calls
    return broken


def _tool(row: Sequence[Any]) -> ToolGroup:
    kind, name, calls, conversations, failing, *rest = row
    return ToolGroup(
        name=name,
        kind=kind,
        calls=calls,
        conversations=conversations,
        failing_calls=failing,
        failed_by_class=dict(zip(ERROR_CLASSES, rest, strict=False)),
        other_errors=rest[-4],
        repeated_calls=rest[-3],
        writes=rest[-2],
        latest=rest[-1],
    )
