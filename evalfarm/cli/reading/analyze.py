"""`evalfarm analyze`: the same summary for results that evalfarm did not produce."""

from pathlib import Path

import click

from evalfarm.analysis.summary.aggregate import summarize_rows
from evalfarm.analysis.summary.foreign import read_rows
from evalfarm.cli import options
from evalfarm.contracts.verdict import RunSummary


@click.command(epilog="Example: evalfarm analyze results.csv --html > report.html")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json("The summary")
@options.html
@options.in_markdown
def analyze(file: Path, form: str | None) -> None:
    """Print the report of results from elsewhere.

    FILE holds one row per trial, as JSONL, CSV or Parquet: case, repeat, label or pass, and more where it is known.
    """
    options.print_summary(summary_of_file(file), form)


def summary_of_file(file: Path) -> RunSummary:
    """The summary of a file of rows, under the file's name. Raises UsageError, naming the row, for a bad one."""
    with read_rows(file) as rows:
        return summarize_rows(rows, file.stem)
