"""Asking a judge: until a reply can be used, a bounded number of times. What the network did is the asker's to mend."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from evalfarm.contracts.answer import Rubric
from evalfarm.contracts.judging import Exhibit, Opinion, PairOpinion, Preference
from evalfarm.contracts.run import ModelRequest
from graders.judge.prompt import pair_request, single_request
from graders.judge.reply import Unusable, read_labels, read_preference

MOST_REPLIES = 3
"""Replies asked for before the judge has failed. An outage ends it at once: the asker has tried that again already."""

T = TypeVar("T")


@dataclass(frozen=True)
class Heard:
    """What came of one request, over all its tries."""

    response: Mapping[str, Any] | None  #: None: none came
    failure: str | None  #: why none came
    requests: tuple[ModelRequest, ...]
    cost_usd: float | None


class Ask(Protocol):
    """Sends one request to the provider, with its bounded retries; never raises for the provider's faults.

    `seed` is for a simulated judge: equal seeds, equal replies.
    """

    def __call__(self, request: dict[str, Any], seed: int) -> Awaitable[Heard]:
        """What came of it."""
        ...


@dataclass(frozen=True)
class Judge:
    """A model that judges, and the way to it."""

    model: str
    ask: Ask


async def judge_answer(judge: Judge, rubric: Rubric, exhibit: Exhibit, seed: int) -> Opinion:
    """One judge's opinion of one exhibit. Never raises for what the judge does."""
    heard: list[Heard] = []
    request = single_request(judge.model, rubric, exhibit)
    labels, failure = await _usable(judge, request, seed, heard, lambda reply: read_labels(reply, rubric, exhibit))
    costs = [one.cost_usd for one in heard]
    return Opinion(
        judge=judge.model,
        labels=labels or (),
        failure=failure,
        outage=heard[-1].response is None,
        replies=len(heard),
        requests=tuple(request for one in heard for request in one.requests),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


async def judge_pair(
    judge: Judge, rubric: Rubric, one: Exhibit, other: Exhibit, seed: int
) -> tuple[PairOpinion, tuple[Heard, ...]]:
    """Which of two answers to one conversation is better, asked in both orders; and what came of every request."""
    heard: list[Heard] = []

    async def prefer(first: Exhibit, second: Exhibit) -> Preference:
        request = pair_request(judge.model, rubric, first, second)
        chosen, failure = await _usable(
            judge, request, seed, heard, lambda reply: read_preference(reply, first, second)
        )
        return Preference(chosen=chosen, failure=failure)

    return PairOpinion(in_order=await prefer(one, other), swapped=await prefer(other, one)), tuple(heard)


async def _usable(
    judge: Judge, request: dict[str, Any], seed: int, heard: list[Heard], read: Callable[[Mapping[str, Any]], T]
) -> tuple[T | None, str | None]:
    """The first reply that can be used, or why there is none; everything that was heard goes to `heard`."""
    problem = ""
    for number in range(MOST_REPLIES):
        heard.append(await judge.ask(request, seed + number))
        response = heard[-1].response
        if response is None:
            return None, heard[-1].failure or "no answer came"
        try:
            return read(response), None
        except Unusable as unusable:
            problem = str(unusable)
    return None, f"none of {MOST_REPLIES} replies could be used; the last: {problem}"
