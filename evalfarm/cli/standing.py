"""What commands stand on: the settings, a store and a Redis that answer, and workers of this machine."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from cases.answer_functions import AnswerFunction
from evalfarm.broker import make_app
from evalfarm.cli.beside.aside import Aside, WorkerToBe
from evalfarm.cli.connecting import open_redis
from evalfarm.cli.stored import stored_functions
from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.embedded import embedded_redis
from evalfarm.errors import InfrastructureError, StoreUnavailable
from evalfarm.runstate import Client, Ledger, load_limits
from evalfarm.settings import Settings
from evalfarm.store import Store
from graders.grade import result_of
from graders.judge.panel import conclude
from scheduler.judging import Judging
from scheduler.reaper import Grade
from scheduler.runs import Scheduler
from worker.own_faults import unjudged
from worker.rooms import sweep

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
    aside: Aside  #: seals runs, so that what that takes is not held while they last

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
            sealing=_SealingAside(self.aside, self.store, self.redis_url),
        )

    def _revive(self) -> None:
        """Start the embedded server again if it died: its folder has what it knew a second before."""
        if self.settings.redis_url is None:
            with embedded_redis(self.settings.home):
                pass


@dataclass(frozen=True)
class _SealingAside:
    """Has runs sealed in the process beside this one."""

    aside: Aside
    store: Store
    redis_url: str

    def make_ready(self) -> None:
        self.aside.make_ready_to_seal()

    def seal(self, ledger: Ledger, _store: Store, _plan: Plan) -> RunSummary:
        self.aside.seal(ledger.run, self.redis_url)
        summary = self.store.get_summary(ledger.run)
        if summary is None:
            raise StoreUnavailable(f"{self.store.url} does not hold the summary of run {ledger.run!r} that was stored")
        return summary


def grader_of(store: Store) -> Grade:
    """Judges stored traces as the workers do, with the functions that each run's suite brought.

    One that cannot be judged failed as infrastructure, as it does in a worker: it must not keep the run from its end.
    """
    functions: dict[str, dict[str, AnswerFunction]] = {}

    def grade(plan: Plan, trace: Trace) -> Result:
        try:
            if plan.run not in functions:
                functions[plan.run] = stored_functions(store, plan)
            return result_of(plan.suite, trace, functions[plan.run])
        except InfrastructureError:  # the store is away: it is judged when it is back
            raise
        except Exception as error:  # noqa: BLE001 - whatever the graders or a suite's functions meet in this one trace
            return unjudged(trace, error)

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
def open_farm(settings: Settings, aside: Aside | None = None) -> Iterator[Farm]:
    """The farm that the environment names; without EVALFARM_REDIS_URL, with the embedded Valkey while it is open.

    `aside` is the caller's to end; without one the farm has its own.

    Raises BrokerUnavailable or StoreUnavailable, before anything is started or written.
    """
    store = checked_store(settings)
    with open_redis(settings) as (url, client), nullcontext(aside) if aside else Aside(settings) as beside:
        yield Farm(settings, store, client, url, beside)


def checked_store(settings: Settings) -> Store:
    """The store that the environment names, found working. Raises StoreUnavailable."""
    store = Store(settings.store_url)
    store.check()
    return store


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
    """The worker that a command started: one process, and one that it forked for each slot."""

    def __init__(self, worker: "subprocess.Popen[bytes] | None", slots: int, log: Path) -> None:
        """`worker`: None where there are no slots."""
        self._worker = worker
        self._slots = slots
        self._log = log

    def check(self) -> int:
        """How many trials it can have at work. Raises InfrastructureError when it has ended."""
        if self._worker is not None and self._worker.poll() is not None:
            raise InfrastructureError(
                f"the local worker has stopped\n{self._log.name}: {_tail(self._log)}",
                f"its log is in {self._log.parent}; evalfarm doctor checks the machine",
            )
        return self._slots

    def release(self) -> None:
        """Let it end by itself once it has finished what it holds; whoever dismisses it later waits for less."""
        if self._worker is not None and self._worker.stdin is not None:
            self._worker.stdin.close()

    def dismiss(self, patience_s: float | None = _PATIENCE_S) -> None:
        """Have it finish what it holds, and leave nothing behind; None: however long it takes."""
        if self._worker is None:
            return
        self.release()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._worker.wait(patience_s)
        finally:
            self.stop()

    def stop(self) -> None:
        """End it at once."""
        if self._worker is None:
            return
        for firmer in (signal.SIGQUIT, signal.SIGKILL):  # Celery stops its tasks and clears up; or what it started dies
            self._worker.send_signal(firmer)
            with suppress(subprocess.TimeoutExpired):
                self._worker.wait(_CLEARING_UP_S)


@contextmanager
def local_workers(settings: Settings, run: str, slots: int, to_be: WorkerToBe | None = None) -> Iterator[Crew]:
    """Run a worker of this machine with so many slots while the block lasts; its log is named after the run.

    It takes a second to import, unless there is one `to_be`, which ends here where no slot is wanted. It holds a pipe
    of ours as standard input and stops when that closes, which it does however we end. Of the embedded server it is a
    user in its own right, so that the server outlives us for as long as a worker has something to commit.
    """
    log = log_folder(settings.home) / f"{run}-worker.log"
    with to_be or WorkerToBe(settings) as worker:
        crew = Crew(worker.work(slots, log) if slots else None, slots, log)
    try:
        yield crew
    finally:
        crew.dismiss()
        sweep(settings.home / "cells")  # of one that was ended before it could clear up


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    told = [line for line in lines if line.startswith("Error: ")] or lines
    return told[-1] if told else "(nothing was written)"
