"""`evalfarm beat`: fires schedules, and sees their nights through."""

import os
import socket
import time

import click

from evalfarm.broker import SCHEDULES, make_app, work
from evalfarm.cli.nights.nightly import Watch
from evalfarm.cli.nights.opening import FarmOpener, check_schedules
from evalfarm.cli.services.probing import health_port, probed
from evalfarm.cli.standing import open_farm
from evalfarm.exporter.serving import Pulse
from evalfarm.reports.numbers import plural
from evalfarm.settings import load_settings
from scheduler.nightly.file import read_schedules
from scheduler.tasks import register

#: Seconds for which it is ready after a look at every schedule: ten of them, and opening a run takes some seconds.
_READY_S = 300.0


@click.command(epilog="Example: EVALFARM_FILE=/etc/evalfarm.toml evalfarm beat")
@health_port
def beat(health_port: int | None) -> None:
    """Run schedules when they are due, until stopped: start, judge, confirm, tell.

    They are those of evalfarm.toml, or of the file in EVALFARM_FILE. Several may run at once: a night is decided about
    once. It starts runs, which `evalfarm scheduler` tends and `evalfarm worker` works on.
    """
    settings = load_settings()
    declared = read_schedules(settings.schedule_file)
    check_schedules(declared)
    pulse = Pulse(time.monotonic, _READY_S)
    with open_farm(settings) as farm, probed(health_port, pulse):
        watch = Watch(farm.store, declared, FarmOpener(farm), lambda told: click.echo(told, err=True))

        def tend() -> None:
            watch.look()
            pulse.beat()

        app = make_app(farm.redis_url)
        register(app, {name: schedule.when for name, schedule in declared.said.schedules.items()}, tend)
        click.echo(f"{plural(len(declared.said.schedules), 'schedule')} of {declared.path}", err=True)
        name = f"beat-{os.getpid()}@{socket.gethostname()}"
        # One process, which does not fork: the store's own threads would not survive that.
        work(app, name, [SCHEDULES], pool="solo")
