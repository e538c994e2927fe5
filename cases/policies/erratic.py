"""A provider on a bad day: errors, cut streams, malformed arguments, empty answers."""

import json
import random
from dataclasses import dataclass, replace

from cases.policies.seen import Answer, Call, Calls, Fault, Move, Policy, Seen

RATE_LIMITED = 0.12
SERVER_ERROR = 0.08
CUT = 0.06
GARBLED = 0.08
RETRY_AFTER_S = 1.0
"""Seconds in `Retry-After`: the smallest whole number, which is all that the header's standard form allows."""


@dataclass(frozen=True)
class Erratic:
    """Draws anew for every request and every try of it, so a retry may succeed.

    Of all responses 12 % are a 429 with `Retry-After`, 8 % a 500, and 6 % are cut half-way; 8 % are garbled:
    arguments that are no JSON, or an answer with no text.
    """

    base: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """A fault, a garbled move of the base's, or the base's move."""
        luck = random.Random(f"{draw.getrandbits(63)}/{len(seen.turn.results)}/{seen.tries}").random()
        if luck < RATE_LIMITED:
            return Fault(429, retry_after_s=RETRY_AFTER_S)
        if luck < RATE_LIMITED + SERVER_ERROR:
            return Fault(500)
        if luck < RATE_LIMITED + SERVER_ERROR + CUT:
            return Fault(cut=True)
        move = self.base.move(seen, draw)
        return _garbled(move) if luck < RATE_LIMITED + SERVER_ERROR + CUT + GARBLED else move


def _garbled(move: Move) -> Move:
    match move:
        case Calls():
            return replace(move, calls=tuple(Call(call.name, _cut_short(call.arguments)) for call in move.calls))
        case Answer():
            return replace(move, text="")
        case Fault():
            return move


def _cut_short(arguments: dict[str, object] | str) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return text[:-1]
