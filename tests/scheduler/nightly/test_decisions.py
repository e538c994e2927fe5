from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.schedule import Night, NightEnd, Receiver, Schedule, Telling, Told
from scheduler.nightly.decisions import (
    MOST_TELLINGS,
    TELL_AGAIN_S,
    accepted_runs,
    decide,
    next_telling,
    running_of,
    to_tell,
)

HOUR_S, DAY_S = 3_600.0, 86_400.0
#: 02:30 in Vienna on 30 November 2026.
DUE_S = datetime(2026, 11, 30, 1, 30, tzinfo=UTC).timestamp()
MakeNight = Callable[..., Night]
MakeEnd = Callable[..., NightEnd]
DAILY = Schedule.model_validate({"suite": "bls", "when": {"cron": "30 2 * * *", "time_zone": "Europe/Vienna"}})


def told(nights: tuple[Night, ...]) -> list[tuple[str, str, str]]:
    return [(night.stamp, night.decision, night.why) for night in nights]


def test_a_night_that_is_fired_in_time_is_run_under_a_name_of_schedule_and_date(shop: Schedule) -> None:
    (night,) = decide("shop", shop, 0.0, (), None, DUE_S + 5)[-1:]
    assert night == Night(
        schedule="shop",
        stamp="20261130-0230",
        due_at=DUE_S,
        decided_at=DUE_S + 5,
        decision="on time",
        next_due_at=DUE_S + DAY_S,
    )
    assert night.run == "shop-20261130-0230"


def test_nothing_is_due_before_its_time_or_before_the_schedule_was_known(shop: Schedule) -> None:
    assert decide("shop", shop, DUE_S - HOUR_S, (), None, DUE_S - 1) == ()
    assert decide("shop", shop, DUE_S, (), None, DUE_S + HOUR_S) == ()


def test_a_missed_night_is_run_once_and_late(shop: Schedule) -> None:
    found = decide("shop", shop, DUE_S - HOUR_S, (), None, DUE_S + 2 * HOUR_S)
    assert told(found) == [("20261130-0230", "late", "nobody was there to fire it; run 120 minutes late")]
    assert decide("shop", shop, DUE_S - HOUR_S, found, None, DUE_S + 3 * HOUR_S) == ()


def test_a_missed_night_is_skipped_where_its_schedule_says_so(shop: Schedule) -> None:
    skips = shop.model_copy(update={"missed": "skip"})
    assert told(decide("shop", skips, DUE_S - HOUR_S, (), None, DUE_S + 2 * HOUR_S)) == [
        ("20261130-0230", "skipped", "nobody was there to fire it, and its schedule says skip")
    ]


def test_of_several_missed_nights_the_last_is_run_and_the_others_show(shop: Schedule) -> None:
    found = decide("shop", shop, DUE_S - HOUR_S, (), None, DUE_S + 2 * DAY_S + 1)
    passed = "nobody was there to fire it, and a later one was due already"
    assert told(found) == [
        ("20261130-0230", "skipped", passed),
        ("20261201-0230", "skipped", passed),
        ("20261202-0230", "on time", ""),
    ]


def test_a_night_that_comes_while_the_last_one_runs_is_skipped(shop: Schedule, make_night: MakeNight) -> None:
    last = make_night("20261129-0230", due_at=DUE_S - DAY_S)
    running = running_of([last], {})
    assert told(decide("shop", shop, 0.0, (last,), running, DUE_S + 5)) == [
        ("20261130-0230", "skipped", "run shop-20261129-0230 of the night before still ran")
    ]


def test_a_skipped_night_is_not_one_that_still_runs(make_night: MakeNight, make_end: MakeEnd) -> None:
    nights = [make_night("20261128-0230"), make_night("20261129-0230", decision="skipped")]
    assert running_of(nights, {"20261128-0230": make_end("20261128-0230")}) is None


looks = st.lists(st.floats(0, 6 * HOUR_S), min_size=1, max_size=60)


@given(looks, st.booleans())
def test_however_often_anybody_looks_every_time_is_decided_once_and_in_order(steps: list[float], skip: bool) -> None:
    said = DAILY.model_copy(update={"missed": "skip" if skip else "late"})
    now_s = since_s = DUE_S - 3 * DAY_S
    known: list[Night] = []
    for step in steps:
        now_s += step
        first = decide("shop", said, since_s, known, None, now_s)
        assert decide("shop", said, since_s, [*known, *first], None, now_s) == ()
        known += first
    stamps = [night.stamp for night in known]
    assert stamps == sorted(set(stamps))
    assert len(known) == sum(since_s < DUE_S + at * DAY_S <= now_s for at in range(-5, 20))


def test_a_night_is_held_against_those_that_were_accepted(
    shop: Schedule, make_night: MakeNight, make_end: MakeEnd
) -> None:
    ends = {
        "20261125-0230": make_end("20261125-0230"),
        "20261126-0230": make_end("20261126-0230", verdict="regressed", accepted=False),
        "20261127-0230": make_end("20261127-0230", verdict="skipped", accepted=False),
        "20261128-0230": make_end("20261128-0230", verdict="inconclusive"),
    }
    nights = [make_night(stamp) for stamp in (*ends, "20261129-0230", "20261130-0230")]
    assert accepted_runs(shop, nights, ends, nights[-1]) == ("shop-20261125-0230", "shop-20261128-0230")
    assert accepted_runs(shop, nights, ends, nights[0]) == ()


def test_since_a_change_that_was_meant_its_night_counts_and_none_before_it(
    shop: Schedule, make_night: MakeNight, make_end: MakeEnd
) -> None:
    ends = {
        "20261125-0230": make_end("20261125-0230"),
        "20261126-0230": make_end("20261126-0230", verdict="regressed", accepted=False),
        "20261127-0230": make_end("20261127-0230"),
    }
    nights = [make_night(stamp) for stamp in (*ends, "20261128-0230")]
    since = shop.baseline.model_copy(update={"since": date(2026, 11, 26)})
    changed = shop.model_copy(update={"baseline": since})
    assert accepted_runs(changed, nights, ends, nights[-1]) == ("shop-20261126-0230", "shop-20261127-0230")


@pytest.mark.parametrize(
    ("verdict", "receivers"), [("held", ["files"]), ("regressed", ["team", "files"]), ("skipped", [])]
)
def test_a_receiver_is_told_of_what_it_asked_for(
    shop: Schedule, make_end: MakeEnd, verdict: str, receivers: list[str]
) -> None:
    known = {
        "team": Receiver(webhook_env="TEAM_WEBHOOK", on=("regressed", "failed")),
        "files": Receiver(folder="out", on=("held", "regressed")),
    }
    assert [name for name, _ in to_tell(shop, known, make_end(verdict=verdict))] == receivers


def attempt(number: int, began_at: float = 0.0) -> Telling:
    return Telling(receiver="team", attempt=number, began_at=began_at)


FAILED, DELIVERED = (Told(delivered=delivered, ended_at=1.0) for delivered in (False, True))


@pytest.mark.parametrize(
    ("tellings", "now_s", "number"),
    [
        ([], 0.0, 1),
        ([(attempt(1), DELIVERED)], TELL_AGAIN_S, None),
        ([(attempt(1), FAILED)], TELL_AGAIN_S - 1, None),
        ([(attempt(1), FAILED)], TELL_AGAIN_S, 2),
        ([(attempt(1), None)], TELL_AGAIN_S, 2),  # whoever made it died
        ([(attempt(number), FAILED) for number in range(1, MOST_TELLINGS + 1)], 10 * TELL_AGAIN_S, None),
    ],
)
def test_a_receiver_is_told_once_and_tried_a_bounded_number_of_times(
    tellings: list[tuple[Telling, Told | None]], now_s: float, number: int | None
) -> None:
    assert next_telling("team", tellings, now_s) == (None if number is None else attempt(number, now_s))
