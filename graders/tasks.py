"""The judge's Celery task. Thin: what it does is in `bench.py`, callable without Celery."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from celery.signals import worker_process_shutdown

from evalfarm.broker import JUDGE_ANSWERS, App
from evalfarm.runstate import Handed
from graders.bench import Bench

OpenBench = Callable[[], Awaitable[Bench]]


@dataclass
class _Process:
    """The event loop and the bench of this worker process; connections stay up from task to task."""

    open_bench: OpenBench
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    bench: Bench | None = None

    async def run(self, run: str, handed: list[Handed]) -> None:
        if self.bench is None:
            self.bench = await self.open_bench()
        await self.bench.run(run, handed)

    def close(self) -> None:
        if self.bench is not None:
            self.runner.run(self.bench.resources.aclose())
        self.runner.close()


def register(app: App, open_bench: OpenBench) -> None:
    """Give the app its task. `open_bench` is called once in each worker process that judges, in its event loop."""
    process: list[_Process] = []

    def end(**_: Any) -> None:
        for known in process:
            known.close()

    worker_process_shutdown.connect(end, weak=False)

    @app.task(name=JUDGE_ANSWERS)  # type: ignore[untyped-decorator]
    def judge_answers(run: str, handed: list[list[int]]) -> None:
        if not process:
            process.append(_Process(open_bench))
        here = process[0]
        here.runner.run(here.run(run, [Handed(item, attempt) for item, attempt in handed]))
