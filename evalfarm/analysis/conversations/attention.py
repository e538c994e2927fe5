"""What needs a look, by fixed thresholds; each item names the latest conversation that shows it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pydantic import Field

from evalfarm.analysis.conversations.totals import latest, skill_of, tool_groups
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


def attention(
    rows: Sequence[Conversation], baseline: Sequence[Conversation] | None, limits: Thresholds
) -> tuple[Item, ...]:
    """The list, over counted conversations. Without a baseline, what is only seen against one is left out."""
    skills = _by_skill(rows)
    before = _by_skill(baseline or ())
    items: list[Item] = []
    for skill, same in skills.items():
        items += _of_conversations(skill, same, limits)
        if skill in before:
            items += _against(skill, same, before[skill], limits)
    items += _of_tools(rows, limits)
    order: dict[Flag, int] = {flag: place for place, flag in enumerate(_FLAGS)}
    return tuple(sorted(items, key=lambda item: order[item.flag]))


_FLAGS: tuple[Flag, ...] = ("writes", "without_tools", "succeeds_less", "costs_more", "repeats", "tool_fails")


def _by_skill(rows: Sequence[Conversation]) -> dict[str, list[Conversation]]:
    found: dict[str, list[Conversation]] = {}
    for row in rows:
        found.setdefault(skill_of(row), []).append(row)
    return found


def _of_conversations(skill: str, rows: Sequence[Conversation], limits: Thresholds) -> Iterator[Item]:
    looks: tuple[tuple[Flag, str, Callable[[Conversation], bool]], ...] = (
        ("writes", "wrote to a server", lambda row: row.writes >= limits.writes),
        ("without_tools", "ran without its tools", lambda row: row.tools_unavailable),
        (
            "repeats",
            f"made one call {limits.repeats} times more or oftener",
            lambda r: r.most_repeats >= limits.repeats,
        ),
    )
    for flag, told, shows in looks:
        if found := [row for row in rows if shows(row)]:
            yield Item(flag, skill, f"{told} in {len(found)} of {len(rows)}", latest(found).conversation)


def _against(
    skill: str, rows: Sequence[Conversation], before: Sequence[Conversation], limits: Thresholds
) -> Iterator[Item]:
    rate, was = (fmean(row.success for row in side) for side in (rows, before))
    if rate < was and was - rate >= limits.success_drop:
        failed = [row for row in rows if not row.success]
        yield Item("succeeds_less", skill, f"{rate:.1%} against {was:.1%}", latest(failed).conversation)
    costs, earlier = (_costs(side) for side in (rows, before))
    if costs and earlier and fmean(earlier) > 0:
        mean, base = fmean(costs), fmean(earlier)
        bar = base * (1 + limits.cost_increase)
        if mean >= bar:
            dear = [row for row in rows if row.cost_usd is not None and row.cost_usd >= bar]
            told = f"${mean:.4f} a conversation against ${base:.4f}, {mean / base - 1:+.0%}"
            yield Item("costs_more", skill, told, latest(dear).conversation)


def _costs(rows: Sequence[Conversation]) -> list[float]:
    """Every conversation's cost; empty where one is not known."""
    known = [row.cost_usd for row in rows if row.cost_usd is not None]
    return known if len(known) == len(rows) else []


def _of_tools(rows: Sequence[Conversation], limits: Thresholds) -> Iterator[Item]:
    for tool in tool_groups(rows):
        if tool.kind == "builtin" or tool.calls < limits.tool_calls:
            continue
        if tool.failing_calls and tool.failing_share >= limits.tool_failures:
            told = f"{tool.failing_calls} of {tool.calls} calls fail, {tool.failing_share:.0%}"
            yield Item("tool_fails", tool.name, told, tool.latest)
