"""A run's summary as GitHub-flavoured Markdown, for a pull request or a job's summary."""

import re
from collections.abc import Iterable, Sequence

from evalfarm.contracts.verdict import CaseSummary, CellSummary, FirstBreak, RunSummary
from evalfarm.reports import findings, numbers
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
        "### Pass rates\n\nMeans over cases, with their 95 % interval for new cases of this kind.",
        _rates(summary.cells),
        "### Effort, latency and cost",
        _effort(summary.cells),
        *_cases(summary),
        *_breaks(summary.breaks),
        "### Next",
        "\n".join(f"- `{command.line}`: {command.gives}" for command in findings.next_commands(summary)),
    )
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text from outside as Markdown shows it: on one line, with no mark-up, no HTML and no mention in it."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Last, for its own `#` must stay: an `@name` left as it is would notify whoever has that name.
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "&#64;")


def _opening(summary: RunSummary) -> str:
    found = (findings.weakest_arm(summary), findings.broken_levels(summary))
    return "\n".join(
        (
            f"**{findings.counts(summary)}**  ",
            *(f"{escape(sentence)}  " for sentence in found),
            "",
            *(f"> {escape(said)}  " for said in findings.caveats(summary)),
        )
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int) -> str:
    """A table whose first `words` columns are words, and the rest figures, aligned to the right."""
    rule = [":--"] * words + ["--:"] * (len(heads) - words)
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows))


def _arm(cell: CellSummary) -> tuple[str, str, str]:
    return escape(cell.model), cell.harness, cell.variant


def _rates(cells: Sequence[CellSummary]) -> str:
    counted = ("planned", "passed", "failed", "inconclusive", "infra failed", "not run")
    rows = (
        (
            *_arm(cell),
            *(f"{count:,}" for count in (cell.planned, cell.passed, cell.failed)),
            *(f"{count:,}" for count in (cell.inconclusive, cell.infra_failed, cell.not_run)),
            numbers.rate_with_interval(cell.pass_rate),
            numbers.flips(cell.flip_rate),
        )
        for cell in cells
    )
    return _table(("model", "harness", "variant", *counted, "pass rate", "flips"), rows, words=3)


def _effort(cells: Sequence[CellSummary]) -> str:
    rows = (
        (
            *_arm(cell),
            numbers.per_question(cell.tool_calls_per_question),
            numbers.per_question(cell.reasoning_tokens_per_question),
            numbers.seconds(cell.latency_s.p50),
            numbers.seconds(cell.latency_s.p95),
            numbers.cost(cell.cost_usd),
        )
        for cell in cells
    )
    figures = ("calls/question", "reasoning/question", "p50 s", "p95 s", "cost")
    return _table(("model", "harness", "variant", *figures), rows, words=3)


def _cases(summary: RunSummary) -> list[str]:
    found = findings.cases_to_look_at(summary)
    if not found:
        return []
    parts = ["### Cases that did not pass"]
    for named, cases in findings.by_arm(found[:MOST_ROWS]).items():
        parts.append(f"**{escape(named)}**")
        parts.append("\n".join(_case(summary.run, case) for case in cases))
    if found[MOST_ROWS:]:
        parts.append(f"… and {numbers.plural(len(found) - MOST_ROWS, 'more case')}.")
    return parts


def _case(run: str, case: CaseSummary) -> str:
    show = f"`evalfarm show {run}/{findings.trials_to_show(case)[0]}`"
    reasons = [f"  - {escape(cut(one_line(reason), _REASON_LENGTH))}" for reason in case.reasons[:_MOST_REASONS]]
    if case.reasons[_MOST_REASONS:]:
        reasons.append(f"  - … and {numbers.plural(len(case.reasons) - _MOST_REASONS, 'more reason')}")
    return "\n".join((f"- `{case.case}`: {findings.tally(case)}; {show}", *reasons))


def _breaks(breaks: Sequence[FirstBreak]) -> list[str]:
    levels = findings.levels(breaks)
    rows = findings.breaks_first(breaks)
    table = _table(
        ("case", "model", "variant", "broke first", *levels),
        (
            (
                f"`{reading.case}`",
                escape(reading.model),
                reading.variant,
                findings.end(reading),
                *(reading.passed.get(level, "") for level in levels),
            )
            for reading in rows[:MOST_ROWS]
        ),
        words=4,
    )
    left_out = [f"… and {numbers.plural(len(rows) - MOST_ROWS, 'more reading')}."] if rows[MOST_ROWS:] else []
    return ["### Which level broke first\n\nPassed/decided, level by level.", table, *left_out]
