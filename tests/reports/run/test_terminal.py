from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import terminal


def printed(summary: RunSummary, *, width: int = 100, colour: bool = False) -> str:
    """The report without the blanks that pad its lines."""
    file = StringIO()
    console = Console(file=file, width=width, force_terminal=colour, color_system="standard" if colour else None)
    terminal.render(summary, console=console)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def test_the_report_reads_as_stored(summary: RunSummary, snapshots: Path) -> None:
    assert printed(summary) == (snapshots / "terminal.txt").read_text(encoding="utf-8")


def test_the_finding_is_in_the_first_three_lines(summary: RunSummary) -> None:
    assert printed(summary).splitlines()[:6] == [
        "90 planned = 80 passed + 7 failed + 1 inconclusive + 1 infra failed + 1 not run",
        "Weakest: sim-careful · codex · plain: 9 of 15 trials passed, by case 60.0 % [23.1, 88.2]",
        "Broke first: codex in 3 of 15 readings (case × model × variant).",
        "Shakiest: sim-flaky · codex · plain: 20.0 % flipped at 3 repeats, D 13.3 % [1.2, 65.2], spread no",
        "more than rerun noise.",
        "SIMULATED: a simulated model took part; its rates say nothing about a real model.",
    ]


def test_no_line_is_wider_than_the_console_or_100_columns(summary: RunSummary) -> None:
    for width, most in ((80, 80), (100, 100), (200, 100)):
        assert max(map(len, printed(summary, width=width).splitlines())) <= most


def test_every_table_is_whole_at_80_columns(summary: RunSummary) -> None:
    lines = printed(summary, width=80).splitlines()
    for told in (
        "sim-flaky    codex    plain         15      11       1        1       1    1",
        "sim-flaky    codex    plain     93.3 %   [44.8, 99.6]  73.3 … 93.3 [30.7, 99.5]",
        "sim-flaky    codex    plain    1 of 5 at 3  20.0 [3.6, 62.4]  13.3 [1.2, 65.2]",
        "sim-flaky    codex    plain      86.7   100.0   50.0 … 100.0   28.9  no (p 0.37)",
        "sim-flaky    codex    plain         2.4     2.5       1,501   1,500",
        "sim-flaky    codex    plain     1.11 [?, ?]    1.42 [1.11, ?]          0",
        "sim-flaky    codex    plain    unknown  unknown  unknown  unknown        n/a",
    ):
        assert told in lines


def test_colour_adds_nothing_to_the_words(summary: RunSummary) -> None:
    coloured = printed(summary, colour=True)
    assert "\x1b[" in coloured
    plain = Text.from_ansi(coloured).plain
    assert [line.rstrip() for line in plain.splitlines()] == printed(summary).splitlines()


def test_a_reason_cannot_steer_the_terminal_or_use_mark_up(summary: RunSummary) -> None:
    broken = next(case for case in summary.cases if case.labels["failed"])
    hostile = broken.model_copy(update={"reasons": ("\x1b[2J[bold]gone[/bold]\nnext " + "x" * 500, "b", "c", "d", "e")})
    lines = printed(summary.model_copy(update={"cases": (hostile,)})).splitlines()
    at = next(at for at, line in enumerate(lines) if "gone" in line)
    assert lines[at] == r"    \x1b[2J[bold]gone[/bold] next"
    assert "more characters)" in " ".join(line.strip() for line in lines)
    assert "    … and 2 more reasons" in lines


def test_a_long_list_ends_with_what_was_left_out(summary: RunSummary) -> None:
    many = summary.model_copy(update={"cases": summary.cases * 5, "breaks": summary.breaks * 8})
    text = printed(many)
    assert "… and 5 more cases, on the page." in text
    assert "before them" not in text
    assert "… and 4 more readings, on the page." in text


def test_of_many_that_flipped_the_shakiest_are_told(summary: RunSummary) -> None:
    flipped = next(case for case in summary.cases if case.labels["passed"] and case.labels["failed"])
    many = [
        flipped.model_copy(update={"case": f"case-{passed}", "labels": {**flipped.labels, "passed": passed}})
        for passed in range(1, 24)
    ]
    lines = printed(summary.model_copy(update={"cases": tuple(many)})).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Cases that flipped"))
    assert [lines[at + 3].split()[0], lines[at + 22].split()[0]] == ["case-20", "case-1"]
    assert lines[at + 23] == "before them 3 steadier cases, on the page"


def test_a_slice_beyond_the_first_ones_is_counted(summary: RunSummary) -> None:
    assert "… and 4 more slices, on the page." in printed(summary.model_copy(update={"slices": summary.slices * 4}))
