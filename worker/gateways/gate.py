"""The gate that every model request passes on its way out: the farm's limits for its model, and its pauses.

Limits are a courtesy to the provider, and never a verdict: while Redis is out of reach, requests pass unchecked.
"""

import asyncio
import logging
from dataclasses import dataclass

from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import UNLIMITED, Throttle

log = logging.getLogger(__name__)

#: Of a request whose answer is yet to come: what a short answer with its reasoning takes.
OUTPUT_TOKENS = 500
#: Characters of JSON that make a token, as a rule.
_CHARACTERS_PER_TOKEN = 4


class NoRoom(Exception):
    """Raised when a model's limits leave no room for a request within the time that it may wait."""


@dataclass(frozen=True)
class Gate:
    """The limits of one model; without a throttle it is always open."""

    model: str = ""
    throttle: Throttle | None = None

    @property
    def most_waited_s(self) -> float:
        """Seconds that one attempt may wait in all."""
        limits = UNLIMITED if self.throttle is None else self.throttle.limits.of(self.model)
        return limits.most_waited_s

    async def book(self, tokens: int, longest_s: float) -> float:
        """Take a place for a request: seconds until it may be sent, or less than 0 where there is none in time."""
        if self.throttle is None:
            return 0.0
        if not self.throttle.must_ask(self.model):
            return self.throttle.book(self.model, tokens, longest_s)
        try:
            return await asyncio.to_thread(self.throttle.book, self.model, tokens, longest_s)
        except BrokerUnavailable:
            log.warning("cannot ask for the limits of %s; going on", self.model)
            return 0.0

    async def paused_s(self) -> float:
        """Seconds for which nobody may ask this model."""
        if self.throttle is None:
            return 0.0
        try:
            return await asyncio.to_thread(self.throttle.paused_s, self.model)
        except BrokerUnavailable:
            return 0.0

    async def limited(self, retry_after_s: float | None) -> None:
        """The provider answered 429: tell the farm."""
        if self.throttle is not None:
            try:
                await asyncio.to_thread(self.throttle.pause, self.model, retry_after_s)
            except BrokerUnavailable:
                log.warning("cannot tell the farm that %s is limited", self.model)

    async def correct(self, estimated: int, taken: int | None) -> None:
        """Say how many tokens a request took; None: not known, so that the estimate stays."""
        if self.throttle is None or taken is None or self.throttle.limits.of(self.model).tokens_per_minute is None:
            return
        try:
            await asyncio.to_thread(self.throttle.correct, self.model, taken - estimated)
        except BrokerUnavailable:
            log.warning("cannot correct the tokens of %s", self.model)


OPEN = Gate()


def estimated_tokens(body: bytes) -> int:
    """About how many tokens a request takes, its answer included."""
    return len(body) // _CHARACTERS_PER_TOKEN + OUTPUT_TOKENS
