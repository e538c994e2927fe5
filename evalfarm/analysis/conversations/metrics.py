"""The one document of `evalfarm metrics`: one set of conversations, and what changed against another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evalfarm.analysis.conversations.attention import Item, Thresholds, attention
from evalfarm.analysis.conversations.totals import LEVELS, Group, Level, ToolGroup, counted, group, groups, tool_groups
from evalfarm.analysis.statistics.comparisons import ALPHA, Comparison, Finding, compare
from evalfarm.analysis.statistics.figures import FigureChange, figure_change
from evalfarm.analysis.statistics.paired import case_counts
from evalfarm.contracts.conversation import MISSES, Conversation, Miss
from evalfarm.errors import UsageError

CostFinding = Literal["dearer", "cheaper", "too little evidence"]


@dataclass(frozen=True, slots=True)
class Subject:
    """Conversations that are looked at together, and what must be equal for others to be comparable."""

    name: str
    rows: tuple[Conversation, ...]
    prompts: str | None  #: digest of what was asked; None: from elsewhere, nobody knows


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a plugin, as it was met."""

    plugin: str
    version: str
    digest: str | None
    variant: str
    group: Group


@dataclass(frozen=True, slots=True)
class MissShares:
    """What explains the misses of one model × harness × variant. A miss may show several; one is its cause."""

    cell: str
    conversations: int
    misses: int
    causes: dict[Miss, int]
    shown: dict[Miss, int]


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether cost and success changed, over the cases that both have. Per case and model × harness, paired."""

    success: Comparison
    cost: FigureChange
    cost_finding: CostFinding


@dataclass(frozen=True, slots=True)
class Against:
    """Another set of conversations as the baseline."""

    name: str
    comparable: bool  #: the same was asked; where not, no change is judged
    why_not: str
    all: Group
    versions: tuple[Version, ...]  #: oldest first
    levels: dict[Level, tuple[Group, ...]]
    tools: tuple[ToolGroup, ...]
    judged: Judged | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """What is said of a set of conversations."""

    name: str
    conversations: int
    not_counted: int  #: attempts that infrastructure ended, or that did not close their trial
    all: Group
    versions: tuple[Version, ...]  #: oldest first
    levels: dict[Level, tuple[Group, ...]]
    tools: tuple[ToolGroup, ...]
    misses: tuple[MissShares, ...]
    attention: tuple[Item, ...]
    against: Against | None
    schema_version: Literal[1] = field(default=1)


def measure(subject: Subject, baseline: Subject | None, limits: Thresholds) -> Metrics:
    """Everything about a set of conversations. Raises UsageError where none of either counts."""
    rows = _some(subject)
    before = None if baseline is None else _some(baseline)
    against = None if baseline is None else _against(subject, baseline)
    comparable = before if against is not None and against.comparable else None
    return Metrics(
        name=subject.name,
        conversations=len(rows),
        not_counted=len(subject.rows) - len(rows),
        all=group("all", rows),
        versions=tuple(_versions(rows)),
        levels={level: groups(rows, level) for level in LEVELS},
        tools=tool_groups(rows),
        misses=tuple(_misses(rows)),
        attention=attention(rows, comparable, limits),
        against=against,
    )


def _some(subject: Subject) -> list[Conversation]:
    rows = counted(subject.rows)
    if not rows:
        raise UsageError(
            f"{subject.name!r} has no conversation that counts",
            "infrastructure ended them all, or none was recorded: evalfarm report tells which",
        )
    return rows


def _versions(rows: Sequence[Conversation]) -> list[Version]:
    found: dict[tuple[str, str, str | None, str], list[Conversation]] = {}
    for row in sorted(rows, key=lambda row: row.started_at):
        found.setdefault((row.plugin, row.plugin_version, row.plugin_digest, row.variant), []).append(row)
    return [Version(*key, group(key[1], same)) for key, same in found.items()]


def _misses(rows: Sequence[Conversation]) -> list[MissShares]:
    by_cell: dict[str, list[Conversation]] = {}
    for row in rows:
        by_cell.setdefault(f"{row.model} · {row.harness} · {row.variant}", []).append(row)
    return [_miss_shares(cell, same) for cell, same in by_cell.items()]


def _miss_shares(cell: str, rows: Sequence[Conversation]) -> MissShares:
    missed = [row.misses for row in rows if row.misses]
    causes, shown = Counter(miss[0] for miss in missed), Counter(sign for miss in missed for sign in miss)
    return MissShares(
        cell=cell,
        conversations=len(rows),
        misses=len(missed),
        causes={miss: causes[miss] for miss in MISSES if causes[miss]},
        shown={miss: shown[miss] for miss in MISSES if shown[miss]},
    )


def _against(subject: Subject, baseline: Subject) -> Against:
    rows, before = counted(subject.rows), counted(baseline.rows)
    why_not = _why_not(subject, baseline)
    return Against(
        name=baseline.name,
        comparable=not why_not,
        why_not=why_not,
        all=group("all", before),
        versions=tuple(_versions(before)),
        levels={level: groups(before, level) for level in LEVELS},
        tools=tool_groups(before),
        judged=None if why_not else _judged(before, rows),
    )


def _why_not(subject: Subject, baseline: Subject) -> str:
    if subject.prompts is None or baseline.prompts is None:
        return "one of the two comes from elsewhere, so it is not known whether the same was asked"
    return "" if subject.prompts == baseline.prompts else "other prompts were asked: their digests differ"


Unit = tuple[str, str, str, str]
"""A case in one model × harness, and in one variant where several are told apart."""


@dataclass(frozen=True, slots=True)
class UnitSum:
    """What the conversations of one unit add up to."""

    conversations: int
    successes: int
    cost_usd: float | None  #: mean; None: one is not known


def judge(before: Mapping[Unit, UnitSum], now: Mapping[Unit, UnitSum]) -> Judged:
    """Both paired on the case in one model × harness; a case's units are not independent, and make a family."""
    units = [unit for unit in before if unit in now]
    sides = [[side[unit] for unit in units] for side in (before, now)]
    counts = [case_counts([one.successes for one in side], [one.conversations for one in side]) for side in sides]
    cost = figure_change(*([np.nan if one.cost_usd is None else one.cost_usd for one in side] for side in sides))
    return Judged(
        success=compare(counts[0], counts[1], [unit[0] for unit in units]),
        cost=cost,
        cost_finding=_cost_finding(cost),
    )


def _judged(before: Sequence[Conversation], rows: Sequence[Conversation]) -> Judged:
    many = any(len({row.variant for row in side}) > 1 for side in (before, rows))
    return judge(_by_unit(before, many), _by_unit(rows, many))


def _by_unit(rows: Sequence[Conversation], by_variant: bool) -> Mapping[Unit, UnitSum]:
    """Sums by case, model and harness; by variant too where a side has several, so that they are not mixed."""
    found: dict[Unit, list[Conversation]] = {}
    for row in rows:
        found.setdefault((row.case, row.model, row.harness, row.variant if by_variant else ""), []).append(row)
    return {
        unit: UnitSum(len(same), sum(row.success for row in same), _mean_cost(same)) for unit, same in found.items()
    }


def _mean_cost(rows: Sequence[Conversation]) -> float | None:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return float(np.mean(costs)) if len(costs) == len(rows) else None


def _cost_finding(change: FigureChange) -> CostFinding:
    if change.p is None or change.p > ALPHA or change.factor.value is None:
        return "too little evidence"
    return "dearer" if change.factor.value > 1 else "cheaper"


def success_finding(judged: Judged) -> Finding:
    """Better or worse on cases like these; what of the two questions is asked of new cases."""
    return judged.success.new_cases_finding
