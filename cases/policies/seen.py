"""What a simulated model is shown, and the moves it may answer with.

`Seen` holds what any model at this place would be sent, and nothing else: no expectation, no case id.
A policy is a pure function from it, and from a seeded draw, to one move.
"""

import json
import random
import re
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue

_NO_NAME = re.compile("[^A-Za-z0-9_]")
_MENTION = re.compile(r"\[@[^\]]*\]\([a-z][a-z0-9+.-]*://[^)]*\)")


@dataclass(frozen=True)
class SeenTool:
    """One function that the model is offered; `namespace` is None where it stands alone."""

    name: str
    namespace: str | None
    description: str
    parameters: dict[str, Any]  #: JSON schema


@dataclass(frozen=True)
class SeenResult:
    """The output of one call, with the call it answers; `arguments` is text where they were no JSON object."""

    name: str
    arguments: dict[str, Any] | str
    output: str

    @property
    def data(self) -> JsonValue:
        """The output's JSON value, or None where it holds none.

        Codex puts `Wall time: … seconds` and `Output:` on lines of their own before a tool's JSON.
        """
        for text in (self.output, self.output.partition("Output:\n")[2]):
            try:
                value: JsonValue = json.loads(text)
            except (ValueError, RecursionError):
                continue
            return value
        return None


@dataclass(frozen=True)
class SeenTurn:
    """A question, the results of the calls made for it, and what was said in the end (empty: nothing yet)."""

    question: str
    results: tuple[SeenResult, ...] = ()
    answer: str = ""

    def results_of(self, tool: str) -> tuple[SeenResult, ...]:
        """The results of one tool's calls, in order, under whichever of its names the calls were made."""
        return tuple(result for result in self.results if plain_tool(result.name) == plain_tool(tool))


@dataclass(frozen=True)
class Seen:
    """One request as the model sees it.

    `instructions` is all text that instructs it: the request's own, every system and developer message, and
    the descriptions of namespaces, which is where Codex puts what a server says about itself.
    `tries` is how often this very request was sent before and not answered. No model sees that; a provider
    that fails at random depends on it.
    """

    model: str
    instructions: str
    tools: tuple[SeenTool, ...]
    turns: tuple[SeenTurn, ...]
    tries: int = 0

    @property
    def turn(self) -> SeenTurn:
        """The turn to answer."""
        return self.turns[-1] if self.turns else SeenTurn("")

    def tool(self, name: str) -> SeenTool | None:
        """The first tool of this bare name, in whatever namespace; else the first that Codex would show as it."""
        exact = (tool for tool in self.tools if tool.name == name)
        alike = (tool for tool in self.tools if plain_tool(tool.name) == plain_tool(name))
        return next(exact, None) or next(alike, None)


@dataclass(frozen=True)
class Call:
    """One tool call, by the tool's bare name. Arguments given as text are sent as they are."""

    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class Calls:
    """Call these tools and see their results before going on."""

    calls: tuple[Call, ...]
    reasoning_tokens: int = 0
    delay_s: float = 0.0


@dataclass(frozen=True)
class Answer:
    """Say this and end the turn."""

    text: str
    reasoning_tokens: int = 0
    delay_s: float = 0.0


@dataclass(frozen=True)
class Fault:
    """Fail as a provider fails: an HTTP error, or (`cut`) an answer whose connection ends half-way."""

    status: int = 500
    retry_after_s: float | None = None  #: sent as `Retry-After`
    cut: bool = False
    reasoning_tokens: int = 0
    delay_s: float = 0.0


Move = Calls | Answer | Fault


class Policy(Protocol):
    """A simulated model's behaviour. Pure: equal arguments give equal moves.

    `draw` starts anew in every request and is seeded by the trial and the questions so far, so what is drawn
    first is the same in every request of a turn, under retries, in every harness and every variant.
    """

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """The next move."""
        ...


def plain_tool(name: str) -> str:
    """A tool's name as Codex shows it: every character but letters and digits an underscore."""
    return _NO_NAME.sub("_", name)


def plain_question(text: str) -> str:
    """A question without the product's mention of a plugin (`[@P](plugin://P@m)`), its spaces made single."""
    return " ".join(_MENTION.sub(" ", text).split())
