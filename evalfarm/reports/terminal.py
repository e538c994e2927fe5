"""A run's summary on the terminal: the finding first, then the tables, then what to type next.

Three narrow tables instead of one wide one: each fits 80 columns, and 100 with a long model name.
"""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from evalfarm.contracts.verdict import CaseSummary, CellSummary, FirstBreak, RunSummary
from evalfarm.reports import findings, numbers
from evalfarm.reports.safe_text import cut, one_line

WIDTH = 100
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
        _heading("Trials"),
        _counts(summary.cells),
        _heading("Pass rate (mean over cases) with its 95 % interval for new cases of this kind, and flips"),
        _rates(summary.cells),
        _heading("Effort, latency and cost"),
        _effort(summary.cells),
        *_cases(summary),
        *_breaks(summary.breaks),
        *_next(summary),
    ):
        console.print(part, width=width, markup=False, highlight=False)


def _opening(summary: RunSummary) -> list[Text | Rule]:
    weakest = Text(findings.weakest_arm(summary), style="bold")
    levels = Text(findings.broken_levels(summary), style="bold")
    loud = [Text(said, style="yellow" if said.split(":")[0].isupper() else "") for said in findings.caveats(summary)]
    return [Text(findings.counts(summary), style="bold"), weakest, levels, *loud, Text(findings.identity(summary))]


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold cyan")


def _table(*, figures: Sequence[str]) -> Table:
    """A table whose rows are arms: three columns to name one, then its figures, aligned to the right."""
    table = _bare_table()
    table.add_column("model", overflow="fold")
    table.add_column("harness", no_wrap=True)
    table.add_column("variant", overflow="fold")
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def _bare_table() -> Table:
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


def _arm(cell: CellSummary) -> tuple[Text, Text, Text]:
    return Text(cell.model), Text(cell.harness), Text(cell.variant)


def _counts(cells: Sequence[CellSummary]) -> Table:
    table = _table(figures=("planned", "passed", "failed", "incon-\nclusive", "infra\nfailed", "not\nrun"))
    for cell in cells:
        table.add_row(
            *_arm(cell),
            f"{cell.planned:,}",
            f"{cell.passed:,}",
            Text(f"{cell.failed:,}", style="red" if cell.failed else ""),
            *(
                Text(f"{count:,}", style="yellow" if count else "")
                for count in (cell.inconclusive, cell.infra_failed, cell.not_run)
            ),
        )
    return table


def _rates(cells: Sequence[CellSummary]) -> Table:
    table = _table(figures=("pass\nrate", "interval", "flips"))
    for cell in cells:
        rate = cell.pass_rate
        table.add_row(
            *_arm(cell), numbers.percent(rate.value), Text(numbers.interval(rate)), numbers.flips(cell.flip_rate)
        )
    return table


def _effort(cells: Sequence[CellSummary]) -> Table:
    table = _table(figures=("calls/\nquestion", "reasoning/\nquestion", "p50 s", "p95 s", "cost"))
    for cell in cells:
        table.add_row(
            *_arm(cell),
            numbers.per_question(cell.tool_calls_per_question),
            numbers.per_question(cell.reasoning_tokens_per_question),
            numbers.seconds(cell.latency_s.p50),
            numbers.seconds(cell.latency_s.p95),
            numbers.cost(cell.cost_usd),
        )
    return table


def _cases(summary: RunSummary) -> list[Text | Padding]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    lines: list[Text | Padding] = [_heading("Cases that did not pass")]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        lines.append(Text(f"\n{named}", style="bold"))
        for case in cases:
            lines.extend(_case(summary.run, case))
    if found[MOST_ROWS:]:
        lines.append(Text(f"\n… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}, on the page."))
    return lines


def _case(run: str, case: CaseSummary) -> list[Text | Padding]:
    trials = findings.trials_to_show(case)
    title = Text.assemble((case.case, "red" if case.labels.get("failed") else "yellow"), f": {findings.tally(case)}")
    shown = [cut(one_line(reason), _REASON_LENGTH) for reason in case.reasons[:_MOST_REASONS]]
    if case.reasons[_MOST_REASONS:]:
        shown.append(f"… and {numbers.plural(len(case.reasons) - _MOST_REASONS, 'more reason')}")
    return [
        _indented(title, 2),
        *(_indented(Text(reason), 4) for reason in shown),
        _indented(Text(f"evalfarm show {run}/{trials[0]}{_others(trials[1:])}", style="dim"), 4),
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
            Text(reading.case),
            Text(reading.model),
            Text(reading.variant),
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
    column = max(len(command.line) for command in commands)
    return [_heading("Next"), *(Text(f"  {command.line:<{column}}   {command.gives}") for command in commands)]
