"""`evalfarm report`, `show` and `runs`: what the store knows, with no model and no queue."""

import json
import time

import click
from rich.table import Table

from evalfarm.cli import options
from evalfarm.cli.output import stdout_console
from evalfarm.cli.stored import run_of, stored_functions, summary_of, trial_of
from evalfarm.reports.run.trace_view import render_trace
from evalfarm.reports.safe_text import in_json
from evalfarm.settings import Settings, load_settings
from evalfarm.store import Store
from graders.grade import result_of


@click.command(epilog="Example: evalfarm report bls-20261130-160000 --html > report.html")
@click.argument("run_id", metavar="RUN")
@options.as_json("The summary")
@options.html
@options.in_markdown
def report(run_id: str, form: str | None) -> None:
    """Print the report of a finished run.

    RUN may be a label; the newest run that carries it is meant.
    """
    _, store = _store()
    options.print_summary(summary_of(store, run_of(store, run_id)), form)


@click.command(epilog="Example: evalfarm show bls-20261130-160000/7")
@click.argument("trial", metavar="RUN/TRIAL[/ATTEMPT]")
@click.option("--json", "as_json", is_flag=True, help="The stored trace as one JSON document.")
def show(trial: str, as_json: bool) -> None:
    """Show what was observed in one trial, turn by turn.

    That is every call, request, command and answer of its last attempt, or of the one named.
    """
    _, store = _store()
    trace = trial_of(store, trial)
    if as_json:
        click.echo(in_json(trace.model_dump_json(indent=2)))
        return
    plan = store.get_plan(trace.run)
    render_trace(trace, result_of(plan.suite, trace, stored_functions(store, plan)), console=stdout_console())


@click.command(epilog="Example: evalfarm runs --json")
@click.option("--json", "as_json", is_flag=True, help="The manifests as one JSON array.")
def runs(as_json: bool) -> None:
    """List the runs in the store, newest first."""
    _, store = _store()
    manifests = store.runs()
    if as_json:
        click.echo(json.dumps([manifest.model_dump(mode="json") for manifest in manifests], indent=2))
        return
    if not manifests:
        click.echo("No runs yet. Start one: evalfarm run bls --model sim-careful")
        return
    table = Table("run", "label", "started (UTC)", "suite", "planned", "passed", "failed", box=None, pad_edge=False)
    for manifest in manifests:
        summary = store.get_summary(manifest.run)
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(manifest.created_at))
        counts = (str(summary.passed), str(summary.failed)) if summary else ("not finished", "")
        suite = f"{manifest.suite}, patched" if manifest.patch else manifest.suite
        table.add_row(manifest.run, manifest.label or "", started, suite, str(manifest.planned), *counts)
    stdout_console().print(table)


def _store() -> tuple[Settings, Store]:
    settings = load_settings()
    return settings, Store(settings.store_url)
