"""`evalfarm report`, `show`, `regrade` and `runs`: what the store knows, with no model and no queue."""

import json
import time
from collections.abc import Sequence

import click
from rich.table import Table

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.output import as_document, stdout_console, write_report
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.errors import UnknownName, UsageError
from evalfarm.reports.run import markdown, page, terminal
from evalfarm.reports.run.trace_view import render_trace
from evalfarm.settings import Settings, load_settings
from evalfarm.store import Store
from graders.grade import grader_digest, result_of


@click.command(epilog="Example: evalfarm report bls-20261130-160000 --html > report.html")
@click.argument("run_id", metavar="RUN")
@click.option("--json", "form", flag_value="json", help="The summary as one JSON document.")
@click.option("--html", "form", flag_value="html", help="One self-contained page.")
@click.option("--markdown", "form", flag_value="markdown", help="GitHub-flavoured Markdown.")
def report(run_id: str, form: str | None) -> None:
    """Print the report of a finished run.

    RUN may be a label; the newest run that carries it is meant.
    """
    _, store = _store()
    summary = summary_of(store, run_of(store, run_id))
    forms = {"json": as_document, "html": page.render, "markdown": markdown.render}
    if form is None:
        terminal.render(summary, console=stdout_console())
    else:
        click.echo(forms[form](summary), nl=False)


@click.command(epilog="Example: evalfarm show bls-20261130-160000/7")
@click.argument("trial", metavar="RUN/TRIAL[/ATTEMPT]")
@click.option("--json", "as_json", is_flag=True, help="The stored trace as one JSON document.")
def show(trial: str, as_json: bool) -> None:
    """Show what was observed in one trial, turn by turn.

    That is every call, request, command and answer of its last attempt, or of the one named.
    """
    _, store = _store()
    run_name, index, attempt = _place(store, trial)
    attempts = store.attempts_of(run_name, index)
    if not attempts or (attempt is not None and attempt not in attempts):
        known = f"its attempts: {', '.join(map(str, attempts))}" if attempts else "it has not run yet"
        raise UnknownName(
            f"run {run_name!r} holds no trace of trial {index}" + (f", attempt {attempt}" if attempt else ""), known
        )
    trace = store.get_trace(run_name, index, attempt or attempts[-1])
    if as_json:
        click.echo(trace.model_dump_json(indent=2))
        return
    case = store.get_plan(run_name).suite.case(trace.trial.case)
    render_trace(trace, result_of(case, trace), console=stdout_console())


@click.command(epilog="Example: evalfarm regrade bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the new summary as one JSON document.")
def regrade(run_id: str, as_json: bool) -> None:
    """Judge a run's stored traces again; no model takes part.

    The grader is the one installed now. The run keeps its verdicts; what would change is shown.
    """
    settings, store = _store()
    name = run_of(store, run_id)
    before, plan = summary_of(store, name), store.get_plan(name)
    old = {result.trial.index: result for result in store.results(name)}
    new = [_regraded(store, plan, result) for result in old.values()]
    store.put_regrade(name, grader_digest(), new)
    manifest = store.get_manifest(name)
    manifest = manifest.model_copy(update={"digests": {**manifest.digests, "grader": grader_digest()}})
    summary = summarize(manifest, plan, new, attempts=before.attempts, finished=before.finished)
    write_report(summary, settings.home / "regraded", as_json=as_json)
    changed = [result for result in new if result.verdict != old[result.trial.index].verdict]
    if not as_json:
        click.echo(f"\nRegraded {_counted(len(new), 'trial')}: {_changes(changed, old)}")


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
        table.add_row(manifest.run, manifest.label or "", started, manifest.suite, str(manifest.planned), *counts)
    stdout_console().print(table)


def run_of(store: Store, name: str) -> str:
    """The run that a run id or a label stands for. Raises UnknownName."""
    manifests = store.runs()
    for manifest in manifests:
        if name == manifest.run:
            return name
    for manifest in manifests:
        if name == manifest.label:
            return manifest.run
    known = ", ".join(manifest.run for manifest in manifests[:5])
    raise UnknownName(
        f"there is no run {name!r} in {store.url}", f"the newest runs: {known}" if known else "there are no runs yet"
    )


def summary_of(store: Store, run_name: str) -> RunSummary:
    """The summary of a finished run. Raises UsageError while it is not finished."""
    summary = store.get_summary(run_name)
    if summary is None:
        raise UsageError(
            f"run {run_name!r} is not finished, so it has no report", f"go on with it: evalfarm resume {run_name}"
        )
    return summary


def _store() -> tuple[Settings, Store]:
    settings = load_settings()
    return settings, Store(settings.store_url)


def _place(store: Store, text: str) -> tuple[str, int, int | None]:
    name, *rest = text.split("/")
    if not 1 <= len(rest) <= 2 or not all(part.isdigit() for part in rest):
        raise UsageError(f"{text!r} is no trial", "write RUN/TRIAL, as in bls-20261130-160000/7, or RUN/TRIAL/ATTEMPT")
    run_name = run_of(store, name)
    index = int(rest[0])
    size = store.get_plan(run_name).size
    if index >= size:
        raise UnknownName(f"run {run_name!r} has no trial {index}", f"its trials are 0 to {size - 1}")
    return run_name, index, int(rest[1]) if len(rest) == 2 else None


def _regraded(store: Store, plan: Plan, result: Result) -> Result:
    if result.attempt not in store.attempts_of(plan.run, result.trial.index):
        return result  # a trial closed without a payload, as when its worker was killed, has nothing to judge
    return result_of(plan.suite.case(result.trial.case), store.get_trace(plan.run, result.trial.index, result.attempt))


def _changes(changed: Sequence[Result], old: dict[int, Result]) -> str:
    if not changed:
        return "every verdict is as it was."
    lines = [f"  trial {r.trial.index} ({r.trial.case}): {old[r.trial.index].verdict} → {r.verdict}" for r in changed]
    return f"{_counted(len(changed), 'verdict')} changed:\n" + "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
