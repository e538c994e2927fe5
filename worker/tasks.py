"""The worker's Celery task and its process's life. Thin: what it does is in `shift.py`, callable without Celery."""

import asyncio
import ctypes
import mmap
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from celery.signals import worker_process_init, worker_process_shutdown, worker_ready, worker_shutting_down

from evalfarm.broker import RUN_TRIALS, App
from worker.shift import Shift

_PR_SET_PDEATHSIG = 1

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
        if self.shift is not None:
            self.runner.run(self.shift.station.close())
        self.runner.close()


def register(app: App, open_shift: OpenShift, on_ready: Callable[[], None]) -> None:
    """Give the app its task. `open_shift` is called once in each worker process, in its event loop;
    `on_ready` once in the main process, when it takes messages.
    """
    process: list[_Process] = []
    main_process = os.getpid()
    # Shared with the processes that are forked: a message of many trials must not keep a worker that was told to stop.
    told_to_stop = mmap.mmap(-1, 1)

    def start(**_: Any) -> None:
        # Celery's hard time limit kills a group only where the child leads one: then nothing it started survives.
        with suppress(PermissionError):
            os.setpgid(0, 0)
        _die_with(main_process)
        process[:] = [_Process(open_shift, lambda: told_to_stop[0] != 0)]

    def end(**_: Any) -> None:
        for known in process:
            known.close()

    def stop(**_: Any) -> None:
        told_to_stop[0] = 1

    worker_shutting_down.connect(stop, weak=False)
    worker_ready.connect(lambda **_: on_ready(), weak=False)
    worker_process_init.connect(start, weak=False)
    worker_process_shutdown.connect(end, weak=False)

    @app.task(name=RUN_TRIALS)  # type: ignore[untyped-decorator]
    def run_trials(run: str, indices: list[int]) -> None:
        here = process[0]
        here.runner.run(here.run(run, indices))


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent is gone: Celery's child would go on with its trial alone."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the tie
        os._exit(1)
