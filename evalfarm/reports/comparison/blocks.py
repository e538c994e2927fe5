"""A report as a list of sentences and tables, drawn on a terminal or as Markdown from the same list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from evalfarm.reports.safe_text import in_markdown, one_line
from evalfarm.reports.table import WIDTH, Table, as_markdown, heading, on_terminal


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence; `finding`: one of those that a report opens with."""

    text: str
    finding: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """Sentences under a title."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Typed:
    """A command to type; never broken into lines, so that it can be copied."""

    command: str


Block = Said | Table | Listed | Typed


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
                said = in_markdown(text)
                parts.append(f"**{said}**  " if finding else f"{said}  ")
            case Typed(command):
                parts += ["", "```sh", one_line(command), "```", ""]
            case Listed(title, lines):
                parts += ["", f"### {in_markdown(title)}", "", *(f"- {in_markdown(line)}" for line in lines)]
            case Table():
                parts += ["", as_markdown(block)]
    return "\n".join(parts) + "\n"


def _drawn(block: Said | Table | Listed) -> list[Text | Padding | Drawn]:
    match block:
        case Said(text, finding):
            return [Text(one_line(text), style="bold" if finding else "")]
        case Listed(title, lines):
            return [heading(title), *(Padding(Text(one_line(line)), (0, 0, 0, 2), expand=False) for line in lines)]
        case Table():
            return [*on_terminal(block)]
