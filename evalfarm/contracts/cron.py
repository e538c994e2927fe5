"""Cron expressions: five fields, minute hour day month weekday, as crontab(5) reads them.

Numbers, `*`, ranges `1-5`, steps `*/15` and `8-18/2`, lists of these with commas, and names of months and weekdays of
three letters. Where both day and weekday are given, either is enough. A weekday of 7 is Sunday, like 0.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST = dict(enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?")


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 7, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """The wall-clock times that an expression names; of no time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] | None  #: None: every day of the month
    months: frozenset[int]
    weekdays: frozenset[int] | None  #: 0 is Sunday; None: every day of the week

    def times(self, day: date) -> Iterator[time]:
        """The times of one day, in order; none where it is not a day of the expression's."""
        if self._is_on(day):
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    yield time(hour, minute)

    def _is_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month = self.days is not None and day.day in self.days
        of_week = self.weekdays is not None and day.isoweekday() % 7 in self.weekdays
        if self.days is None or self.weekdays is None:
            return (self.days is None or of_month) and (self.weekdays is None or of_week)
        return of_month or of_week


def parse_cron(text: str) -> Cron:
    """The expression in a text. Raises ValueError saying which field is wrong, and how."""
    words = text.lower().split()
    if len(words) != len(_FIELDS):
        raise ValueError(f"{text!r} has {len(words)} fields; cron takes five: minute hour day month weekday")
    minutes, hours, days, months, weekdays = (_values(*pair) for pair in zip(_FIELDS, words, strict=True))
    every_day, every_weekday = words[2].startswith("*"), words[4].startswith("*")
    if every_weekday and not any(day <= _LONGEST[month] for month in months for day in days):
        raise ValueError(f"{text!r} names a day that none of its months has")
    return Cron(
        minutes,
        hours,
        None if every_day and len(days) == 31 else days,
        months,
        None if every_weekday and len(weekdays) == 8 else frozenset(value % 7 for value in weekdays),
    )


def _values(field: _Field, word: str) -> frozenset[int]:
    return frozenset(value for part in word.split(",") for value in _of_part(field, part))


def _of_part(field: _Field, part: str) -> range:
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is no {field.name}: write a number, *, 1-5, */15, or a list with commas")
    star, first, last, step = found.groups()
    if step is not None and int(step) == 0:
        raise ValueError(f"{part!r} is no {field.name}: a step is at least 1")
    least = field.least if star else _number(field, first)
    most = field.most if star or (last is None and step is not None) else _number(field, last or first)
    if least > most:
        raise ValueError(f"{part!r} is no {field.name}: {least} comes after {most}")
    return range(least, most + 1, int(step or 1))


def _number(field: _Field, word: str) -> int:
    if word in field.names:
        return field.names.index(word) + field.least
    if not word.isdecimal() or not field.least <= int(word) <= field.most:
        raise ValueError(f"{word!r} is no {field.name}: it goes from {field.least} to {field.most}")
    return int(word)
