"""A plugin's versions, and two of them held against each other, from the rows that the export has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalfarm.analysis.conversations.attention import Item, Thresholds
from evalfarm.analysis.conversations.metrics import Judged, Unit, UnitSum, judge
from evalfarm.analysis.conversations.totals import MEDIANS, Group, ToolGroup
from evalfarm.analysis.summary.rows import Rows
from evalfarm.web import datasets, groups
from evalfarm.web.refusals import not_found
from evalfarm.web.rows import VERSION

HEADLINE: tuple[str, ...] = (
    *("success", "completed", "cost_usd", "input_tokens", "output_tokens", "turns"),
    *("plugin_calls", "failed_calls", "other_errors", "request_p50_s", "request_p95_s"),
)
"""What is said of every version; medians of those that are compared alone, for they are what takes time."""


@dataclass(frozen=True, slots=True)
class Known:
    """One version of a plugin that has conversations."""

    plugin: str
    version: str
    plugin_version: str
    variant: str
    digest: str | None
    first_at: float
    last_at: float
    prompts: tuple[str, ...]  #: digests of what was asked; empty: not known
    conversations: int
    cases: int
    figures: dict[str, float | None]  #: those of HEADLINE that are no medians

    @property
    def which(self) -> groups.Which:
        """Its conversations."""
        return groups.of_version(self.plugin_version, self.variant, self.digest)


@dataclass(frozen=True, slots=True)
class Side:
    """What is shown of one version: its groups by level, and its tools."""

    known: Known
    all: Group
    skills: tuple[Group, ...]
    days: tuple[Group, ...]
    tools: tuple[ToolGroup, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A plugin's versions, one of them chosen, another as its baseline."""

    plugin: str
    versions: tuple[Known, ...]  #: oldest first
    now: Side
    before: Side | None
    why_not: str  #: why no change is judged; empty: it is, or there is nothing to compare with
    mixed: str  #: in what else than their version the two differ, in words; empty: in nothing that is known
    judged: Judged | None
    attention: tuple[Item, ...]


def plugins(rows: Rows) -> list[tuple[str, int, int, float]]:
    """Every plugin with conversations that count: how many versions, conversations, and when the last one began."""
    return [
        (name, versions, conversations, last_at)
        for name, versions, conversations, last_at in rows.records(
            "SELECT plugin, count(DISTINCT version), count(*), max(started_at) FROM counted GROUP BY plugin ORDER BY 1"
        )
    ]


def compared(rows: Rows, plugin: str, version: str, against: str) -> Compared:
    """A plugin's versions; `rows` are of this plugin alone.

    `version`: empty for the newest; `against`: empty for the one before it, `none` for no other. Raises Refusal where
    there is no such plugin or version.
    """
    known = _known(rows, plugin)
    if not known:
        raise not_found(f"no conversation of a plugin {plugin!r} counts", "the list of plugins is under /versions")
    by_name = {one.version: place for place, one in enumerate(known)}
    for name in (version, against):
        if name not in (*by_name, "", "none"):
            raise not_found(f"plugin {plugin!r} has no version {name!r}", f"its versions: {', '.join(by_name)}")
    place = by_name.get(version, len(known) - 1)
    other = by_name.get(against, None if against == "none" or place == 0 else place - 1)
    now = _side(rows, known[place])
    before = None if other is None or other == place else _side(rows, known[other])
    why_not = "" if before is None else _why_not(now.known, before.known)
    held_against = None if before is None or why_not else before.known.which
    sides = [_units(rows, side.known.which) for side in (before, now) if side is not None]
    return Compared(
        plugin=plugin,
        versions=known,
        now=now,
        before=before,
        why_not=why_not,
        mixed=_mixed(*sides) if len(sides) == 2 else "",
        judged=None if held_against is None else judge(*sides),
        attention=groups.attention(rows, now.known.which, held_against, Thresholds(), now.tools),
    )


_TOLD = tuple(figure for figure in HEADLINE if figure not in MEDIANS)


def _known(rows: Rows, plugin: str) -> tuple[Known, ...]:
    found = rows.records(
        f"""
        SELECT {VERSION} AS version, * FROM (
            SELECT plugin_version, variant, plugin_digest, min(started_at) AS first_at, max(started_at),
                CASE WHEN count(prompts) = count(*) THEN list_sort(list(DISTINCT prompts)) ELSE [] END,
                count(*), count(DISTINCT "case"), {", ".join(datasets.FIGURE[figure] for figure in _TOLD)}
            FROM counted GROUP BY ALL
        ) ORDER BY first_at, version
        """
    )
    return tuple(_read(plugin, row) for row in found)


def _read(plugin: str, row: Sequence[Any]) -> Known:
    version, plugin_version, variant, digest, first_at, last_at, prompts, conversations, cases, *figures = row
    return Known(
        plugin=plugin,
        version=version,
        plugin_version=plugin_version,
        variant=variant,
        digest=digest,
        first_at=first_at,
        last_at=last_at,
        prompts=tuple(prompts),
        conversations=conversations,
        cases=cases,
        figures=dict(zip(_TOLD, figures, strict=True)),
    )


def _side(rows: Rows, known: Known) -> Side:
    (whole,), skills, days = (groups.groups(rows, level, known.which) for level in ("all", "skill", "day"))
    return Side(known, whole, skills, days, groups.tool_groups(rows, known.which))


def _why_not(now: Known, before: Known) -> str:
    if not now.prompts or not before.prompts:
        return "some of these conversations come from elsewhere, so it is not known whether the same was asked"
    if len({*now.prompts, *before.prompts}) > 1:
        return "other prompts were asked: their digests differ"
    return ""


def _mixed(before: Mapping[Unit, UnitSum], now: Mapping[Unit, UnitSum]) -> str:
    """Units are case, model, harness and nothing: who was met more often, or alone, moves a mean by itself."""
    shares = [{unit: one.conversations for unit, one in side.items()} for side in (before, now)]
    totals = [sum(side.values()) for side in shares]
    if all(shares[0].get(unit, 0) * totals[1] == shares[1].get(unit, 0) * totals[0] for unit in {*before, *now}):
        return ""
    arms = [{(model, harness) for _, model, harness, _ in side} for side in (before, now)]
    what = "other models or harnesses" if arms[0] != arms[1] else "other cases, or the same in other numbers"
    return f"the two versions were met by {what}"


def _units(rows: Rows, which: groups.Which) -> dict[Unit, UnitSum]:
    found = rows.records(
        f"""
        SELECT "case", model, harness, count(*), count(*) FILTER (success),
            CASE WHEN count(cost_usd) = count(*) THEN avg(cost_usd) END
        FROM counted WHERE {which.condition} GROUP BY ALL ORDER BY ALL
        """,
        which.values,
    )
    return {(case, model, harness, ""): UnitSum(*sums) for case, model, harness, *sums in found}
