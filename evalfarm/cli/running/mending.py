"""`evalfarm cancel` and `evalfarm rebuild`: an open run stopped for good, or its state in Redis made anew."""

import json

import click

from evalfarm.cli.standing import open_farm
from evalfarm.cli.stored import run_of
from evalfarm.errors import UsageError
from evalfarm.runstate import Ledger
from evalfarm.settings import load_settings


@click.command(epilog="Example: evalfarm cancel bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def cancel(run_id: str, as_json: bool) -> None:
    """Stop a run for good: no further trial starts, and those at work are cut short.

    What is decided is kept and reported; the rest is `not run`. RUN may be a label; the newest run that carries it
    is meant.
    """
    with open_farm(load_settings()) as farm:
        run = run_of(farm.store, run_id)
        if farm.store.get_summary(run) is not None:
            raise UsageError(f"run {run!r} is finished", f"its report: evalfarm report {run}")
        tending = farm.scheduler(lambda told: click.echo(told, err=True))
        tending.rebuild(run)  # nothing, unless Redis has lost it
        ledger = Ledger(farm.redis, run)
        ledger.cancel()
        seen = ledger.progress()
        sealed = tending.look_at(run) is not None
        if sealed:
            farm.aside.score(run)
    told = {"run": run, "planned": seen.planned, "closed": seen.closed, "at_work": seen.in_flight, "sealed": sealed}
    if as_json:
        click.echo(json.dumps(told))
        return
    click.echo(f"Cancelled run {run}: {seen.closed} of {seen.planned} trials are decided.")
    if sealed:
        click.echo(f"Its report: evalfarm report {run}")
    else:
        click.echo(f"{seen.in_flight} at work are cut short; then whoever tends it seals it: evalfarm resume {run}")


@click.command(epilog="Example: evalfarm rebuild bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def rebuild(run_id: str, as_json: bool) -> None:
    """Restore a run's state in Redis from object storage alone.

    `evalfarm resume` does so by itself where it must. RUN may be a label; the newest run that carries it is meant.
    """
    with open_farm(load_settings()) as farm:
        run = run_of(farm.store, run_id)
        if farm.store.get_summary(run) is not None:
            raise UsageError(f"run {run!r} is finished and needs no state", f"its report: evalfarm report {run}")
        done = farm.scheduler().rebuild(run)
        seen = Ledger(farm.redis, run).progress()
    if as_json:
        click.echo(
            json.dumps({"run": run, "rebuilt": done is not None, "planned": seen.planned, "closed": seen.closed})
        )
        return
    if done is None:
        click.echo(f"Redis holds the state of run {run}: nothing to rebuild.")
    else:
        stored = f"{done.closed} from segments, {done.committed} from traces that were in none"
        click.echo(f"Rebuilt run {run}: {seen.closed} of {seen.planned} trials are decided ({stored}).")
    click.echo(f"Go on with it: evalfarm resume {run}")
