"""A summary as one HTML file that needs nothing else: no request, no script, either colour scheme."""

import re
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalfarm.contracts.verdict import VERDICTS, CaseSummary, Rate, RunSummary, Verdict
from evalfarm.reports import numbers
from evalfarm.reports.run import case_tables, expectations, findings, label_tables, tables
from evalfarm.reports.run.pictures import pictures
from evalfarm.reports.safe_text import harmless

MARKS: dict[Verdict, str] = {"passed": "✓", "failed": "✗", "inconclusive": "?", "infra_failed": "!", "not_run": "–"}
"""A verdict's sign in the grid, so that its colour never stands alone."""

_NO_NAME = re.compile(r"[^a-z0-9]+")
MOST_MARKS = 2_000
"""Of a larger run the page draws its trials as a map alone."""


class Segment(NamedTuple):
    """One verdict's part of the bar over all trials, in percent of its width."""

    verdict: Verdict
    words: str
    mark: str
    trials: int
    start: float
    width: float


class Mark(NamedTuple):
    """One trial in the grid."""

    verdict: Verdict
    mark: str
    says: str


class GridRow(NamedTuple):
    """One case: its trials' marks, arm by arm."""

    case: str
    tags: str
    arms: tuple[tuple[Mark, ...], ...]


class Bar(NamedTuple):
    """A rate and its interval in percent of the bar's width."""

    value: float
    low: float
    high: float


def render(summary: RunSummary) -> str:
    """The whole page. Every text that comes from outside is escaped by the template's autoescape."""
    known, read = expectations.by_case(summary), findings.breaks_first(summary.breaks)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            summary=summary,
            findings=findings,
            segments=segments(summary),
            figures=(*tables.core(summary)[2:], *label_tables.shown(summary)),
            detail=tables.detail(summary),
            slices=case_tables.slices(summary),
            wanted=lambda case: expectations.wanted(known, case),
            pictures=pictures(summary),
            grid=grid(summary) if summary.planned <= MOST_MARKS else (),
            look_at=findings.by_arm(findings.cases_to_look_at(summary)),
            repeats=max((len(case.verdicts) for case in summary.cases), default=1),
            levels=findings.levels(summary.breaks),
            broken=[reading for reading in read if findings.end(reading) != findings.HELD],
            held=[reading for reading in read if findings.end(reading) == findings.HELD],
            commands=findings.next_commands(summary),
            glossary=findings.WORDS,
        )
    )


def segments(summary: RunSummary) -> tuple[Segment, ...]:
    """The five counts as parts of one bar, in the order in which they are always named."""
    found = []
    start = 0.0
    for verdict in VERDICTS:
        count: int = getattr(summary, verdict)
        width = 100 * count / summary.planned
        found.append(Segment(verdict, findings.VERDICT_WORDS[verdict], MARKS[verdict], count, start, width))
        start += width
    return tuple(found)


def grid(summary: RunSummary) -> tuple[GridRow, ...]:
    """Case × arm, each with one mark per repeat; the columns are the arms in the summary's order."""
    by_place = {(case.case, case.model, case.harness, case.variant): case for case in summary.cases}
    rows = []
    for name in dict.fromkeys(case.case for case in summary.cases):
        cases = [by_place.get((name, cell.model, cell.harness, cell.variant)) for cell in summary.cells]
        tags = next(case.tags for case in cases if case is not None)
        told = ", ".join(f"{key}={value}" for key, value in sorted(tags.items()))
        rows.append(GridRow(name, told, tuple(() if case is None else _marks(case) for case in cases)))
    return tuple(rows)


def _marks(case: CaseSummary) -> tuple[Mark, ...]:
    return tuple(
        Mark(verdict, MARKS[verdict], f"trial {index}, repeat {repeat}: {findings.VERDICT_WORDS[verdict]}")
        for repeat, (index, verdict) in enumerate(zip(case.trials, case.verdicts, strict=True), 1)
    )


def bar(rate: Rate) -> Bar | None:
    """Where a rate's bar begins, ends and has its dot; None where nothing was decided."""
    if rate.value is None or rate.low is None or rate.high is None:
        return None
    return Bar(value=100 * rate.value, low=100 * rate.low, high=100 * rate.high)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evalfarm.reports.run", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plain=harmless,
        count=lambda value: f"{value:,}",
        bar=bar,
        interval=numbers.interval,
        percent=numbers.percent,
        bounds=numbers.bounds,
        anchor=lambda title: _NO_NAME.sub("-", title.lower()),
        broken=lambda head: Markup("<br>").join(head.split("\n")),
        moment=numbers.moment,
    )
    return environment
