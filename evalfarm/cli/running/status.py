"""`evalfarm status`: how far the open runs are, or one run arm by arm."""

import json
import time
from collections.abc import Callable
from typing import Any

import click
from rich.table import Table

from evalfarm.cli.connecting import open_redis
from evalfarm.cli.output import stdout_console
from evalfarm.cli.stored import run_of
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import VERDICTS, RunSummary
from evalfarm.errors import UnknownName, UsageError
from evalfarm.runstate import (
    Client,
    JudgingQueue,
    Ledger,
    Money,
    Standing,
    live_slots,
    open_runs,
    refusal_of,
    standing_of,
)
from evalfarm.settings import load_settings
from evalfarm.store import Store

#: Seconds between two looks of --watch.
_WATCH_S = 2.0
_VERDICTS = VERDICTS[:-1]


@click.command(epilog="Example: evalfarm status bls-20261130-160000 --watch")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--watch", is_flag=True, help="Look again every two seconds until the run is sealed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document; with --watch one a line.")
def status(run_id: str | None, watch: bool, as_json: bool) -> None:
    """Show how far a run is, arm by arm; without RUN, every open run.

    RUN may be a label; the newest run that carries it is meant. Nothing is started or changed.
    """
    if watch and run_id is None:
        raise UsageError("there is nothing to watch", "name a run: evalfarm status RUN --watch")
    settings = load_settings()
    store = Store(settings.store_url)
    with open_redis(settings) as (_, client):
        if run_id is None:
            _show_open(store, client, as_json=as_json)
            return
        run = run_of(store, run_id)
        while (told := told_of(store, client, run))["state"] not in ("sealed", "not in Redis") and watch:
            _show(told, as_json=as_json)
            time.sleep(_WATCH_S)
        _show(told, as_json=as_json)


def told_of(store: Store, client: Client, run: str) -> dict[str, Any]:
    """What `--json` prints of one run. Raises UnknownName when there is no such run in the store."""
    manifest, plan = store.get_manifest(run), store.get_plan(run)
    try:
        standing = standing_of(client, plan)
    except UnknownName:
        sealed = store.get_summary(run)
        return _sealed(sealed) if sealed else {"run": run, "state": "not in Redis", "planned": manifest.planned}
    told = _open(manifest, plan, standing, Ledger(client, run).money(len(plan.arms)), live_slots(client))
    left, refused = JudgingQueue(client, run).progress().left, refusal_of(client, run)
    return told | {"answers_at_judges": left, "refused": refused}


def _sealed(summary: RunSummary) -> dict[str, Any]:
    counts: dict[str, int] = {verdict: getattr(summary, verdict) for verdict in VERDICTS}
    return {"run": summary.run, "state": "sealed", "planned": summary.planned, **counts}


def _open(manifest: Manifest, plan: Plan, standing: Standing, spent: Money, slots: int) -> dict[str, Any]:
    seen = standing.progress
    state = "rebuilding" if seen.rebuilding else "stopping" if seen.cancelled else "running" if slots else "waiting"
    return {
        "run": manifest.run,
        "state": state,
        "queue": manifest.queue,
        "slots": slots,
        "planned": seen.planned,
        "closed": seen.closed,
        "in_flight": seen.in_flight,
        "waiting": seen.planned - seen.closed - seen.in_flight,
        "attempts": {
            "started": seen.attempts,
            "lost": seen.lost,
            "returned": seen.returned,
            "late": seen.late,
            "superseded": seen.superseded,
        },
        "per_second": round(standing.per_second, 3),
        "to_go_s": None if standing.to_go_s is None else round(standing.to_go_s, 1),
        "spent_usd": spent.spent_usd,
        "judges_usd": spent.judges.spent_usd,
        "budget_usd": spent.budget_usd,
        "arms": [
            {
                "model": arm.model,
                "harness": arm.harness,
                "variant": arm.variant,
                "planned": told.planned,
                "closed": sum(told.closed.values()),
                **{verdict: told.closed.get(verdict, 0) for verdict in _VERDICTS},
                "in_flight": told.in_flight,
                "waiting": told.waiting,
                "infrastructure_failures": told.failures,
                "spent_usd": usd,
            }
            for arm, told, usd in zip(plan.arms, standing.arms, spent.arms_usd, strict=True)
        ],
    }


def _show_open(store: Store, client: Client, *, as_json: bool) -> None:
    known = {manifest.run for manifest in store.runs()}
    runs = [told_of(store, client, run) for run in open_runs(client) if run in known]
    if as_json:
        click.echo(json.dumps(runs, indent=2))
        return
    for told in runs:
        click.echo(line_of(told))
    if not runs:
        click.echo("No run is open. `evalfarm runs` lists those that were.")


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(told))
        return
    click.echo(line_of(told))
    if told["state"] == "sealed":
        click.echo(f"Its report: evalfarm report {told['run']}")
    elif told["state"] == "not in Redis":
        click.echo(f"Redis holds no state of it. Rebuild it and go on: evalfarm resume {told['run']}")
    else:
        stdout_console().print(_table(told["arms"]))
        if told["refused"]:
            click.echo(f"A worker refused its trials. {told['refused']}")
        if not told["slots"]:
            click.echo("No worker takes its trials. Start one: evalfarm worker")


def line_of(told: dict[str, Any]) -> str:
    """A run in one line: how much is done, how fast, until when, for how much."""
    if told["state"] == "sealed":
        counts = ", ".join(f"{told[verdict]} {verdict.replace('_', ' ')}" for verdict in VERDICTS)
        return f"{told['run']}: sealed, {told['planned']} trials: {counts}"
    if told["state"] == "not in Redis":
        return f"{told['run']}: not finished, {told['planned']} trials"
    parts = [
        f"{told['closed']} of {told['planned']} closed",
        f"{told['in_flight']} in flight",
        f"{told['waiting']} waiting",
        f"{told['per_second']:.1f}/s",
    ]
    if told["answers_at_judges"]:
        parts.append(f"{told['answers_at_judges']} left for the judges")
    if told["to_go_s"] is not None:
        parts.append(f"{_duration(told['to_go_s'])} to go")
    budget = "" if told["budget_usd"] is None else f" of ${told['budget_usd']:.2f}"
    judges = f" and ${told['judges_usd']:.2f} by judges" if told["judges_usd"] else ""
    parts.append(f"${told['spent_usd']:.2f}{judges}{budget} spent")
    return f"{told['run']} ({told['queue']}): {told['state']}, {', '.join(parts)}"


def _table(arms: list[dict[str, Any]]) -> Table:
    table = Table("model", "harness", "variant", box=None, pad_edge=False)
    numbers: dict[str, Callable[[dict[str, Any]], str]] = {
        "closed": lambda arm: f"{arm['closed']}/{arm['planned']}",
        "passed": lambda arm: str(arm["passed"]),
        "failed": lambda arm: str(arm["failed"]),
        "in flight": lambda arm: str(arm["in_flight"]),
        "waiting": lambda arm: str(arm["waiting"]),
        "spent": lambda arm: "?" if arm["spent_usd"] is None else f"${arm['spent_usd']:.2f}",
    }
    for name in numbers:
        table.add_column(name, justify="right")
    table.add_column("infra failures")
    for arm in arms:
        kinds = ", ".join(f"{kind} {count}" for kind, count in arm["infrastructure_failures"].items())
        names = (arm["model"], arm["harness"], arm["variant"])
        table.add_row(*names, *(show(arm) for show in numbers.values()), kinds or "none")
    return table


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
