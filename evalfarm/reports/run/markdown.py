"""A summary as GitHub-flavoured Markdown, for a pull request or a job's summary."""

from dataclasses import replace

from evalfarm.contracts.verdict import CaseSummary, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import case_tables, expectations, findings, label_tables, tables
from evalfarm.reports.run.expectations import Wanted
from evalfarm.reports.safe_text import cut, in_markdown, one_line
from evalfarm.reports.table import Table, as_markdown

MOST_ROWS = 50
"""Of cases, and of readings: GitHub cuts a comment off at 65,536 characters."""
_MOST_REASONS = 3
_REASON_LENGTH = 400


def render(summary: RunSummary) -> str:
    """The report in the order of the terminal's; ends with a newline."""
    parts = (
        f"## {in_markdown(findings.identity(summary))}",
        _opening(summary),
        *_cases(summary),
        *_first_rows(case_tables.breaks(summary.breaks), "more reading"),
        *(as_markdown(of) for of in (*tables.core(summary), *label_tables.shown(summary), *tables.detail(summary))),
        *_flipped(summary),
        *_first_rows(case_tables.slices(summary), "more slice"),
        *_next(summary),
    )
    return "\n\n".join(parts) + "\n"


def _opening(summary: RunSummary) -> str:
    counts, *found = findings.headlines(summary)
    return "\n".join(
        (
            f"**{counts}**  ",
            *(f"{in_markdown(sentence)}  " for sentence in found),
            "",
            *(f"> {in_markdown(said)}  " for said in (*findings.caveats(summary), *findings.variants(summary))),
        )
    )


def _flipped(summary: RunSummary) -> list[str]:
    """The shakiest of those that flipped, which come last."""
    found = findings.flipped(summary)
    left_out = [f"Before them {numbers.plural(len(found) - MOST_ROWS, 'steadier case')}."] if found[MOST_ROWS:] else []
    return [as_markdown(case_tables.flipping(found[-MOST_ROWS:])), *left_out] if found else []


def _first_rows(table: Table, what: str) -> list[str]:
    if not table.rows:
        return [f"### {in_markdown(table.title)}", in_markdown(table.note)] if table.note else []
    left_out = [f"… and {numbers.plural(len(table.rows) - MOST_ROWS, what)}."] if table.rows[MOST_ROWS:] else []
    return [as_markdown(replace(table, rows=table.rows[:MOST_ROWS])), *left_out]


def _next(summary: RunSummary) -> list[str]:
    commands = findings.next_commands(summary)
    return ["### Next", "\n".join(f"- `{command.line}`: {command.gives}" for command in commands)] if commands else []


def _cases(summary: RunSummary) -> list[str]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    known = expectations.by_case(summary)
    parts = ["### Cases that did not pass"]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        parts.append(f"**{in_markdown(named)}**")
        parts.append("\n".join(_case(summary, case, expectations.wanted(known, case)) for case in cases))
    if found[MOST_ROWS:]:
        parts.append(f"… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}.")
    return parts


def _case(summary: RunSummary, case: CaseSummary, wanted: Wanted | None) -> str:
    trials = findings.trials_to_show(case)
    show = f"; `evalfarm show {summary.run}/{trials[0]}`" if summary.manifest and trials else ""
    reasons = [f"  - {in_markdown(cut(one_line(reason), _REASON_LENGTH))}" for reason in case.reasons[:_MOST_REASONS]]
    if case.reasons[_MOST_REASONS:]:
        reasons.append(f"  - … and {numbers.plural(len(case.reasons) - _MOST_REASONS, 'more reason')}")
    if wanted is not None:
        reasons += [f"  - {in_markdown(cut(one_line(line), _REASON_LENGTH))}" for line in wanted.lines]
    return "\n".join((f"- {in_markdown(case.case)}: {findings.tally(case)}{show}", *reasons))
