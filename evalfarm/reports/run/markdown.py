"""A summary as GitHub-flavoured Markdown, for a pull request or a job's summary."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from evalfarm.contracts.verdict import CaseSummary, FirstBreak, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import case_tables, findings, tables
from evalfarm.reports.safe_text import cut, one_line

MOST_ROWS = 50
"""Of cases, and of readings: GitHub cuts a comment off at 65,536 characters."""
_MOST_REASONS = 3
_REASON_LENGTH = 400
_SPECIAL = re.compile(r"([\\`*_{}\[\]|#~])")


def render(summary: RunSummary) -> str:
    """The report in the order of the terminal's; ends with a newline."""
    parts = (
        f"## {escape(findings.identity(summary))}",
        _opening(summary),
        *(_titled(table) for table in (*tables.core(summary), *tables.detail(summary))),
        *_flipped(summary),
        *_slices(summary),
        *_cases(summary),
        *_breaks(summary.breaks),
        *_next(summary),
    )
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text from outside as Markdown shows it: on one line, with no mark-up, no HTML and no mention in it."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Last, for its own `#` must stay: an `@name` left as it is would notify whoever has that name.
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "&#64;")


def _opening(summary: RunSummary) -> str:
    counts, *found = findings.headlines(summary)
    return "\n".join(
        (
            f"**{counts}**  ",
            *(f"{escape(sentence)}  " for sentence in found),
            "",
            *(f"> {escape(said)}  " for said in findings.caveats(summary)),
        )
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int) -> str:
    """A table whose first `words` columns are words, and the rest figures, aligned to the right."""
    rule = [":--"] * words + ["--:"] * (len(heads) - words)
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))


def _titled(told: tables.Table) -> str:
    """A table under its title, over its note."""
    heads = [escape(head.replace("-\n", "").replace("/\n", "/")) for head in told.heads]
    table = _table(heads, ([escape(cell) for cell in row] for row in told.rows), words=told.words)
    return "\n\n".join((f"### {told.title}", table, *([escape(told.note)] if told.note else [])))


def _flipped(summary: RunSummary) -> list[str]:
    """The shakiest of those that flipped, which come last."""
    found = findings.flipped(summary)
    left_out = [f"Before them {numbers.plural(len(found) - MOST_ROWS, 'steadier case')}."] if found[MOST_ROWS:] else []
    return [_titled(case_tables.flipping(found[-MOST_ROWS:])), *left_out] if found else []


def _slices(summary: RunSummary) -> list[str]:
    if not summary.slices:
        return []
    told = case_tables.slices(summary)
    left_out = [f"… and {numbers.plural(len(told.rows) - MOST_ROWS, 'more slice')}."] if told.rows[MOST_ROWS:] else []
    return [_titled(replace(told, rows=told.rows[:MOST_ROWS])), *left_out]


def _next(summary: RunSummary) -> list[str]:
    commands = findings.next_commands(summary)
    return ["### Next", "\n".join(f"- `{command.line}`: {command.gives}" for command in commands)] if commands else []


def _cases(summary: RunSummary) -> list[str]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    parts = ["### Cases that did not pass"]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        parts.append(f"**{escape(named)}**")
        parts.append("\n".join(_case(summary, case) for case in cases))
    if found[MOST_ROWS:]:
        parts.append(f"… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}.")
    return parts


def _case(summary: RunSummary, case: CaseSummary) -> str:
    trials = findings.trials_to_show(case)
    show = f"; `evalfarm show {summary.run}/{trials[0]}`" if summary.manifest and trials else ""
    reasons = [f"  - {escape(cut(one_line(reason), _REASON_LENGTH))}" for reason in case.reasons[:_MOST_REASONS]]
    if case.reasons[_MOST_REASONS:]:
        reasons.append(f"  - … and {numbers.plural(len(case.reasons) - _MOST_REASONS, 'more reason')}")
    return "\n".join((f"- {escape(case.case)}: {findings.tally(case)}{show}", *reasons))


def _breaks(breaks: Sequence[FirstBreak]) -> list[str]:
    if not breaks:
        return []
    levels = findings.levels(breaks)
    rows = findings.breaks_first(breaks)
    table = _table(
        ("case", "model", "variant", "broke first", *levels),
        (
            (
                *(escape(named) for named in (reading.case, reading.model, reading.variant)),
                findings.end(reading),
                *(reading.passed.get(level, "") for level in levels),
            )
            for reading in rows[:MOST_ROWS]
        ),
        words=4,
    )
    left_out = [f"… and {numbers.plural(len(rows) - MOST_ROWS, 'more reading')}."] if rows[MOST_ROWS:] else []
    return ["### Which level broke first\n\nPassed/decided, level by level.", table, *left_out]
