"""`evalfarm scheduler`: tends every run of a farm, whoever started it."""

import time

import click

from evalfarm.cli.probing import health_port, probed
from evalfarm.cli.standing import Farm, open_farm
from evalfarm.errors import EvalFarmError
from evalfarm.exporter.serving import Pulse
from evalfarm.runstate import open_runs
from evalfarm.settings import load_settings
from scheduler.runs import TICK_S, Scheduler

#: Seconds for which the scheduler is ready after a look at every open run; sealing a large one takes some of them.
_READY_S = 60.0


@click.command(epilog="Example: EVALFARM_REDIS_URL=redis://queue:6379/0 evalfarm scheduler")
@health_port
def scheduler(health_port: int | None) -> None:
    """Tend every open run until stopped: feed, reap, archive, seal.

    Several may run at once; none needs to lead.
    """
    settings = load_settings()
    pulse = Pulse(time.monotonic, _READY_S)
    with open_farm(settings) as farm, probed(health_port, pulse):
        tending = farm.scheduler(lambda told: click.echo(told, err=True))
        click.echo(f"Tending the runs in {farm.store.url}", err=True)
        said = ""
        while True:
            trouble = _tend_all(farm, tending)
            if trouble != said:  # an outage is told of once, not twice a second
                click.echo(trouble or "every open run is tended again", err=True)
            said = trouble
            if not trouble:
                pulse.beat()
            time.sleep(TICK_S * 5)


def _tend_all(farm: Farm, tending: Scheduler) -> str:
    """Look at every open run once; what could not be done, empty when nothing."""
    try:
        runs = open_runs(farm.redis)
    except EvalFarmError as error:
        return str(error)
    troubles = []
    for run in runs:
        try:
            tending.look_at(run)
        except EvalFarmError as error:
            troubles.append(f"run {run}: {error}")
    return "\n".join(troubles)
