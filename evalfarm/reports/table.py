"""One table, drawn on a terminal or as Markdown; the page has its own form of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table as Drawn
from rich.text import Text

from evalfarm.reports.safe_text import in_markdown, one_line

WIDTH = 100
"""Of a report on a terminal, at most."""
_LONGEST_WORD = 24
"""Kept whole in a table: the name of a model, say."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table under its title, over its note: its first `words` columns are words, the rest figures.

    A head may break its line.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 3
    note: str = ""


def on_terminal(table: Table) -> list[Text | Drawn]:
    """Title, table and note. Where they do not fit, words fold first and figures last; nothing is ever cut off."""
    drawn = Drawn(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    columns = list(zip(table.heads, *table.rows, strict=True))
    longest = [min(_longest(" ".join(column).split()), _LONGEST_WORD) for column in columns]
    whole = [_longest([line for text in column for line in text.split("\n")]) for column in columns]
    figures_fit = sum(longest[: table.words]) + sum(whole[table.words :]) + 2 * len(columns) <= WIDTH
    for place, head in enumerate(table.heads):
        figure = place >= table.words
        justify: Literal["left", "right"] = "right" if figure else "left"
        drawn.add_column(
            head, justify=justify, overflow="fold", min_width=longest[place], no_wrap=figure and figures_fit
        )
    for row in table.rows:
        drawn.add_row(*(Text(one_line(cell)) for cell in row))
    return [heading(table.title), drawn, *([Text(one_line(table.note), style="dim")] if table.note else [])]


def as_markdown(table: Table) -> str:
    """Title, table and note, with an empty line between them."""
    heads = [head.replace("-\n", "").replace("/\n", "/") for head in table.heads]
    rule = [":--"] * table.words + ["--:"] * (len(heads) - table.words)
    cells = [[in_markdown(cell) for cell in row] for row in (heads, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (cells[0], rule, *cells[1:])]
    note = [in_markdown(table.note)] if table.note else []
    return "\n\n".join((f"### {in_markdown(table.title)}", "\n".join(lines), *note))


def heading(text: str) -> Text:
    """The title of a part of a report on a terminal."""
    return Text(f"\n{text}", style="bold cyan")


def _longest(words: Sequence[str]) -> int:
    return max(map(len, words), default=0)
