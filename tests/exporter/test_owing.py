from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.exporter.owing import owed_since
from evalfarm.exporter.reading import FORGOTTEN_S
from evalfarm.exporter.seen import NightOf, Owed
from evalfarm.nights import Nights

DAY_S = 86_400.0
OF = NightOf("small", "nightly")


def a_night(day: int, schedule: str = "shop", **changes: Any) -> Night:
    """The night of a day; its schedule is due again a day later."""
    told = {
        "schedule": schedule,
        "stamp": f"202611{day:02d}-0230",
        "due_at": day * DAY_S,
        "decided_at": day * DAY_S,
        "decision": "on time",
        "next_due_at": (day + 1) * DAY_S,
    }
    return Night.model_validate(told | changes)


def an_end(night: Night, verdict: str = "held") -> NightEnd:
    return NightEnd.model_validate(
        {"schedule": night.schedule, "stamp": night.stamp, "verdict": verdict, "ended_at": night.due_at}
    )


@pytest.mark.parametrize(
    ("nights", "verdicts", "opened", "day"),
    [
        ([], {}, [], None),
        ([1], {1: "held"}, [1], 2),
        ([1], {1: "inconclusive"}, [], 2),  # its run was let go since
        ([1], {}, [1], 2),  # at work, which is its right until the next one is due
        ([1], {}, [], 1),
        ([1], {1: "failed"}, [], 1),
        ([1, 2], {1: "held"}, [1, 2], 3),
        ([1, 2], {1: "held"}, [1], 2),
        ([1, 2], {1: "held", 2: "failed"}, [1], 2),
        ([1, 2], {1: "held", 2: "regressed"}, [1, 2], 3),
        ([1, 2], {}, [1, 2], 2),  # the first one was not judged when the second was due
        ([1, 2, 3], {1: "held"}, [1, 2, 3], 3),
        ([1, 2, 3], {2: "held"}, [1, 2, 3], 4),
        ([1, 2, -3], {1: "held", 2: "held"}, [1, 2], 3),
        ([1, -2, 3], {1: "held"}, [1, 3], 3),
        ([1, -2, 3], {1: "held", 3: "held"}, [1, 3], 4),
        ([-1, -2], {}, [], 1),
    ],
)
def test_a_night_is_owed_until_it_starts_and_when_the_next_is_due_until_it_is_judged(
    nights: list[int], verdicts: dict[int, str], opened: list[int], day: int | None
) -> None:
    """A day with a minus is a night that was skipped."""
    known = [a_night(abs(one), decision="skipped" if one < 0 else "on time") for one in nights]
    ends = {a_night(one).stamp: an_end(a_night(one), verdict) for one, verdict in verdicts.items()}
    owed = owed_since(known, ends, [a_night(one).run for one in opened])
    assert owed == (None if day is None else day * DAY_S)


def test_a_night_that_does_not_say_when_the_next_one_is_due_owes_nothing_once_it_has_started() -> None:
    night = a_night(1, next_due_at=None)
    assert owed_since([night], {}, [night.run]) is None
    assert owed_since([night], {}, []) == DAY_S


@pytest.fixture
def begin(farm: Any) -> Callable[..., Night]:
    """A night of a schedule whose run was opened."""

    def put(day: int, schedule: str) -> Night:
        night, nights = a_night(day, schedule), Nights(farm.store.objects)
        nights.since(schedule, 0.0)
        nights.put(night)
        farm.seal(night.run, created_at=night.due_at, label=schedule)
        nights.put_end(an_end(night))
        return night

    return put


def test_of_two_schedules_of_a_suite_the_one_that_owes_a_night_is_told(
    farm: Any, begin: Callable[..., Night], told: Any
) -> None:
    farm.clock.now = 3.5 * DAY_S
    for day in (1, 2, 3):
        begin(day, "mornings")
    begin(1, "evenings")
    seen = farm.reader().look()
    assert seen.owed == (Owed(OF, "evenings", 2 * DAY_S), Owed(OF, "mornings", 4 * DAY_S))
    assert told(seen, "schedule_") == {
        'schedule_due_timestamp_seconds{suite="small",queue="nightly"}': 2 * DAY_S,
        'schedule_due_info{suite="small",queue="nightly",schedule="evenings"}': 1,
    }
    begin(3, "evenings")
    assert told(farm.reader().look(), "schedule_due_t") == {
        'schedule_due_timestamp_seconds{suite="small",queue="nightly"}': 4 * DAY_S
    }


def test_a_schedule_that_had_no_run_yet_or_owes_one_for_a_week_is_not_told(
    farm: Any, begin: Callable[..., Night]
) -> None:
    Nights(farm.store.objects).put(a_night(1, "new"))
    Nights(farm.store.objects).since("new", 0.0)
    begin(1, "given-up")
    reader = farm.reader()
    farm.clock.now = 2 * DAY_S + FORGOTTEN_S - 1
    assert [one.schedule for one in reader.look().owed] == ["given-up"]
    farm.clock.now += 1
    assert reader.look().owed == ()
