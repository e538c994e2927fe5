"""What runs by itself: schedules as `evalfarm.toml` declares them, and the nights that came of them.

A **night** is one due time of a schedule, at whatever hour. Its stamp is the wall-clock time that the schedule names,
and its run is called after both, so that whoever fires it twice names the same run.
"""

import re
from datetime import date
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.cron import parse_cron
from evalfarm.contracts.suite import HarnessName

NightVerdict = Literal["held", "improved", "regressed", "inconclusive", "failed", "skipped"]
"""What a night came to. `failed`: its run could not be started; `skipped`: it was not meant to be."""

TOLD_BY_DEFAULT: tuple[NightVerdict, ...] = ("regressed", "inconclusive", "failed", "skipped")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _reads_as_cron(text: str) -> str:
    parse_cron(text)
    return text


def _is_time_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {text!r}: write one as in Europe/Vienna, or UTC") from None
    return text


def _is_variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(  # it is not shown: an address of a webhook written here is a secret
            "this takes the name of an environment variable that holds the address, never the address itself"
        )
    return text


ScheduleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")]


class When(Contract):
    """At which wall-clock times, and on whose wall."""

    cron: Annotated[str, AfterValidator(_reads_as_cron)]
    time_zone: Annotated[str, AfterValidator(_is_time_zone)] = "UTC"


class BaselineRule(Contract):
    """What a night is held against: the schedule's own accepted nights before it."""

    rule: str | None = None  #: a TOML file with a [gate] table, relative to this one; none: the default numbers
    at_least: float | None = Field(default=None, gt=0, le=1)  #: a fixed bar for the pass rate besides
    confirm: bool = False  #: where the screen fires, run the fresh repeats that decide
    since: date | None = None  #: nights before this day do not count, as after a change that was meant
    allow_different: tuple[str, ...] = ()  #: settings that may differ from the baseline's


class Schedule(Contract):
    """One suite that is run at certain times."""

    suite: str  #: a shipped one's name, or a path relative to the file
    models: tuple[str, ...] = ()
    harnesses: tuple[HarnessName, ...] = ()  #: none: all that the cases support
    variants: tuple[Name, ...] = ()  #: none: all of the suite's
    repeats: int = Field(default=1, ge=1)
    filters: dict[Name, str] = {}  #: only cases with these tags
    judges: tuple[str, ...] = ()
    when: When
    missed: Literal["late", "skip"] = "late"  #: what becomes of a night that nobody was there to fire
    max_cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    baseline: BaselineRule = BaselineRule()
    notify: tuple[Name, ...] = ()  #: of the file's receivers


class Receiver(Contract):
    """Somebody who is told what a night came to. Exactly one of a webhook and a folder."""

    webhook_env: Annotated[str, AfterValidator(_is_variable)] | None = None  #: the variable that holds its address
    folder: str | None = None  #: where a Markdown and a JUnit file go, relative to the file
    on: tuple[NightVerdict, ...] = TOLD_BY_DEFAULT

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.webhook_env is None) == (self.folder is None):
            raise ValueError("give exactly one of webhook_env and folder")
        return self


class ScheduleFile(Contract):
    """`evalfarm.toml`."""

    schedules: dict[ScheduleName, Schedule] = {}
    receivers: dict[Name, Receiver] = {}

    @model_validator(mode="after")
    def _receivers_exist(self) -> Self:
        for name, schedule in self.schedules.items():
            for receiver in schedule.notify:
                if receiver not in self.receivers:
                    raise ValueError(f"schedules.{name}.notify: there is no [receivers.{receiver}]")
        return self


class Night(Contract):
    """What was decided about one due time of a schedule: create-only, so decided once."""

    schedule: ScheduleName
    stamp: str = Field(pattern=r"^\d{8}-\d{4}$")  #: its wall-clock time
    due_at: float  #: seconds since the epoch
    decided_at: float
    decision: Literal["on time", "late", "skipped"]
    why: str = ""  #: it is late, or was skipped
    next_due_at: float | None = None  #: when its schedule, as it was declared then, is due after it

    @property
    def run(self) -> str:
        """The run that it is, if it was not skipped."""
        return f"{self.schedule}-{self.stamp}"


class NightEnd(Contract):
    """What a night came to: create-only."""

    schedule: ScheduleName
    stamp: str
    verdict: NightVerdict
    reasons: tuple[str, ...] = ()
    accepted: bool = False  #: later nights are held against it
    baselines: tuple[Name, ...] = ()  #: runs that it was held against, oldest first
    confirm: Name | None = None  #: its confirm run
    ended_at: float


class Telling(Contract):
    """One attempt at telling one receiver of one night."""

    receiver: Name
    attempt: int
    began_at: float


class Told(Contract):
    """How such an attempt ended."""

    delivered: bool
    ended_at: float
    why: str = ""  #: it was not delivered
