"""What commands stand on: the settings, a store and a Redis that answer, and workers of this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evalfarm.broker import make_app
from evalfarm.embedded import embedded_redis
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import Client, check_server, connect
from evalfarm.settings import Settings
from evalfarm.store import Store
from scheduler.runs import Scheduler

#: Seconds that a worker has to finish its trial before it is told again, more firmly.
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Farm:
    """A store and a Redis that were found working."""

    settings: Settings
    store: Store
    redis: Client
    redis_url: str

    def scheduler(self) -> Scheduler:
        """What tends runs."""
        return Scheduler(self.store, self.redis, make_app(self.redis_url))


@contextmanager
def open_farm(settings: Settings) -> Iterator[Farm]:
    """The farm that the environment names; without EVALFARM_REDIS_URL, with the embedded Valkey while it is open.

    Raises BrokerUnavailable or StoreUnavailable, before anything is started or written.
    """
    store = Store(settings.store_url)
    store.check()
    with open_redis(settings) as (url, client):
        yield Farm(settings, store, client, url)


@contextmanager
def open_redis(settings: Settings) -> Iterator[tuple[str, Client]]:
    """The Redis that the environment names, else the embedded Valkey while the block lasts: its URL and a client.

    Raises BrokerUnavailable.
    """
    if settings.redis_url is not None:
        yield settings.redis_url, _checked(settings.redis_url)
        return
    with embedded_redis(settings.home) as url:
        yield url, _checked(url)


def _checked(url: str) -> Client:
    client = connect(url)
    check_server(client)
    return client


def default_workers(settings: Settings) -> int:
    """How many workers `run` starts: one per core with the embedded Redis, none where a farm is out there."""
    return (os.cpu_count() or 1) if settings.redis_url is None else 0


class Crew:
    """The worker processes that a command started; each is a Celery worker of one slot."""

    def __init__(self, workers: list["subprocess.Popen[bytes]"], logs: Path) -> None:
        self._workers = workers
        self._logs = logs

    def check(self) -> int:
        """How many still work. Raises BrokerUnavailable when there were some and all have ended."""
        alive = sum(worker.poll() is None for worker in self._workers)
        if self._workers and not alive:
            tails = "".join(f"\n{path.name}: {_tail(path)}" for path in sorted(self._logs.glob("worker-*.log")))
            raise BrokerUnavailable(
                f"every local worker has stopped{tails}",
                f"their logs are in {self._logs}; evalfarm doctor checks the machine",
            )
        return alive

    def dismiss(self) -> None:
        """Have them finish what they hold, and wait until they are gone."""
        for worker in self._workers:
            if worker.stdin is not None:
                worker.stdin.close()
        for worker in self._workers:
            _await_end(worker)


@contextmanager
def local_workers(farm: Farm, count: int) -> Iterator[Crew]:
    """Run `count` worker processes of this machine while the block lasts.

    They hold a pipe of ours as standard input and stop when it closes, which it does however we end.
    """
    logs = farm.settings.home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    crew = Crew([_start_worker(farm, logs / f"worker-{number}.log") for number in range(1, count + 1)], logs)
    try:
        yield crew
    finally:
        crew.dismiss()


def _start_worker(farm: Farm, log: Path) -> "subprocess.Popen[bytes]":
    # The URL of Redis goes by environment, never by argument: it may hold a password.
    env = os.environ | {"EVALFARM_REDIS_URL": farm.redis_url, "EVALFARM_HOME": str(farm.settings.home)}
    argv = [sys.executable, "-m", "evalfarm", "worker", "--slots", "1", "--while-stdin"]
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out, env=env, start_new_session=True)


def _await_end(worker: "subprocess.Popen[bytes]") -> None:
    for firmer in (worker.terminate, worker.kill):
        try:
            worker.wait(timeout=_PATIENCE_S)
            return
        except subprocess.TimeoutExpired:
            firmer()
    worker.wait()


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "(nothing was written)"


def new_run_id(suite: str, at: float, taken: frozenset[str]) -> str:
    """A run's name: suite, UTC date and time, and a number where two start within one second."""
    stem = f"{suite}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name
