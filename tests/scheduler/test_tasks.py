from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.broker import ALL_QUEUES, SCHEDULES, TEND_SCHEDULES, App, make_app
from evalfarm.contracts.schedule import When
from scheduler.nightly.calendar import next_due
from scheduler.tasks import LOOK_S, WallClock, register

NIGHTLY = When(cron="30 2 * * *", time_zone="Europe/Vienna")
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))


def at(now: datetime) -> Callable[[], datetime]:
    return lambda: now


@given(MOMENTS, st.floats(0, 3 * 86_400.0))
def test_beat_is_told_that_a_time_has_passed_and_when_the_next_comes(last: datetime, later_s: float) -> None:
    now = last + timedelta(seconds=later_s)
    state = WallClock(NIGHTLY, at(now)).is_due(last)
    first_s = next_due(NIGHTLY, last.timestamp()).at_s
    assert state.is_due == (first_s <= now.timestamp())
    assert state.next == pytest.approx(next_due(NIGHTLY, now.timestamp()).at_s - now.timestamp())


def test_what_remains_is_the_time_to_the_first_after_the_last() -> None:
    now = datetime(2026, 11, 30, 0, 30, tzinfo=UTC)
    assert WallClock(NIGHTLY, at(now)).remaining_estimate(now) == timedelta(hours=1)


def test_two_schedules_are_the_same_where_their_times_are() -> None:
    other = When(cron="30 2 * * *", time_zone="America/New_York")
    assert WallClock(NIGHTLY) == WallClock(NIGHTLY)
    assert WallClock(NIGHTLY) != WallClock(other)
    assert len({WallClock(NIGHTLY), WallClock(NIGHTLY), WallClock(other)}) == 2


@pytest.fixture
def app() -> App:
    return make_app("redis://127.0.0.1:9/0")


def test_beat_fires_each_schedule_and_a_look_every_half_minute_on_a_queue_of_their_own(app: App) -> None:
    register(app, {"a": NIGHTLY}, lambda: None)
    options = {"queue": SCHEDULES, "expires": LOOK_S}
    assert app.conf.beat_schedule == {
        f"a@{TEND_SCHEDULES}": {"task": TEND_SCHEDULES, "schedule": WallClock(NIGHTLY), "options": options},
        f"look@{TEND_SCHEDULES}": {"task": TEND_SCHEDULES, "schedule": LOOK_S, "options": options},
    }
    assert SCHEDULES in app.amqp.queues
    assert SCHEDULES not in ALL_QUEUES


def test_the_task_looks(app: App) -> None:
    looks: list[str] = []
    register(app, {}, lambda: looks.append("looked"))
    app.tasks[TEND_SCHEDULES]()
    assert looks == ["looked"]
