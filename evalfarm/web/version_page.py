"""The page that holds two versions of a plugin against each other: what is in its tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evalfarm.analysis.conversations.metrics import Judged, success_finding
from evalfarm.analysis.conversations.totals import RATES, Group, ToolGroup
from evalfarm.reports import numbers
from evalfarm.reports.comparison.points import factor, told_p, with_interval
from evalfarm.reports.conversations.changes import change, written
from evalfarm.reports.conversations.metrics import FLAG_WORDS
from evalfarm.web.pages import Cell, Grid, link, to_conversation
from evalfarm.web.versions import HEADLINE, Compared, Known

WORDS: dict[str, str] = {
    "success": "success",
    "completed": "completed",
    "cost_usd": "cost, each",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "turns": "turns",
    "plugin_calls": "plugin calls",
    "failed_calls": "failed by class",
    "other_errors": "failed otherwise",
    "request_p50_s": "request p50, s",
    "request_p95_s": "request p95, s",
}
_TOLD = ("success", "completed", "cost_usd", "turns", "plugin_calls", "failed_calls", "other_errors")


class Headline(NamedTuple):
    """One figure of the chosen version, with its change."""

    word: str
    value: str
    was: str
    change: str
    tone: str


def short(known: Known) -> str:
    """A version in a few words: `1.0.0 · guided · 1a2b3c4d`."""
    digest = (known.digest or "").removeprefix("sha256:")[:8]
    return " · ".join(part for part in (known.plugin_version, known.variant, digest) if part)


def headlines(found: Compared) -> list[Headline]:
    """The headline figures. Only what is judged has a colour: of the rest nobody knows whether it moved."""
    now, before = found.now.all.figures, None if found.before is None else found.before.all.figures
    tones = _tones(found.judged)
    return [_headline(figure, now[figure], before, tones.get(figure, "")) for figure in HEADLINE]


def findings(found: Compared) -> Iterator[str]:
    """What is judged of the change, by the statistics of `evalfarm metrics --against`; never by eye."""
    if found.before is None:
        return
    other = short(found.before.known)
    if found.judged is None:
        yield f"NOT COMPARABLE with {other}: {found.why_not}. No change is judged."
        return
    if found.mixed:
        yield f"UNEVEN: {found.mixed}. Only what is judged below is paired; the other figures mix them."
    success, cost = found.judged.success, found.judged.cost
    pairs = numbers.plural(success.new_cases.cases, "pair")
    yield (
        f"Success against {other}: {success_finding(found.judged)} on new cases,"
        f" {with_interval(success.new_cases.estimate)} points over {pairs}; on a rerun of these"
        f" {success.same_cases_finding}."
    )
    tested = "" if cost.p is None else f", {told_p(cost.p)}"
    yield f"Cost: {found.judged.cost_finding}, {factor(cost.factor)} over {numbers.plural(cost.cases, 'pair')}{tested}."


def attention_rows(found: Compared) -> list[tuple[str, str, str, str]]:
    """What needs a look: the flag, whom it is about, what is told, and where it can be seen."""
    return [(FLAG_WORDS[i.flag], i.subject, i.told, to_conversation(i.conversation)) for i in found.attention]


def grids(found: Compared) -> list[Grid]:
    """The tables: all versions, then skills, tools and days of the chosen one against the other."""
    now, before = found.now, found.before
    of = {"plugin": found.plugin, "version": now.known.version, "source": "all"}
    tables = [
        _versions(found),
        _groups("skills", "Skills", now.skills, before.skills if before else None, of),
        _tools(now.tools, before.tools if before else None, of),
        _groups("days", "Days", now.days, None, of),
    ]
    return [grid for grid in tables if grid.rows]


def _headline(figure: str, value: float | None, before: Mapping[str, float | None] | None, tone: str) -> Headline:
    word, told = WORDS[figure], written(figure, value)
    if before is None:
        return Headline(word, told, "", "", "")
    return Headline(word, told, written(figure, before[figure]), change(figure, value, before[figure]), tone)


def _tones(judged: Judged | None) -> dict[str, str]:
    if judged is None:
        return {}
    good = {"better": "passed", "worse": "failed", "cheaper": "passed", "dearer": "failed"}
    return {"success": good.get(success_finding(judged), ""), "cost_usd": good.get(judged.cost_finding, "")}


def _versions(found: Compared) -> Grid:
    rows = []
    earlier: Known | None = None
    for known in found.versions:
        chosen = known.version == found.now.known.version
        picked = "shown" if chosen else "baseline" if found.before and known == found.before.known else ""
        rows.append(
            (
                Cell(short(known), link("versions", found.plugin, version=known.version), below=picked),
                Cell(numbers.moment(known.first_at).removesuffix(" UTC")),
                Cell(f"{known.conversations:,}"),
                *(_against(figure, known.figures, earlier.figures if earlier else None) for figure in _TOLD),
            )
        )
        earlier = known
    heads = ("version", "first seen (UTC)", "n", *(WORDS[figure] for figure in _TOLD))
    note = "Oldest first, each with its change from the one before it."
    download = link("datasets", "versions.csv", plugin=found.plugin, source="all")
    return Grid("versions", "Versions", heads, tuple(rows), words=2, note=note, download=download)


def _against(figure: str, now: Mapping[str, float | None], before: Mapping[str, float | None] | None) -> Cell:
    changed = "" if before is None else change(figure, now[figure], before[figure])
    return Cell(written(figure, now[figure]), below=changed)


def _groups(
    anchor: str, title: str, now: Sequence[Group], before: Sequence[Group] | None, of: Mapping[str, str]
) -> Grid:
    earlier = {group.name: group for group in before or ()}
    rows = tuple(
        (
            Cell(group.name, to_conversation(group.latest), below="latest conversation"),
            Cell(f"{group.conversations:,}"),
            *(
                _against(figure, group.figures, earlier[group.name].figures if group.name in earlier else None)
                for figure in _TOLD
            ),
        )
        for group in now
    )
    heads = (anchor.removesuffix("s"), "n", *(WORDS[figure] for figure in _TOLD))
    note = "Each with its change from the same one under the baseline." if before is not None else ""
    download = link("datasets", "skills.csv", **of) if anchor == "skills" else ""
    return Grid(anchor, title, heads, rows, note=note, download=download)


def _tools(now: Sequence[ToolGroup], before: Sequence[ToolGroup] | None, of: Mapping[str, str]) -> Grid:
    earlier = {(tool.kind, tool.name): tool for tool in before or ()}
    rows = []
    for tool in now:
        was = earlier.get((tool.kind, tool.name))
        share = was.failing_share if was else None
        changed = "" if before is None else change(RATES[0], tool.failing_share, share)
        why = {**tool.failed_by_class, "other_errors": tool.other_errors}
        told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in why.items() if count)
        rows.append(
            (
                Cell(tool.name, to_conversation(tool.latest), below=tool.kind),
                Cell(told or "–"),
                Cell(f"{tool.calls:,}"),
                Cell(f"{tool.conversations:,}"),
                Cell(numbers.percent(tool.failing_share), below=changed, tone="failed" if tool.failing_calls else ""),
                Cell(f"{tool.repeated_calls:,}"),
                Cell(f"{tool.writes:,}", tone="failed" if tool.writes else "zero"),
            )
        )
    heads = ("tool", "fails by", "calls", "in", "failing", "again", "writes")
    note = "The name leads to the latest conversation in which it failed, or was called."
    return Grid("tools", "Tools", heads, tuple(rows), words=2, note=note, download=link("datasets", "tools.csv", **of))
