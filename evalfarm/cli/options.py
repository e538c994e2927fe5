"""Options that several commands share, in one wording."""

from collections.abc import Callable
from typing import Any

import click

from evalfarm.cli.output import as_document, stdout_console
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import markdown, page, terminal

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

html = click.option("--html", "form", flag_value="html", help="One self-contained page.")
in_markdown = click.option("--markdown", "form", flag_value="markdown", help="GitHub-flavoured Markdown.")


def as_json(what: str) -> Decorator:
    """`--json`: `what` is printed as one document."""
    return click.option("--json", "form", flag_value="json", help=f"{what} as one JSON document.")


def allow_different(what: str) -> Decorator:
    """`--allow-different`, after which `what` is done although the settings named differ."""
    return click.option(
        "--allow-different", "allowed", multiple=True, metavar="KEY", help=f"{what}, and say so. Repeatable."
    )


def print_summary(summary: RunSummary, form: str | None) -> None:
    """A run's report in the form that the options above chose; None: for the terminal."""
    forms = {"json": as_document, "html": page.render, "markdown": markdown.render}
    if form is None:
        terminal.render(summary, console=stdout_console())
    else:
        click.echo(forms[form](summary), nl=False)
