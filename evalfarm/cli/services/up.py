"""`evalfarm up`: a whole farm on one machine, under one supervisor."""

import os

import click

from evalfarm.cli.services.supervising import Service, Supervisor
from evalfarm.cli.standing import interruptible, log_folder, open_farm
from evalfarm.errors import ExitCode
from evalfarm.settings import Settings, inherited, load_settings, public_url
from scheduler.nightly.file import read_schedules


@click.command(epilog="Example: evalfarm up --workers 4")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Worker processes.")
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=max(1, (os.cpu_count() or 2) // 2),
    show_default="half of the cores",
    help="Trials at a time, of each worker.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), default=9464, show_default=True, help="For Prometheus.")
@click.option("--web-port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="For the console.")
def up(workers: int, slots: int, metrics_port: int, web_port: int) -> int:
    """Run a whole farm on this machine until stopped: broker, scheduler, beat, workers, exporter, web.

    The broker is the embedded one unless EVALFARM_REDIS_URL names another; beat runs where there is an evalfarm.toml.
    What dies is started again. Ctrl-C and SIGTERM finish the trials at work first; a second Ctrl-C ends them at once,
    to be run anew.
    """
    settings = load_settings()
    logs = log_folder(settings.home)
    services = (
        *services_of(settings, workers, slots),
        Service("exporter", ("exporter", "--port", str(metrics_port))),
        Service("web", ("web", "--port", str(web_port))),
    )
    # The embedded broker lasts as long as this block: workers that finish a trial while we stop can still commit it.
    with interruptible(), open_farm(settings) as farm:
        supervisor = Supervisor(logs, {**inherited(), "EVALFARM_HOME": str(settings.home)}, _say)
        try:
            for service in services:
                supervisor.start(service)
            where = "the embedded broker" if settings.redis_url is None else public_url(settings.redis_url)
            names = ", ".join(service.name for service in services)
            _say(f"Up: {names}; on {where} and {farm.store.url}. Logs: {logs}")
            if web_port:
                _say(f"Console: http://127.0.0.1:{web_port}/")
            supervisor.watch()
        except KeyboardInterrupt:
            _say("Stopping. Trials at work finish first; Ctrl-C again ends them at once, to be run anew.")
        finally:
            supervisor.stop()
    _say("Stopped.")
    return int(ExitCode.OK)


def services_of(settings: Settings, workers: int, slots: int) -> tuple[Service, ...]:
    """What runs trials. Raises UsageError where the schedules cannot be read."""
    beat: tuple[Service, ...] = ()
    if settings.schedule_file.exists():
        read_schedules(settings.schedule_file)
        beat = (Service("beat", ("beat",)),)
    crew = (Service(f"worker-{number}", ("worker", "--slots", str(slots))) for number in range(1, workers + 1))
    return (Service("scheduler", ("scheduler",)), *beat, *crew)


def _say(text: str) -> None:
    click.echo(text, err=True)
