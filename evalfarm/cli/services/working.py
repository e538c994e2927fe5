"""`evalfarm worker`: runs trials. It imports nothing that plans, counts or reports, and so starts sooner."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path

import click

from cases.answer_functions import load_functions
from evalfarm.broker import ALL_QUEUES, JUDGING, QUEUES, App, make_app, work
from evalfarm.cli.beside.orders import end_process, until_work
from evalfarm.cli.connecting import open_redis
from evalfarm.cli.services.probing import health_port, probed
from evalfarm.contracts.run import Trace
from evalfarm.contracts.verdict import Result
from evalfarm.errors import EvalFarmError
from evalfarm.exporter.serving import Pulse
from evalfarm.runstate import Client, Throttle, beat, connect, load_limits
from evalfarm.settings import Settings, environment, load_settings
from evalfarm.store import Store
from graders.grade import grader_digest, result_of
from graders.tasks import register as register_judging
from worker.rooms import keep_temporary_files
from worker.shift import Shift
from worker.station import Prepared, Station
from worker.tasks import register

#: Seconds between a worker's beats, and how long one counts.
_BEAT_S, _BEAT_TTL_S = 2.0, 8.0


@click.command(epilog="Example: EVALFARM_REDIS_URL=redis://queue:6379/0 evalfarm worker --slots 4")
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="one per core",
    help="Trials at a time.",
)
@click.option(
    "--queue",
    "queues",
    type=click.Choice(["interactive", "judging", "nightly"]),
    multiple=True,
    help="Only from this queue. Repeatable; all by default, the first that has something.",
)
@click.option("--while-stdin", is_flag=True, help="Stop when standard input closes: for whoever starts workers.")
@click.option("--ordered", is_flag=True, hidden=True, help="Wait to be told on standard input, and stop as it closes.")
@health_port
def worker(slots: int, queues: tuple[str, ...], while_stdin: bool, ordered: bool, health_port: int | None) -> None:
    """Run trials from the queue until stopped.

    SIGTERM and Ctrl-C finish what is running first; a second Ctrl-C stops it at once, to be run anew.
    """
    if ordered:
        if (order := until_work()) is None:
            return
        slots, while_stdin = order.slots, True
        _speak_into(order.log)
    settings = load_settings()
    load_limits(settings.limits)  # what is wrong with them is told here, not by every process that is forked
    # The store is not touched here: object storage's runtime does not survive the fork into worker processes.
    with open_redis(settings) as (redis_url, client):
        name = f"worker-{os.getpid()}@{socket.gethostname()}"
        if while_stdin:
            threading.Thread(target=_end_with_stdin, daemon=True).start()
        pulse = Pulse(time.monotonic, _BEAT_TTL_S)
        beating = threading.Thread(target=_beat, args=(client, name, slots, pulse), daemon=True)
        keep_temporary_files(settings.home / "cells")
        with probed(health_port, pulse):
            work(worker_app(settings, redis_url, beating.start), name, taken_from(queues), slots=slots)
    if ordered:
        end_process()


def _speak_into(log: Path | None) -> None:
    """Have all that this process says written to a file."""
    if log is not None:
        with log.open("wb") as out:
            for stream in (1, 2):
                os.dup2(out.fileno(), stream)


def taken_from(named: Collection[str]) -> tuple[str, ...]:
    """The queues that a worker takes from, in the farm's order; none named: all."""
    names: dict[str, str] = {"judging": JUDGING} | {str(name): queue for name, queue in QUEUES.items()}
    wanted = {names[name] for name in named if name in names}
    return tuple(queue for queue in ALL_QUEUES if not named or queue in wanted)


def grade(prepared: Prepared, trace: Trace) -> Result:
    """Judge a trace by its run's suite, with the functions that the suite brings."""
    suite = prepared.plan.suite
    return result_of(suite, trace, load_functions(suite, prepared.folder))


def worker_app(settings: Settings, redis_url: str, on_ready: Callable[[], None]) -> App:
    """The application that worker processes run, with its task and the grader wired in.

    What a process holds is opened in it, after the fork: connections must not be shared across one.
    """

    async def open_shift(stopping: Callable[[], bool]) -> Shift:
        client = connect(redis_url)
        throttle = Throttle(client, load_limits(settings.limits))
        station = await Station(settings, Store(settings.store_url), environment(), throttle, grader_digest()).open()
        return Shift(station, client, grade, stopping)

    app = make_app(redis_url)
    # With the first answer that is to be judged: the provider's library takes a quarter of a second to import.
    register_judging(app, lambda: import_module("evalfarm.cli.judgement.judging").open_bench(settings, redis_url))
    register(app, open_shift, on_ready)  # last: it ends a process when the others have closed theirs
    return app


def _beat(client: Client, name: str, slots: int, pulse: Pulse) -> None:
    while True:
        try:
            beat(client, name, slots, _BEAT_TTL_S)
            pulse.beat()
        except EvalFarmError as error:
            click.echo(f"cannot tell Redis that this worker lives: {error.message}", err=True)
        time.sleep(_BEAT_S)


def _end_with_stdin() -> None:
    # The descriptor, not sys.stdin: a reader inside sys.stdin holds its lock, and a child forked meanwhile hangs on it.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
