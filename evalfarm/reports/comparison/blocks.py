"""A report as a list of sentences and tables, drawn on a terminal or as Markdown from the same list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evalfarm.reports.run.markdown import escape
from evalfarm.reports.safe_text import one_line

WIDTH = 100
_LONGEST_WORD = 24  #: kept whole in a table: the name of a model, say


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence; `finding`: one of those that a report opens with."""

    text: str
    finding: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table under its title; its first `words` columns are words, the rest figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Sentences under a title."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A command to type; never broken into lines, so that it can be copied."""

    command: str


Block = Said | Grid | Listed | Typed


def to_terminal(blocks: Iterable[Block], *, console: Console) -> None:
    """Print the report, in at most 100 columns of the console's width; colour only repeats what words say."""
    width = min(console.width, WIDTH)
    for block in blocks:
        if isinstance(block, Typed):
            console.print(f"  {one_line(block.command)}", soft_wrap=True, markup=False, highlight=False)
            continue
        for part in _drawn(block):
            console.print(part, width=width, markup=False, highlight=False)


def to_markdown(blocks: Sequence[Block]) -> str:
    """The report as GitHub-flavoured Markdown; ends with a newline."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case Said(text, finding):
                said = escape(text)
                parts.append(f"**{said}**  " if finding else f"{said}  ")
            case Typed(command):
                parts += ["", "```sh", one_line(command), "```", ""]
            case Listed(title, lines):
                parts += ["", f"### {escape(title)}", "", *(f"- {escape(line)}" for line in lines)]
            case Grid(title, heads, rows, words):
                rule = [":--"] * words + ["--:"] * (len(heads) - words)
                shown = [[escape(text) for text in row] for row in (heads, *rows)]
                lines_of = ["| " + " | ".join(row) + " |" for row in (shown[0], rule, *shown[1:])]
                parts += ["", f"### {escape(title)}", "", *lines_of]
    return "\n".join(parts) + "\n"


def _drawn(block: Said | Grid | Listed) -> list[Text | Padding | Table]:
    match block:
        case Said(text, finding):
            return [Text(one_line(text), style="bold" if finding else "")]
        case Listed(title, lines):
            return [_heading(title), *(Padding(Text(one_line(line)), (0, 0, 0, 2), expand=False) for line in lines)]
        case Grid(title, heads, rows, words):
            table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
            columns = list(zip(heads, *rows, strict=True))
            longest = [
                min(max(len(word) for text in column for word in text.split() or [""]), _LONGEST_WORD)
                for column in columns
            ]
            whole = [max(map(len, column)) for column in columns]
            # Words give way first, figures only where that is not enough; nothing is ever cut off.
            figures_fit = sum(longest[:words]) + sum(whole[words:]) + 2 * len(heads) <= WIDTH
            for place, head in enumerate(heads):
                figure = place >= words
                justify: Literal["left", "right"] = "right" if figure else "left"
                table.add_column(
                    head, justify=justify, overflow="fold", min_width=longest[place], no_wrap=figure and figures_fit
                )
            for row in rows:
                table.add_row(*(Text(one_line(text)) for text in row))
            return [_heading(title), table]


def _heading(title: str) -> Text:
    return Text(f"\n{title}", style="bold cyan")
