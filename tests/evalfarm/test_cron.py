import re
from datetime import date, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.cron import parse_cron

SUNDAY, MONDAY = date(2026, 11, 29), date(2026, 11, 30)


def times(expression: str, day: date) -> list[time]:
    return list(parse_cron(expression).times(day))


@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        ("30 2 * * *", MONDAY, [time(2, 30)]),
        ("*/20 8-10/2 * * *", MONDAY, [time(8), time(8, 20), time(8, 40), time(10), time(10, 20), time(10, 40)]),
        ("0 5,17 * * mon-fri", MONDAY, [time(5), time(17)]),
        ("0 5 * * mon-fri", SUNDAY, []),
        ("0 5 * * 7", SUNDAY, [time(5)]),
        ("0 5 * * 0", SUNDAY, [time(5)]),
        ("0 5 * nov *", MONDAY, [time(5)]),
        ("0 5 * dec *", MONDAY, []),
        ("5/25 0 * * *", MONDAY, [time(0, 5), time(0, 30), time(0, 55)]),
    ],
)
def test_an_expression_names_the_times_that_crontab_reads_in_it(
    expression: str, day: date, expected: list[time]
) -> None:
    assert times(expression, day) == expected


@pytest.mark.parametrize(("day", "due"), [(date(2026, 11, 13), True), (MONDAY, True), (date(2026, 11, 12), False)])
def test_either_of_day_and_weekday_is_enough_where_both_are_given(day: date, due: bool) -> None:
    assert bool(times("0 0 13 * mon", day)) == due


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("30 2 * *", "has 4 fields; cron takes five: minute hour day month weekday"),
        ("60 2 * * *", "'60' is no minute: it goes from 0 to 59"),
        ("0 5-3 * * *", "'5-3' is no hour: 5 comes after 3"),
        ("*/0 * * * *", "'*/0' is no minute: a step is at least 1"),
        ("0 0 * foo *", "'foo' is no month: it goes from 1 to 12"),
        ("0 0 ? * *", "'?' is no day: write a number, *, 1-5, */15, or a list with commas"),
        ("0 0 30 2 *", "names a day that none of its months has"),
        ("@daily", "has 1 fields"),
    ],
)
def test_an_expression_that_is_none_says_which_field_is_wrong(expression: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_cron(expression)


def test_the_29th_of_february_is_a_day_of_leap_years() -> None:
    days = [date(2023, 1, 1) + timedelta(days=at) for at in range(365 * 6)]
    assert [day for day in days if times("0 3 29 2 *", day)] == [date(2024, 2, 29), date(2028, 2, 29)]


@given(st.integers(0, 59), st.integers(0, 23), st.dates())
def test_every_day_has_one_time_of_a_daily_expression(minute: int, hour: int, day: date) -> None:
    assert times(f"{minute} {hour} * * *", day) == [time(hour, minute)]
