"""What a route through the tools must hold: which calls, with which arguments, and what came back."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from evalfarm.contracts.answer import Pattern
from evalfarm.contracts.base import Contract, Name

Scalar = str | int | float | bool

_RECORDS_PATH = re.compile(r"(\[\*\]|[^.\[\]]+)(\[\*\])*(\.[^.\[\]]+(\[\*\])*)*")


def _reads_as_path(path: str) -> str:
    if not _RECORDS_PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path: give names separated by dots, [*] for every element, as in hits[*].id")
    return path


RecordsPath = Annotated[str, AfterValidator(_reads_as_path)]


class Check(Contract):
    """A set of values, collected from every call of one tool, compared with the values expected.

    `at` is a path to the records, over each call's arguments or result: names separated by dots, `[*]`
    for every element of a list (`results[*].candidates[*]`, `series_ids[*]`).
    """

    tool: Name
    at: RecordsPath
    highest: str | None = None  #: of each list of records keep those whose field is the largest
    without: str | None = None  #: a record with this field (not null) is an error, and fails the check
    field: str | None = None  #: the record's field to compare; none: the record itself
    exactly: tuple[Scalar, ...] | None = None
    includes: tuple[Scalar, ...] | None = None
    within: tuple[Scalar, ...] | None = None

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        if sum(values is not None for values in (self.exactly, self.includes, self.within)) != 1:
            raise ValueError("give exactly one of exactly, includes and within")
        return self


class CallRule(Contract):
    """Calls of one tool that are counted: those in which every kind of argument given here fits.

    Without `at_most` at least one call is needed; with it, none unless `at_least` says so. `at_most: 0` forbids.
    """

    tool: Name
    exactly: dict[str, JsonValue] | None = None  #: all of a call's arguments
    including: dict[str, JsonValue] | None = None  #: some of them
    matching: dict[str, Pattern] | None = None  #: argument -> what its text must match as a whole, case minded
    turn: int | None = Field(default=None, ge=1)  #: count calls of this turn only, from 1
    at_least: int | None = Field(default=None, ge=0)
    at_most: int | None = Field(default=None, ge=0)

    @property
    def fewest(self) -> int:
        """The fewest calls that keep the rule."""
        if self.at_least is not None:
            return self.at_least
        return 1 if self.at_most is None else 0

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        if self.exactly is not None and (self.including is not None or self.matching is not None):
            raise ValueError("exactly leaves nothing open: leave including and matching out")
        if self.at_most is not None and self.fewest > self.at_most:
            raise ValueError(f"at least {self.fewest} and at most {self.at_most} calls cannot both be")
        return self


class Expectation(Contract):
    """What must be seen in a trace, in terms of tools, arguments and results."""

    tools: tuple[Name, ...] = ()  #: each is called at least once
    never: tuple[Name, ...] = ()  #: none is called
    arguments: tuple[Check, ...] = ()  #: over the arguments of all calls
    results: tuple[Check, ...] = ()  #: over the results of all calls
    calls: tuple[CallRule, ...] = ()  #: each is kept, in whatever order
    sequence: tuple[CallRule, ...] = ()  #: one call for each, in this order; others may come in between
    no_calls: bool = False  #: no tool of the plugin is called at all

    def named_tools(self) -> frozenset[str]:
        """Every tool this expectation speaks of."""
        checked = {check.tool for check in self.arguments + self.results}
        return frozenset(self.tools) | frozenset(self.never) | checked | {r.tool for r in self.calls + self.sequence}

    @model_validator(mode="after")
    def _no_calls_means_none(self) -> Self:
        if self.no_calls and self.named_tools():
            raise ValueError("no_calls already says that nothing is called: leave the rest out")
        if any(rule.at_least is not None or rule.at_most is not None for rule in self.sequence):
            raise ValueError("a sequence holds one call after another: count them in calls")
        return self
