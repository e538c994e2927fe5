"""Many conversations as one: the figures of a group, and the groups of a level."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from evalfarm.contracts.conversation import Conversation, ToolUse
from evalfarm.contracts.conversation_rules import ERROR_CLASSES

Level = Literal["plugin", "skill", "cell", "case", "day"]
LEVELS: tuple[Level, ...] = ("plugin", "skill", "cell", "case", "day")

NO_SKILL = "(no skill)"

RATES: tuple[str, ...] = ("success", "base_success", "completed", "tools_unavailable")
MEDIANS: tuple[str, ...] = ("request_p50_s", "request_p95_s")
MEANS: tuple[str, ...] = (
    "cost_usd",
    "turns",
    "requests",
    "input_tokens",
    "output_tokens",
    "cached_read_tokens",
    "cached_write_tokens",
    "duration_s",
    "plugin_calls",
    "mcp_calls",
    "builtin_calls",
    "failed_calls",
    *ERROR_CLASSES,
    "other_errors",
    "repeated_calls",
    "widgets",
    "writes",
    "answer_chars",
    "placeholder_mentions",
)
FIGURES: tuple[str, ...] = (*RATES, *MEANS, *MEDIANS)
"""The figures of a group of conversations: shares, means per conversation, and medians over conversations."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some conversations that belong together."""

    name: str
    conversations: int
    cases: int
    figures: dict[str, float | None]  #: by `FIGURES`; None: a conversation does not report it
    guards: dict[str, float]  #: guard -> calls that break it, per conversation
    latest: str  #: the conversation that started last


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """One tool over many conversations."""

    name: str  #: `server/tool`; the tool alone where the server is the plugin's own
    kind: str
    calls: int
    conversations: int
    failing_calls: int  #: whose result is in a class of errors, or that ended in an error of none
    failed_by_class: dict[str, int]
    other_errors: int
    repeated_calls: int
    writes: int
    latest: str  #: the latest conversation in which a call failed, or was made

    @property
    def failing_share(self) -> float:
        """Of its calls."""
        return self.failing_calls / self.calls


def counted(rows: Sequence[Conversation]) -> list[Conversation]:
    """The rows that figures are made of: of attempts that count, unless infrastructure ended them."""
    return [row for row in rows if row.counted and row.outcome != "infra_failed"]


def groups(rows: Sequence[Conversation], level: Level) -> tuple[Group, ...]:
    """The groups of a level, days in their order and the rest as the rows first name them."""
    by_name: dict[str, list[Conversation]] = {}
    for row in rows:
        by_name.setdefault(_NAMES[level](row), []).append(row)
    named = sorted(by_name.items()) if level == "day" else by_name.items()
    return tuple(group(name, same) for name, same in named)


def group(name: str, rows: Sequence[Conversation]) -> Group:
    """The figures of at least one conversation."""
    figures = {figure: _mean([getattr(row, figure) for row in rows]) for figure in (*RATES, *MEANS)}
    medians = {figure: _median([getattr(row, figure) for row in rows]) for figure in MEDIANS}
    guards = dict.fromkeys(guard for row in rows for guard in row.guards)
    return Group(
        name=name,
        conversations=len(rows),
        cases=len({row.case for row in rows}),
        figures=figures | medians,
        guards={guard: fmean(row.guards.get(guard, 0) for row in rows) for guard in guards},
        latest=latest(rows).conversation,
    )


def tool_groups(rows: Sequence[Conversation]) -> tuple[ToolGroup, ...]:
    """Every tool that was called, the most failing first."""
    used: dict[tuple[str, str], list[tuple[Conversation, ToolUse]]] = {}
    for row in rows:
        for tool in row.tools:
            name = tool.tool if tool.server is None else f"{tool.server}/{tool.tool}"
            used.setdefault((tool.kind, name), []).append((row, tool))
    found = [_tool_group(kind, name, uses) for (kind, name), uses in used.items()]
    return tuple(sorted(found, key=lambda tool: (-tool.failing_calls, -tool.calls, tool.name)))


def latest(rows: Sequence[Conversation]) -> Conversation:
    """The conversation that started last, of those that started at once the one with the larger name."""
    return max(rows, key=lambda row: (row.started_at, row.conversation))


def skill_of(row: Conversation) -> str:
    """The skill that a conversation is counted under."""
    return row.skill or NO_SKILL


_NAMES: dict[Level, Callable[[Conversation], str]] = {
    "plugin": lambda row: row.plugin,
    "skill": skill_of,
    "cell": lambda row: f"{row.model} · {row.harness} · {row.variant}",
    "case": lambda row: row.case,
    "day": lambda row: row.day,
}


def _tool_group(kind: str, name: str, uses: Sequence[tuple[Conversation, ToolUse]]) -> ToolGroup:
    tools = [tool for _, tool in uses]
    failing = [row for row, tool in uses if tool.failed_calls + tool.other_errors]
    return ToolGroup(
        name=name,
        kind=kind,
        calls=sum(tool.calls for tool in tools),
        conversations=len(uses),
        failing_calls=sum(tool.failed_calls + tool.other_errors for tool in tools),
        failed_by_class={name: sum(getattr(tool, name) for tool in tools) for name in ERROR_CLASSES},
        other_errors=sum(tool.other_errors for tool in tools),
        repeated_calls=sum(tool.repeated_calls for tool in tools),
        writes=sum(tool.writes for tool in tools),
        latest=latest(failing or [row for row, _ in uses]).conversation,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; None where one is unknown, because a mean of the rest would be of other conversations."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _median(values: Sequence[float | None]) -> float | None:
    """The median of those known: a conversation without an answered request has no latency."""
    known = [value for value in values if value is not None]
    return median(known) if known else None
