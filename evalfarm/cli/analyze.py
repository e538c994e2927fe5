"""`evalfarm analyze`: the same summary for results that evalfarm did not produce."""

from pathlib import Path

import click

from evalfarm.analysis.summary.aggregate import summarize_rows
from evalfarm.analysis.summary.foreign import read_rows
from evalfarm.cli.output import as_document, stdout_console
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import markdown, page, terminal


@click.command(epilog="Example: evalfarm analyze results.csv --html > report.html")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "form", flag_value="json", help="The summary as one JSON document.")
@click.option("--html", "form", flag_value="html", help="One self-contained page.")
@click.option("--markdown", "form", flag_value="markdown", help="GitHub-flavoured Markdown.")
def analyze(file: Path, form: str | None) -> None:
    """Print the report of results from elsewhere.

    FILE holds one row per trial, as JSONL, CSV or Parquet: case, repeat, label or pass, and more where it is known.
    """
    summary = summary_of_file(file)
    forms = {"json": as_document, "html": page.render, "markdown": markdown.render}
    if form is None:
        terminal.render(summary, console=stdout_console())
    else:
        click.echo(forms[form](summary), nl=False)


def summary_of_file(file: Path) -> RunSummary:
    """The summary of a file of rows, under the file's name. Raises UsageError, naming the row, for a bad one."""
    with read_rows(file) as rows:
        return summarize_rows(rows, file.stem)
