"""When a schedule is due: wall-clock times to moments. Pure.

Each wall-clock time is due once. Where the clocks go back, it is the first of the two; where they go forward, a time
that does not exist is due as much later as the clocks jump (02:30 at 03:30), unless the schedule has that time too.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from evalfarm.contracts.cron import parse_cron
from evalfarm.contracts.schedule import When

#: How far ahead the next time is looked for, in days, nearest first. The last is beyond the forty years that may lie
#: between two 29 February of one weekday.
_HORIZONS = (2, 35, 400, 41 * 366)
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Due:
    """One time at which a schedule is due."""

    at_s: float  #: seconds since the epoch
    stamp: str  #: the wall-clock time that the schedule names, as in 20261130-0230


def dues(when: When, after_s: float, until_s: float) -> tuple[Due, ...]:
    """The times later than `after_s` and not later than `until_s`, in order."""
    zone, cron = ZoneInfo(when.time_zone), parse_cron(when.cron)
    # A day more on either side: what falls into a gap of the clocks may be due on another day than its wall says.
    day = datetime.fromtimestamp(after_s, zone).date() - timedelta(days=1)
    last = datetime.fromtimestamp(until_s, zone).date() + timedelta(days=1)
    found: dict[float, Due] = {}
    while day <= last:
        for wall in cron.times(day):
            local = datetime.combine(day, wall, zone)
            due = Due(local.timestamp(), local.strftime("%Y%m%d-%H%M"))
            if _exists(local):
                found[due.at_s] = due
            else:
                found.setdefault(due.at_s, due)
        day += timedelta(days=1)
    return tuple(found[at_s] for at_s in sorted(found) if after_s < at_s <= until_s)


def next_due(when: When, after_s: float) -> Due:
    """The first time later than `after_s`. Raises ValueError where there is none in forty years."""
    for days in _HORIZONS:
        if found := dues(when, after_s, after_s + days * _DAY_S):
            return found[0]
    raise ValueError(f"{when.cron!r} is never due")


def wall_clock(when: When, at_s: float) -> datetime:
    """What the schedule's clocks show at a moment."""
    return datetime.fromtimestamp(at_s, ZoneInfo(when.time_zone))


def _exists(local: datetime) -> bool:
    """Whether the clocks ever show this time: not where they jump over it."""
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(tzinfo=None) == local.replace(tzinfo=None)
