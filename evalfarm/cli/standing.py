"""What commands stand on: the settings, a store and a Redis that answer, and workers of this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cases.answer_functions import AnswerFunction
from evalfarm.broker import make_app
from evalfarm.cli.connecting import open_redis
from evalfarm.cli.results import stored_functions
from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import Result
from evalfarm.embedded import embedded_redis
from evalfarm.errors import InfrastructureError
from evalfarm.runstate import Client, load_limits
from evalfarm.settings import Settings
from evalfarm.store import Store
from graders.grade import result_of
from graders.judge.panel import conclude
from scheduler.judging import Judging
from scheduler.reaper import Grade
from scheduler.runs import Scheduler

#: Seconds that a worker without an open trial has to end before it is killed.
_PATIENCE_S = 20.0
#: Seconds that a worker which was told to stop at once has to clear up.
_CLEARING_UP_S = 10.0


@dataclass(frozen=True)
class Farm:
    """A store and a Redis that were found working."""

    settings: Settings
    store: Store
    redis: Client
    redis_url: str

    def scheduler(self, say: Callable[[str], None] = lambda _: None) -> Scheduler:
        """What tends runs; `say` is told what a person should know."""
        app = make_app(self.redis_url)
        return Scheduler(
            self.store,
            self.redis,
            app,
            grader_of(self.store),
            limits=load_limits(self.settings.limits),
            lease_s=self.settings.lease_s,
            say=say,
            revive=self._revive,
            judging=Judging(self.store, self.redis, app, conclude),
        )

    def _revive(self) -> None:
        """Start the embedded server again if it died: its folder has what it knew a second before."""
        if self.settings.redis_url is None:
            with embedded_redis(self.settings.home):
                pass


def grader_of(store: Store) -> Grade:
    """Judges stored traces as the workers do, with the functions that each run's suite brought."""
    functions: dict[str, dict[str, AnswerFunction]] = {}

    def grade(plan: Plan, trace: Trace) -> Result:
        if plan.run not in functions:
            functions[plan.run] = stored_functions(store, plan)
        return result_of(plan.suite, trace, functions[plan.run])

    return grade


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets SIGTERM do what Ctrl-C does while the block lasts: a supervisor's stop is as orderly."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def open_farm(settings: Settings) -> Iterator[Farm]:
    """The farm that the environment names; without EVALFARM_REDIS_URL, with the embedded Valkey while it is open.

    Raises BrokerUnavailable or StoreUnavailable, before anything is started or written.
    """
    store = Store(settings.store_url)
    store.check()
    with open_redis(settings) as (url, client):
        yield Farm(settings, store, client, url)


def log_folder(home: Path) -> Path:
    """Where the processes of this machine write their logs; made when missing. Raises InfrastructureError."""
    logs = home / "logs"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"cannot make the folder {logs}: {error.strerror}", "set EVALFARM_HOME to a folder that you may write to"
        ) from error
    return logs


def default_workers(settings: Settings) -> int:
    """How many workers `run` starts: one per core with the embedded Redis, none where a farm is out there."""
    return (os.cpu_count() or 1) if settings.redis_url is None else 0


class Crew:
    """The worker processes that a command started; each is a Celery worker of one slot."""

    def __init__(self, workers: dict[Path, "subprocess.Popen[bytes]"]) -> None:
        """`workers` are found by their logs."""
        self._workers = list(workers.values())
        self._logs = list(workers)

    def check(self) -> int:
        """How many still work. Raises InfrastructureError when there were some and all have ended."""
        alive = sum(worker.poll() is None for worker in self._workers)
        if self._workers and not alive:
            tails = "".join(f"\n{path.name}: {_tail(path)}" for path in self._logs)
            raise InfrastructureError(
                f"every local worker has stopped{tails}",
                f"their logs are in {self._logs[0].parent}; evalfarm doctor checks the machine",
            )
        return alive

    def dismiss(self, patience_s: float | None = _PATIENCE_S) -> None:
        """Have them finish what they hold, and leave none behind; None: however long it takes."""
        for worker in self._workers:
            if worker.stdin is not None:
                worker.stdin.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                for worker in self._workers:
                    worker.wait(patience_s)
        finally:
            self.stop()

    def stop(self) -> None:
        """End them at once."""
        for firmer in (signal.SIGQUIT, signal.SIGKILL):  # Celery stops its tasks and clears up; or what it started dies
            for worker in self._workers:
                worker.send_signal(firmer)
            with suppress(subprocess.TimeoutExpired):
                for worker in self._workers:
                    worker.wait(_CLEARING_UP_S)


@contextmanager
def local_workers(farm: Farm, run: str, count: int) -> Iterator[Crew]:
    """Run `count` worker processes of this machine while the block lasts; their logs are named after the run.

    They hold a pipe of ours as standard input and stop when it closes, which it does however we end.
    """
    folder = log_folder(farm.settings.home)
    logs = [folder / f"{run}-worker-{number}.log" for number in range(1, count + 1)]
    crew = Crew({log: _start_worker(farm, log) for log in logs})
    try:
        yield crew
    finally:
        crew.dismiss()


def _start_worker(farm: Farm, log: Path) -> "subprocess.Popen[bytes]":
    # What it stands on goes by environment, never by argument: a URL may hold a password. Of the embedded server it
    # is a user in its own right, so that the server outlives us for as long as a worker has something to commit.
    env = os.environ | {"EVALFARM_HOME": str(farm.settings.home)}
    argv = [sys.executable, "-m", "evalfarm", "worker", "--slots", "1", "--while-stdin"]
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out, env=env, start_new_session=True)


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    told = [line for line in lines if line.startswith("Error: ")] or lines
    return told[-1] if told else "(nothing was written)"


def new_run_id(suite: str, at: float, taken: frozenset[str]) -> str:
    """A run's name: suite, UTC date and time, and a number where two start within one second."""
    stem = f"{suite}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name
