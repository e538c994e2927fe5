"""Celery beat, and the task that it fires. Thin: what is due is decided from the store, whoever asks how often.

A message says that a schedule may be due, and nothing else. Lost, doubled or late it changes no night: a look every
half minute finds what a message should have said, and a night is decided about once.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from celery.beat import EmbeddedService
from celery.schedules import BaseSchedule, schedstate
from celery.signals import worker_ready, worker_shutting_down

from evalfarm.broker import SCHEDULES, TEND_SCHEDULES, App
from evalfarm.contracts.schedule import When
from scheduler.nightly.calendar import next_due

#: Seconds between two looks at all schedules: for what follows a run, and for what was missed.
LOOK_S = 30.0


class WallClock(BaseSchedule):  # type: ignore[misc]
    """The times of a schedule, as beat asks for them: by its own wall clock, which Celery's crontab reads otherwise."""

    def __init__(self, when: When, nowfun: Callable[[], datetime] | None = None) -> None:
        super().__init__(nowfun=nowfun)
        self.when = when

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WallClock) and other.when == self.when

    def __hash__(self) -> int:
        return hash((self.when.cron, self.when.time_zone))

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """From now to the first time after the last; negative where that has passed."""
        return timedelta(seconds=next_due(self.when, last_run_at.timestamp()).at_s - self.now().timestamp())

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Whether a time has passed since the last, and the seconds until the next."""
        now_s = self.now().timestamp()
        due_s = next_due(self.when, last_run_at.timestamp()).at_s
        if due_s > now_s:
            return schedstate(is_due=False, next=due_s - now_s)
        return schedstate(is_due=True, next=next_due(self.when, now_s).at_s - now_s)


def register(app: App, whens: Mapping[str, When], tend: Callable[[], None]) -> None:
    """Give the app its task, and have beat fire it at each schedule's times and every half minute besides.

    Beat runs as a thread of the worker that takes the messages, so that neither outlives the other, and keeps no file:
    what was missed is known from the store.
    """
    options = {"queue": SCHEDULES, "expires": LOOK_S}  # a look that nobody took is made up for by the next one
    entries = {name: WallClock(when) for name, when in whens.items()} | {"look": LOOK_S}
    app.conf.beat_schedule = {
        f"{name}@{TEND_SCHEDULES}": {"task": TEND_SCHEDULES, "schedule": schedule, "options": options}
        for name, schedule in entries.items()
    }
    beats: list[Any] = []

    def start(**_: Any) -> None:
        beats.append(EmbeddedService(app, thread=True, scheduler_cls="celery.beat:Scheduler"))
        beats[0].start()
        app.send_task(TEND_SCHEDULES, queue=SCHEDULES)  # what was missed is not to wait for half a minute

    def stop(**_: Any) -> None:
        for beat in beats:
            beat.service.stop()

    worker_ready.connect(start, weak=False)
    worker_shutting_down.connect(stop, weak=False)

    @app.task(name=TEND_SCHEDULES, shared=False)  # type: ignore[untyped-decorator]
    def tend_schedules() -> None:
        tend()
