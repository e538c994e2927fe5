"""`evalfarm scheduler`: tends every run of a farm, whoever started it."""

import time

import click

from evalfarm.cli.standing import open_farm
from evalfarm.errors import EvalFarmError
from evalfarm.runstate import open_runs
from evalfarm.settings import load_settings
from scheduler.runs import TICK_S


@click.command(epilog="Example: EVALFARM_REDIS_URL=redis://queue:6379/0 evalfarm scheduler")
def scheduler() -> None:
    """Tend every open run until stopped: feed, reap, archive, seal.

    Several may run at once; none needs to lead.
    """
    settings = load_settings()
    with open_farm(settings) as farm:
        tending = farm.scheduler(lambda told: click.echo(told, err=True))
        click.echo(f"Tending the runs in {farm.store.url}", err=True)
        while True:
            for run in open_runs(farm.redis):
                try:
                    tending.look_at(run)
                except EvalFarmError as error:
                    click.echo(f"run {run}: {error}", err=True)
            time.sleep(TICK_S * 5)
