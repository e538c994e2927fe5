from pathlib import Path

import pytest

from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import markdown
from evalfarm.reports.safe_text import in_markdown


def test_the_report_reads_as_stored(summary: RunSummary, snapshots: Path) -> None:
    assert markdown.render(summary) == (snapshots / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("fetch_bls_data", r"fetch\_bls\_data"),
        ("a | b\nc", r"a \| b c"),
        ("<script>&", "&lt;script&gt;&amp;"),
        ("[@BLS](plugin://BLS)", r"\[&#64;BLS\](plugin://BLS)"),
        ("issue #12", r"issue \#12"),
        ("\x1b[1m", r"\\x1b\[1m"),
    ],
)
def test_text_from_outside_has_no_mark_up(text: str, written: str) -> None:
    assert in_markdown(text) == written


def test_every_table_has_as_many_cells_in_each_row(summary: RunSummary) -> None:
    tables = [part.splitlines() for part in markdown.render(summary).split("\n\n") if part.startswith("|")]
    assert [len(table) for table in tables] == [5, 8, 8, 8, 8, 8, 8, 8, 8, 6, 3, 8]
    for table in tables:
        assert len({line.count("|") for line in table}) == 1


def test_a_long_list_ends_with_what_was_left_out(summary: RunSummary) -> None:
    many = summary.model_copy(update={"cases": summary.cases * 12, "breaks": summary.breaks * 20})
    text = markdown.render(many)
    assert "… and 10 more cases." in text
    assert "… and 10 more readings." in text
    assert len(text) < 65536
