"""A summary on the terminal: the finding first, then the tables, then what to type next.

Several narrow tables instead of one wide one: each fits 80 columns in a small run, and 100 with a long model name.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evalfarm.contracts.verdict import CaseSummary, FirstBreak, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import case_tables, findings, tables
from evalfarm.reports.safe_text import cut, one_line

WIDTH = 100
MOST_ROWS = 20
"""Of cases, and of readings, that a terminal is given; the page has them all."""
_LONGEST_WORD = 24
"""Kept whole in a table: the name of a model, say."""
_MOST_REASONS = 3
_MOST_TRIALS = 6
_REASON_LENGTH = 400


def render(summary: RunSummary, *, console: Console) -> None:
    """Print the report, in at most 100 columns of the console's width.

    Meaning is in words and numbers; colour only repeats it, so a pipe loses nothing.
    """
    width = min(console.width, WIDTH)
    for part in (
        *_opening(summary),
        *(line for table in tables.core(summary) for line in _titled(table)),
        *_flipped(summary),
        *_slices(summary),
        *_cases(summary),
        *_breaks(summary.breaks),
        *_next(summary),
    ):
        console.print(part, width=width, markup=False, highlight=False)


def _opening(summary: RunSummary) -> list[Text]:
    found = [Text(one_line(sentence), style="bold") for sentence in findings.headlines(summary)]
    loud = [
        Text(one_line(said), style="yellow" if said.split(":")[0].isupper() else "")
        for said in findings.caveats(summary)
    ]
    return [*found, *loud, Text(one_line(findings.identity(summary)))]


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold cyan")


def _titled(told: tables.Table) -> list[Text | Table]:
    """A table under its title, over its note; words fold where they are too long, figures never do."""
    table = _bare_table()
    for at, head in enumerate(told.heads):
        if at < told.words:
            longest = max((len(word) for row in told.rows for word in row[at].split()), default=0)
            table.add_column(head, overflow="fold", min_width=min(longest, _LONGEST_WORD))
        else:
            table.add_column(head, justify="right", no_wrap=True)
    for row in told.rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return [_heading(told.title), table, *([Text(told.note, style="dim")] if told.note else [])]


def _bare_table() -> Table:
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


def _flipped(summary: RunSummary) -> list[Text | Table]:
    """The shakiest of those that flipped, which come last."""
    found = findings.flipped(summary)
    if not found:
        return []
    parts = _titled(case_tables.flipping(found[-MOST_ROWS:]))
    left_out = len(found) - MOST_ROWS
    return (
        [*parts, Text(f"before them {numbers.plural(left_out, 'steadier case')}, on the page")]
        if left_out > 0
        else parts
    )


def _slices(summary: RunSummary) -> list[Text | Table]:
    if not summary.slices:
        return []
    told = case_tables.slices(summary)
    parts = _titled(replace(told, rows=told.rows[:MOST_ROWS]))
    left_out = len(told.rows) - MOST_ROWS
    return [*parts, Text(f"… and {numbers.plural(left_out, 'more slice')}, on the page.")] if left_out > 0 else parts


def _cases(summary: RunSummary) -> list[Text | Padding]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    lines: list[Text | Padding] = [_heading("Cases that did not pass")]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        lines.append(Text(f"\n{one_line(named)}", style="bold"))
        for case in cases:
            lines.extend(_case(summary.run if summary.manifest else None, case))
    if found[MOST_ROWS:]:
        lines.append(Text(f"\n… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}, on the page."))
    return lines


def _case(run: str | None, case: CaseSummary) -> list[Text | Padding]:
    trials = findings.trials_to_show(case)
    title = Text.assemble(
        (one_line(case.case), "red" if case.labels.get("failed") else "yellow"), f": {findings.tally(case)}"
    )
    shown = [cut(one_line(reason), _REASON_LENGTH) for reason in case.reasons[:_MOST_REASONS]]
    if case.reasons[_MOST_REASONS:]:
        shown.append(f"… and {numbers.plural(len(case.reasons) - _MOST_REASONS, 'more reason')}")
    return [
        _indented(title, 2),
        *(_indented(Text(reason), 4) for reason in shown),
        *(
            [_indented(Text(f"evalfarm show {run}/{trials[0]}{_others(trials[1:])}", style="dim"), 4)]
            if run and trials
            else []
        ),
    ]


def _others(trials: Sequence[int]) -> str:
    if not trials:
        return ""
    named = ", ".join(f"/{index}" for index in trials[:_MOST_TRIALS])
    more = f" … and {len(trials) - _MOST_TRIALS:,} more" if trials[_MOST_TRIALS:] else ""
    return f"   also {named}{more}"


def _indented(text: Text, columns: int) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _breaks(breaks: Sequence[FirstBreak]) -> list[Text | Table]:
    if not breaks:
        return []
    levels = findings.levels(breaks)
    table = _bare_table()
    for named in ("case", "model", "variant"):
        table.add_column(named, overflow="fold")
    for level in levels:
        table.add_column(level, justify="right", no_wrap=True)
    table.add_column("broke first", no_wrap=True)
    rows = findings.breaks_first(breaks)
    for reading in rows[:MOST_ROWS]:
        table.add_row(
            *(Text(one_line(named)) for named in (reading.case, reading.model, reading.variant)),
            *(reading.passed.get(level, "") for level in levels),
            Text(findings.end(reading), style="red" if reading.level else ""),
        )
    parts: list[Text | Table] = [_heading("Which level broke first (passed/decided)"), table]
    if rows[MOST_ROWS:]:
        left_out = numbers.plural(len(rows) - MOST_ROWS, "more reading")
        broken = sum(reading.level is not None for reading in rows[MOST_ROWS:])
        parts.append(Text(f"… and {left_out}, {broken:,} of them broken, on the page."))
    return parts


def _next(summary: RunSummary) -> list[Text]:
    commands = findings.next_commands(summary)
    if not commands:
        return []
    column = max(len(command.line) for command in commands)
    return [_heading("Next"), *(Text(f"  {command.line:<{column}}   {command.gives}") for command in commands)]
