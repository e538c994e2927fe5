"""The rules by which conversations are scored, as data: patterns over texts, lists of names, and a suite's guards.

Two engines read every pattern, Python's and DuckDB's. Only what both read alike is allowed, so that neither can find
what the other does not.
"""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from evalfarm.contracts.base import Contract, Name

#: One piece of a pattern. Anchors, look-around, flags, \s and \B are left out: the engines differ in them.
_PIECE = re.compile(
    r"\\[dDwWb]|\\[^A-Za-z0-9]"  # a class, the edge of a word, a character taken as itself
    r"|\[\^?(?:\\[dDwW]|\\[^A-Za-z0-9]|(?!&&|\|\||~~|--)[^\]\[\\])+\]"  # a set of characters
    r"|\((?!\?)|\)|[|.]"
    r"|(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{])"  # how often
    r"|[^\\\[\](){}^$*+?|.]"
)


def _reads_alike(pattern: str) -> str:
    at = 0
    while piece := _PIECE.match(pattern, at):
        at = piece.end()
    if at < len(pattern):
        raise ValueError(f"{pattern!r} uses {pattern[at : at + 4]!r}, which not every engine reads alike")
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    if compiled.search("") is not None:
        raise ValueError(f"{pattern!r} is found in an empty text, so it would be found everywhere")
    return pattern


PortablePattern = Annotated[str, AfterValidator(_reads_alike)]
"""A regular expression that is searched for, case minded, in the part that Python and RE2 share:
groups, sets, `|`, `.`, `* + ? {m,n}`, `\\d \\D \\w \\W \\b` over ASCII, and escaped punctuation."""


class Guard(Contract):
    """A rule of a suite's own over the calls of some tools: their input must match a pattern, or must not.

    `unscoped_queries: {tools: [query], argument: sql, must_match: "is_test = true"}` counts every call of `query`
    whose `sql` lacks the filter.
    """

    tools: tuple[Name, ...] = Field(min_length=1)
    argument: Name | None = None  #: whose text is looked at, empty where it is missing or no text; none: all, as JSON
    must_match: PortablePattern | None = None
    must_not_match: PortablePattern | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.must_match is None) == (self.must_not_match is None):
            raise ValueError("give exactly one of must_match and must_not_match")
        return self


class ConversationRules(Contract):
    """What the rules look for. The shipped file has all of it; a suite adds to the lists, and sets its own numbers.

    `*_errors`, `bad_arguments` and `timeouts` are searched in the results of MCP calls, the rest where it says.
    """

    completed_chars: int | None = Field(default=None, ge=1)  #: of an answer that counts as complete without a widget
    schema_errors: tuple[PortablePattern, ...] = ()
    access_errors: tuple[PortablePattern, ...] = ()
    upstream_errors: tuple[PortablePattern, ...] = ()
    bad_arguments: tuple[PortablePattern, ...] = ()
    timeouts: tuple[PortablePattern, ...] = ()
    placeholder_mentions: tuple[PortablePattern, ...] = ()  #: in the final answer; each place is counted
    tools_unavailable: tuple[PortablePattern, ...] = ()  #: in the final answer
    said_unavailable: tuple[PortablePattern, ...] = ()  #: in the final answer: what was asked for cannot be had
    idle_commands: tuple[PortablePattern, ...] = ()  #: each stands for a whole shell command that does nothing
    outside_fetches: tuple[PortablePattern, ...] = ()  #: in shell commands: they fetch from outside the plugin
    outside_reasons: tuple[PortablePattern, ...] = ()  #: in a grader's reasons: records outside those expected
    outside_tools: tuple[Name, ...] = ()  #: the harness's own tools that fetch from outside the plugin
    widget_tools: tuple[Name, ...] = ()
    write_verbs: tuple[Name, ...] = ()  #: a tool with one of these words in its name writes
    write_methods: tuple[Name, ...] = ()  #: a call with one of these as its method writes
    method_arguments: tuple[Name, ...] = ()  #: the arguments that hold a method
    guards: dict[Name, Guard] = {}

    def extended(self, more: "ConversationRules") -> "ConversationRules":
        """These rules with another's patterns, names and guards added, and its numbers where it gives any."""
        mine, added = dict(self), dict(more)
        joined = {
            name: tuple(dict.fromkeys((*value, *added[name]))) for name, value in mine.items() if type(value) is tuple
        }
        return self.model_copy(
            update={
                **joined,
                "guards": {**self.guards, **more.guards},
                "completed_chars": more.completed_chars or self.completed_chars,
            }
        )


PATTERN_LISTS: tuple[str, ...] = (
    "schema_errors",
    "access_errors",
    "upstream_errors",
    "bad_arguments",
    "timeouts",
    "placeholder_mentions",
    "tools_unavailable",
    "said_unavailable",
    "idle_commands",
    "outside_fetches",
    "outside_reasons",
)
"""The lists of `ConversationRules` that hold patterns; the first five are the classes of errors."""

ERROR_CLASSES = PATTERN_LISTS[:5]


def any_of(patterns: tuple[str, ...]) -> str:
    """One pattern that is found wherever one of these is; of none, one that is never found."""
    return "|".join(f"({pattern})" for pattern in patterns) or r"[^\d\D]"
