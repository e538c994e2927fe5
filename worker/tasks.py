"""The worker's Celery task and its process's life. Thin: what it does is in `shift.py`, callable without Celery."""

import asyncio
import ctypes
import gc
import logging
import mmap
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from celery.concurrency.prefork import TaskPool
from celery.signals import worker_process_init, worker_process_shutdown, worker_ready, worker_shutting_down
from celery.worker.consumer import Consumer
from kombu.asynchronous import get_event_loop

from evalfarm.broker import RUN_TRIALS, App
from worker.shift import Shift

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1

#: Objects that may be made, beyond those that are gone again, before garbage is looked for; Python's own is 700.
_COLLECTED_EVERY = 20_000

#: Seconds that a process has to end its servers and close its connections. Then the kernel ends it, and they with it.
_CLEARING_UP_S = 20

OpenShift = Callable[[Callable[[], bool]], Awaitable[Shift]]
"""Makes a process's shift; handed in is what says whether the worker takes no more trials."""


@dataclass
class _Process:
    """The event loop and the shift of this worker process. The loop outlives each task: servers stay up in it."""

    open_shift: OpenShift
    stopping: Callable[[], bool]
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    shift: Shift | None = None

    async def run(self, run: str, indices: list[int]) -> None:
        if self.shift is None:
            self.shift = await self.open_shift(self.stopping)
        await self.shift.run(run, indices)

    def close(self) -> None:
        # A process that ran out of memory can start no thread, and waits for the one that was to end the others.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_CLEARING_UP_S)
        if self.shift is not None:
            self.runner.run(self.shift.station.close())
        self.runner.close()


class Taker(Consumer):  # type: ignore[misc]  # Celery has no types
    """Takes messages as Celery does, and drops one that is none instead of ending the worker over it."""

    #: What Celery and kombu raise, among them, over bytes that are no JSON, JSON that is no envelope, and a body that
    #: is no base64. Of the first two nothing is left: they are off the queue, and the connection is made anew.
    UNREADABLE = (TypeError, ValueError, KeyError, AttributeError)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.channel_errors: tuple[type[Exception], ...] = (*self.conninfo.channel_errors, *self.UNREADABLE)

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], None]:
        """Celery's own, behind a catch."""
        handle = super().create_task_handler(*args, **kwargs)

        def handle_or_drop(message: Any) -> None:
            try:
                handle(message)
            except self.UNREADABLE as error:
                log.warning("dropped a message that cannot be read: %r", error)
                message.reject()  # or it would be restored to the queue, to be met again

        return handle_or_drop


class Pool(TaskPool):  # type: ignore[misc]  # Celery has no types
    """Celery's prefork pool, stopped without half a second of waiting where nothing is at work."""

    _pool: Any

    def on_stop(self) -> None:
        """Let the processes end."""
        if self._pool is None or self._pool._cache:  # what is at work needs Celery's timers: its time limit is one
            super().on_stop()
        else:
            self._pool.close()
            self._pool.join()
            self._pool = None


class Waker:
    """Has Celery's loop see at once that it is to stop; by itself it looks after its next timer, a second at most."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()

    def listen(self) -> None:
        """Called where the loop runs."""
        if (loop := get_event_loop()) is not None:
            loop.add_reader(self._reads, lambda: None)  # type: ignore[no-untyped-call]

    def wake(self) -> None:
        """May be called by a signal's handler."""
        os.write(self._writes, b".")


def register(app: App, open_shift: OpenShift, on_ready: Callable[[], None]) -> None:
    """Give the app its task. `open_shift` is called once in each worker process, in its event loop;
    `on_ready` once in the main process, when it takes messages.
    """
    process, main_process, waker = list[_Process](), os.getpid(), Waker()
    # Shared with the processes that are forked: a message of many trials must not keep a worker that was told to stop.
    told_to_stop = mmap.mmap(-1, 1)

    def start(**_: Any) -> None:
        _settle_child(main_process)
        process[:] = [_Process(open_shift, lambda: told_to_stop[0] != 0)]

    def end(**_: Any) -> None:
        for known in process:
            known.close()
        if told_to_stop[0]:
            os._exit(0)  # all that it did is told; billiard would sleep a second here, in which the farm waits for it

    def stop(**_: Any) -> None:
        told_to_stop[0] = 1
        waker.wake()

    def ready(**_: Any) -> None:
        waker.listen()
        on_ready()

    app.conf.update(worker_consumer=Taker, worker_pool=Pool)
    # Sent from within handlers of signals of the system, which nest: with Celery's own lock a second SIGTERM that comes
    # while the first is being told of waits for ever for the one below it.
    worker_shutting_down.lock = RLock()
    worker_shutting_down.connect(stop, weak=False)
    worker_ready.connect(ready, weak=False)
    worker_process_init.connect(start, weak=False)
    worker_process_shutdown.connect(end, weak=False)

    @app.task(name=RUN_TRIALS)  # type: ignore[untyped-decorator]
    def run_trials(run: str, indices: list[int]) -> None:
        here = process[0]
        here.runner.run(here.run(run, indices))


def _settle_child(parent: int) -> None:
    # Celery's hard time limit kills a group only where the child leads one: then nothing it started survives.
    with suppress(PermissionError):
        os.setpgid(0, 0)
    _die_with(parent)
    # What was imported stays; and a trial's records hold no circles, so that garbage need not be looked for with
    # every trial, which took a twentieth of its CPU time.
    gc.freeze()
    gc.set_threshold(_COLLECTED_EVERY)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone: Celery's child would go on with its trial alone."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the tie
        os._exit(1)
