"""What commands print: progress to standard error, the report to standard output."""

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evalfarm.contracts.run import Manifest
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import EvalFarmError
from evalfarm.reports.run import patched, terminal
from evalfarm.reports.safe_text import in_json
from evalfarm.runstate import Progress as Seen

#: The width that reports are drawn for where standard output is no terminal.
_PIPE_WIDTH = 100


#: The name of a report's page in its folder.
PAGE = "report.html"


class Progressing:
    """A progress bar on standard error while a run is seen through; one line at the start and end in a pipe."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._told_waiting = False
        self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}"),
        )
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._task = self._bar.add_task(manifest.run, total=manifest.planned, told="")

    def __enter__(self) -> Self:
        simulated = "; a simulated model takes part" if self._manifest.simulated else ""
        self.say(f"Run {self._manifest.run}: {self._manifest.planned} trials{simulated}")
        for line in patched.lines(self._manifest.patch):
            self.say(escape(line))  # a version is what its author wrote
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if isinstance(error, EvalFarmError):
            self.stopped()

    def show(self, seen: Seen, crew: int) -> None:
        """Show how far the run is; `crew` is the number of local workers."""
        told = f"{seen.passed} passed, {seen.failed} failed"
        told += "".join(
            f", {count} {name}"
            for count, name in ((seen.inconclusive, "inconclusive"), (seen.infra_failed, "infra"))
            if count
        )
        waits = not crew and not seen.in_flight
        if waits and self._bar.disable and not self._told_waiting:
            self._told_waiting = True
            self.say("No worker takes its trials yet. Start one: evalfarm worker")
        self._bar.update(
            self._task, completed=seen.closed, told=told + ("; waiting for a worker: evalfarm worker" if waits else "")
        )

    def stopping(self, crew: int) -> None:
        """Say that Ctrl-C was heard, and what a second one does while `crew` local workers finish."""
        self._bar.stop()
        if crew:
            self.say("\nStopping. Trials at work finish first; Ctrl-C again stops them at once, to be run anew.")

    def stopped(self) -> None:
        """Say how to go on."""
        self._bar.stop()
        self.say(f"Stopped. What is decided is kept. Go on with: evalfarm resume {self._manifest.run}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, soft_wrap=True)


def print_report(summary: RunSummary, *, as_json: bool) -> None:
    """The report for a terminal, or the summary as one document."""
    if as_json:
        click.echo(as_document(summary), nl=False)
    else:
        terminal.render(summary, console=stdout_console())


def as_document(summary: RunSummary) -> str:
    """The summary as the one JSON document of docs/reference/run-summary.schema.json."""
    return in_json(json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False)) + "\n"


def report_folder(home: Path, run: str) -> Path:
    """Where a run's report is kept in files."""
    return home / "reports" / run


def stdout_console() -> Console:
    """Standard output for reports: as wide as the terminal, or as reports are drawn for."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
