"""The simulated models by name: each one is a suite's base policy, made to behave in a known way."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from cases.policies.erratic import Erratic
from cases.policies.seen import Answer, Move, Policy, Seen, plain_question
from cases.policies.shell import Hostile, Idler
from evalfarm.errors import UnknownName

SLOW_DELAY_S = 1.5
"""How long `sim-slow` waits before every response: longer than any other part of a turn, short enough to test."""

HIGHEST_SLIP_CHANCE = 0.6
_PREFIX = "sim-"


def slip_chance(question: str) -> float:
    """The true probability, in [0, 0.6), that `sim-flaky` answers this question from memory.

    A function of the question alone (without a plugin's mention), uniform over questions.
    """
    text = plain_question(question)
    share = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    return HIGHEST_SLIP_CHANCE * share


@dataclass(frozen=True)
class Flaky:
    """Slips with the question's own chance: answers from memory without any call. Once decided per trial and turn."""

    base: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """The slip, or the base's move."""
        if draw.random() < slip_chance(seen.turn.question):
            return Answer("From what I remember, it is about the same as a year ago.", reasoning_tokens=8)
        return self.base.move(seen, draw)


@dataclass(frozen=True)
class Slow:
    """The base, every response `delay_s` seconds late."""

    base: Policy
    delay_s: float = SLOW_DELAY_S

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """The base's move, delayed."""
        return replace(self.base.move(seen, draw), delay_s=self.delay_s)


def _careful(base: Policy) -> Policy:
    return base


_BEHAVIOURS: dict[str, Callable[[Policy], Policy]] = {
    "sim-careful": _careful,
    "sim-flaky": Flaky,
    "sim-shell": Idler,
    "sim-hostile": Hostile,
    "sim-slow": Slow,
    "sim-erratic": Erratic,
}
SIMULATED_MODELS: tuple[str, ...] = tuple(_BEHAVIOURS)


def is_simulated(model: str) -> bool:
    """Whether a model's name says that it is a simulated one, known or not."""
    return model.startswith(_PREFIX)


def simulated_policy(model: str, base: Policy) -> Policy:
    """The policy of a simulated model over a suite's base. Raises UnknownName, listing the names."""
    try:
        behaviour = _BEHAVIOURS[model]
    except KeyError:
        names = ", ".join(SIMULATED_MODELS)
        raise UnknownName(f"there is no simulated model '{model}'", hint=f"the simulated models are {names}") from None
    return behaviour(base)
