"""A document of evalfarm's as one of the three forms that commands offer."""

from collections.abc import Callable
from typing import TypeVar

import click
from pydantic import TypeAdapter

from evalfarm.cli.output import stdout_console
from evalfarm.reports.comparison.blocks import Block, to_markdown, to_terminal
from evalfarm.reports.safe_text import in_json

D = TypeVar("D")


def show(document: D, adapter: TypeAdapter[D], drawn: Callable[[D], list[Block]], form: str | None) -> None:
    """Print a document as JSON, as Markdown, or (`form` None) for the terminal."""
    if form == "json":
        click.echo(in_json(adapter.dump_json(document, indent=2).decode()))
    elif form == "markdown":
        click.echo(to_markdown(drawn(document)), nl=False)
    else:
        to_terminal(drawn(document), console=stdout_console())
