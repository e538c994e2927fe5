"""A summary on the terminal: the finding first, then the tables, then what to type next.

Several narrow tables instead of one wide one: each fits 80 columns in a small run, and 100 with a long model name.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from evalfarm.contracts.verdict import CaseSummary, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import case_tables, expectations, findings, label_tables, tables
from evalfarm.reports.run.expectations import Wanted
from evalfarm.reports.safe_text import cut, one_line
from evalfarm.reports.table import WIDTH, Table, heading, on_terminal

MOST_ROWS = 20
"""Of cases, and of readings, that a terminal is given; the page has them all."""
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
        *_cases(summary),
        *_first_rows(case_tables.breaks(summary.breaks), "more reading"),
        *(line for table in (*tables.core(summary), *label_tables.shown(summary)) for line in on_terminal(table)),
        *_flipped(summary),
        *_first_rows(case_tables.slices(summary), "more slice"),
        *_next(summary),
    ):
        console.print(part, width=width, markup=False, highlight=False)


def _opening(summary: RunSummary) -> list[Text]:
    found = [Text(one_line(sentence), style="bold") for sentence in findings.headlines(summary)]
    loud = [
        Text(one_line(said), style="yellow" if said.split(":")[0].isupper() else "")
        for said in findings.caveats(summary)
    ]
    known = (findings.identity(summary), *findings.variants(summary))
    return [*found, *loud, *(Text(one_line(said)) for said in known)]


def _flipped(summary: RunSummary) -> list[Text | Drawn]:
    """The shakiest of those that flipped, which come last."""
    found = findings.flipped(summary)
    if not found:
        return []
    parts = on_terminal(case_tables.flipping(found[-MOST_ROWS:]))
    left_out = len(found) - MOST_ROWS
    return (
        [*parts, Text(f"before them {numbers.plural(left_out, 'steadier case')}, on the page")]
        if left_out > 0
        else parts
    )


def _first_rows(table: Table, what: str) -> list[Text | Drawn]:
    """As much of a table as a terminal is given; nothing of one without a row."""
    if not table.rows:
        return [heading(table.title), Text(table.note, style="dim")] if table.note else []
    left_out = len(table.rows) - MOST_ROWS
    more = [Text(f"… and {numbers.plural(left_out, what)}, on the page.")] if left_out > 0 else []
    return [*on_terminal(replace(table, rows=table.rows[:MOST_ROWS])), *more]


def _cases(summary: RunSummary) -> list[Text | Padding]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    known = expectations.by_case(summary)
    lines: list[Text | Padding] = [heading("Cases that did not pass")]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        lines.append(Text(f"\n{one_line(named)}", style="bold"))
        for case in cases:
            lines.extend(_case(summary.run if summary.manifest else None, case, expectations.wanted(known, case)))
    if found[MOST_ROWS:]:
        lines.append(Text(f"\n… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}, on the page."))
    return lines


def _case(run: str | None, case: CaseSummary, wanted: Wanted | None) -> list[Text | Padding]:
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
        *(_indented(Text(line, style="dim"), 4) for line in _wanted(wanted)),
        *(
            [_indented(Text(f"evalfarm show {run}/{trials[0]}{_others(trials[1:])}", style="dim"), 4)]
            if run and trials
            else []
        ),
    ]


def _wanted(wanted: Wanted | None) -> list[str]:
    if wanted is None:
        return []
    return [cut(one_line(line), _REASON_LENGTH) for line in wanted.lines]


def _others(trials: Sequence[int]) -> str:
    if not trials:
        return ""
    named = ", ".join(f"/{index}" for index in trials[:_MOST_TRIALS])
    more = f" … and {len(trials) - _MOST_TRIALS:,} more" if trials[_MOST_TRIALS:] else ""
    return f"   also {named}{more}"


def _indented(text: Text, columns: int) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _next(summary: RunSummary) -> list[Text]:
    commands = findings.next_commands(summary)
    if not commands:
        return []
    column = max(len(command.line) for command in commands)
    return [heading("Next"), *(Text(f"  {command.line:<{column}}   {command.gives}") for command in commands)]
