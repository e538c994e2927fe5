from io import StringIO

from rich.console import Console

from evalfarm.reports.table import Table, as_markdown, on_terminal

TABLE = Table("Title *", ("arm", "calls/\nquestion", "incon-\nclusive"), (("a|b", "1.0", "2"),), words=1, note="Note.")


def printed(table: Table, width: int = 100) -> list[str]:
    file = StringIO()
    for part in on_terminal(table):
        Console(file=file, width=width).print(part, markup=False, highlight=False)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_table_stands_between_its_title_and_its_note() -> None:
    assert printed(TABLE) == [
        "",
        "Title *",
        "       calls/   incon-",
        "arm  question  clusive",
        "──────────────────────",
        "a|b       1.0        2",
        "Note.",
    ]
    assert as_markdown(TABLE) == (
        "### Title \\*\n\n| arm | calls/question | inconclusive |\n| :-- | --: | --: |\n| a\\|b | 1.0 | 2 |\n\nNote."
    )


def test_words_fold_before_figures_do_and_nothing_is_cut_off() -> None:
    wide = Table("T", ("arm", "n"), (("one two three four five six", "1,234,567 [1, 2]"),), words=1)
    text = printed(wide, width=40)
    assert "1,234,567 [1, 2]" in " ".join(text)
    assert {word for line in text for word in line.split()} >= {"one", "two", "three", "four", "five", "six"}
