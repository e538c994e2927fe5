"""What needs a look, by fixed thresholds; each item names the latest conversation that shows it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pydantic import Field

from evalfarm.analysis.conversations.totals import ToolGroup, latest, skill_of, tool_groups
from evalfarm.contracts.base import Contract
from evalfarm.contracts.conversation import Conversation

Flag = Literal["writes", "without_tools", "succeeds_less", "costs_more", "repeats", "tool_fails"]


class Thresholds(Contract):
    """From where on something needs a look."""

    writes: int = Field(default=1, ge=1)  #: calls that write, in one conversation
    success_drop: float = Field(default=0.0, ge=0, lt=1)  #: a skill's rate this far below its baseline, or further
    cost_increase: float = Field(default=0.25, gt=0)  #: of a skill's mean cost, as a share of its baseline
    repeats: int = Field(default=3, ge=1)  #: of one call, beyond its first, in one conversation
    tool_calls: int = Field(default=3, ge=1)  #: a tool called less often is not looked at
    tool_failures: float = Field(default=0.2, gt=0, le=1)  #: of a tool's calls


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that needs a look."""

    flag: Flag
    subject: str  #: a skill or a tool
    told: str
    conversation: str  #: the latest that shows it


@dataclass(frozen=True, slots=True)
class SkillFacts:
    """What the list is made of, for one skill: whoever adds up the rows, in Python or in SQL."""

    conversations: int
    success: float
    cost_usd: float | None  #: mean; None: one is not known
    shown: Mapping[Flag, tuple[int, str]]  #: of what one conversation shows: in how many, and the latest of them
    failed: str | None  #: the latest that did not succeed


Dear = Callable[[str, float], str]
"""The latest conversation of a skill that costs so much or more."""


def attention(
    rows: Sequence[Conversation], baseline: Sequence[Conversation] | None, limits: Thresholds
) -> tuple[Item, ...]:
    """The list, over counted conversations. Without a baseline, what is only seen against one is left out."""
    skills = _by_skill(rows)

    def dear(skill: str, bar: float) -> str:
        return latest([row for row in skills[skill] if row.cost_usd is not None and row.cost_usd >= bar]).conversation

    facts, before = (
        {skill: _facts(same, limits) for skill, same in side.items()} for side in (skills, _by_skill(baseline or ()))
    )
    return listed(facts, before, tool_groups(rows), limits, dear)


def listed(
    skills: Mapping[str, SkillFacts],
    before: Mapping[str, SkillFacts],
    tools: Sequence[ToolGroup],
    limits: Thresholds,
    dear: Dear,
) -> tuple[Item, ...]:
    """The list, from what the conversations of each skill and the calls of each tool add up to."""
    items: list[Item] = []
    for skill, facts in skills.items():
        items += _of_conversations(skill, facts, limits)
        if skill in before:
            items += _against(skill, facts, before[skill], limits, dear)
    items += _of_tools(tools, limits)
    order: dict[Flag, int] = {flag: place for place, flag in enumerate(_FLAGS)}
    return tuple(sorted(items, key=lambda item: order[item.flag]))


_FLAGS: tuple[Flag, ...] = ("writes", "without_tools", "succeeds_less", "costs_more", "repeats", "tool_fails")


def _by_skill(rows: Sequence[Conversation]) -> dict[str, list[Conversation]]:
    found: dict[str, list[Conversation]] = {}
    for row in rows:
        found.setdefault(skill_of(row), []).append(row)
    return found


def _facts(rows: Sequence[Conversation], limits: Thresholds) -> SkillFacts:
    looks: dict[Flag, Callable[[Conversation], bool]] = {
        "writes": lambda row: row.writes >= limits.writes,
        "without_tools": lambda row: row.tools_unavailable,
        "repeats": lambda row: row.most_repeats >= limits.repeats,
    }
    found = {flag: [row for row in rows if shows(row)] for flag, shows in looks.items()}
    failed = [row for row in rows if not row.success]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return SkillFacts(
        conversations=len(rows),
        success=fmean(row.success for row in rows),
        cost_usd=fmean(costs) if len(costs) == len(rows) else None,
        shown={flag: (len(same), latest(same).conversation) for flag, same in found.items() if same},
        failed=latest(failed).conversation if failed else None,
    )


def _of_conversations(skill: str, facts: SkillFacts, limits: Thresholds) -> Iterator[Item]:
    told: dict[Flag, str] = {
        "writes": "wrote to a server",
        "without_tools": "ran without its tools",
        "repeats": f"made one call {limits.repeats} times more or oftener",
    }
    for flag, (count, conversation) in facts.shown.items():
        yield Item(flag, skill, f"{told[flag]} in {count} of {facts.conversations}", conversation)


def _against(skill: str, facts: SkillFacts, before: SkillFacts, limits: Thresholds, dear: Dear) -> Iterator[Item]:
    rate, was = facts.success, before.success
    if rate < was and was - rate >= limits.success_drop and facts.failed is not None:
        yield Item("succeeds_less", skill, f"{rate:.1%} against {was:.1%}", facts.failed)
    mean, base = facts.cost_usd, before.cost_usd
    if mean is not None and base is not None and base > 0:
        bar = base * (1 + limits.cost_increase)
        if mean >= bar:
            told = f"${mean:.4f} a conversation against ${base:.4f}, {mean / base - 1:+.0%}"
            yield Item("costs_more", skill, told, dear(skill, bar))


def _of_tools(tools: Sequence[ToolGroup], limits: Thresholds) -> Iterator[Item]:
    for tool in tools:
        if tool.kind == "builtin" or tool.calls < limits.tool_calls:
            continue
        if tool.failing_calls and tool.failing_share >= limits.tool_failures:
            told = f"{tool.failing_calls} of {tool.calls} calls fail, {tool.failing_share:.0%}"
            yield Item("tool_fails", tool.name, told, tool.latest)
