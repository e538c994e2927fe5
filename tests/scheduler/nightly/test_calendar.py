from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.schedule import When
from scheduler.nightly.calendar import Due, dues, next_due, wall_clock

DAY_S = 86_400.0
ZONES = ("UTC", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def when(cron: str, time_zone: str = "Europe/Vienna") -> When:
    return When(cron=cron, time_zone=time_zone)


def moments(found: tuple[Due, ...]) -> list[tuple[str, str]]:
    return [(due.stamp, datetime.fromtimestamp(due.at_s, UTC).strftime("%d %H:%M")) for due in found]


def test_a_time_that_the_clocks_jump_over_is_due_as_much_later() -> None:
    found = dues(when("30 2 * * *"), at("2026-03-28T00:00+01:00"), at("2026-03-31T00:00+02:00"))
    assert moments(found) == [
        ("20260328-0230", "28 01:30"),
        ("20260329-0230", "29 01:30"),  # 03:30, where 02:30 does not exist
        ("20260330-0230", "30 00:30"),
    ]


def test_a_time_that_the_clocks_show_twice_is_due_the_first_time_alone() -> None:
    found = dues(when("30 2 * * *"), at("2026-10-24T00:00+02:00"), at("2026-10-27T00:00+01:00"))
    assert moments(found) == [
        ("20261024-0230", "24 00:30"),
        ("20261025-0230", "25 00:30"),
        ("20261026-0230", "26 01:30"),
    ]


def test_what_is_due_every_half_hour_is_not_doubled_by_the_hour_that_is_missing() -> None:
    found = dues(when("*/30 * * * *"), at("2026-03-29T01:15+01:00"), at("2026-03-29T04:00+02:00"))
    assert moments(found) == [
        ("20260329-0130", "29 00:30"),
        ("20260329-0300", "29 01:00"),
        ("20260329-0330", "29 01:30"),
        ("20260329-0400", "29 02:00"),
    ]


def test_two_zones_are_due_at_their_own_half_past_two() -> None:
    after = at("2026-11-30T00:00+00:00")
    assert next_due(when("30 2 * * *"), after).at_s == at("2026-11-30T02:30+01:00")
    assert next_due(when("30 2 * * *", "America/New_York"), after).at_s == at("2026-11-30T02:30-05:00")


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        ("0 3 29 2 *", "2026-11-30T00:00+01:00", "2028-02-29T03:00+01:00"),
        ("0 3 29 2 *", "2096-03-01T00:00+01:00", "2104-02-29T03:00+01:00"),
        ("0 0 1 1 *", "2026-11-30T00:00+01:00", "2027-01-01T00:00+01:00"),
    ],
)
def test_the_next_time_is_found_however_far_away_it_is(cron: str, after: str, due: str) -> None:
    assert next_due(when(cron), at(after)).at_s == at(due)


def test_a_moment_is_shown_as_the_schedule_s_clocks_show_it() -> None:
    assert wall_clock(when("0 0 * * *"), at("2026-07-01T00:00+00:00")).isoformat() == "2026-07-01T02:00:00+02:00"


schedules = st.builds(
    when, st.sampled_from(["30 2 * * *", "*/7 * * * *", "0 0 * * *", "15 1-3 * * sun"]), st.sampled_from(ZONES)
)
starts = st.datetimes(datetime(2005, 1, 1), datetime(2040, 1, 1)).map(
    lambda naive: naive.replace(tzinfo=UTC).timestamp()
)


@given(schedules, starts, st.floats(0, 3 * DAY_S), st.floats(0, 3 * DAY_S))
def test_two_spans_side_by_side_hold_what_one_does(said: When, start: float, first: float, second: float) -> None:
    middle, end = start + first, start + first + second
    assert dues(said, start, middle) + dues(said, middle, end) == dues(said, start, end)


@given(schedules, starts)
def test_no_moment_and_no_stamp_is_due_twice(said: When, start: float) -> None:
    found = dues(said, start, start + 4 * DAY_S)
    assert all(one.at_s < other.at_s for one, other in pairwise(found))
    assert len({due.stamp for due in found}) == len(found)


@given(st.sampled_from(ZONES[:4]), starts)
def test_a_daily_schedule_is_due_on_every_day_of_its_zone(zone: str, start: float) -> None:
    found = dues(when("30 2 * * *", zone), start, start + 10 * DAY_S)
    days = [datetime.strptime(due.stamp, "%Y%m%d-%H%M").date() for due in found]
    assert all(later - day == timedelta(days=1) for day, later in pairwise(days))


@given(schedules, starts)
def test_the_next_time_is_the_first_of_those_to_come(said: When, start: float) -> None:
    following = next_due(said, start)
    assert dues(said, start, following.at_s) == (following,)
