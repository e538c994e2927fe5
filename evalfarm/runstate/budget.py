"""What a run has cost, what is reserved for what is at work, and the most that it may cost.

Amounts are whole micro-USD in Redis. In the run's `cnt`: `cost` of every attempt that ended, counted or not,
`cost:{arm}` of each arm, `most:{arm}` the dearest attempt of an arm, `reserved` for attempts that started and have not
ended, `unpriced:{arm}` attempts that ended at a cost nobody knows. In its `meta`: `budget`, `guess:{arm}` for an arm
of which nothing has ended, `exhausted`. An arm's number is its place in the plan.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from evalfarm.contracts.budget import Budget

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a trial starts: its arm, whose money it is, and its model's cap."""

    arm: int = 0
    model: str = ""  #: empty: no model takes part
    concurrency: int | None = None  #: the most trials of this model in flight, over all runs


@dataclass(frozen=True, slots=True)
class Spent:
    """What an attempt cost; None: nobody knows, and then what was reserved for it stays spent."""

    arm: int = 0
    cost_usd: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Money:
    """A run's money at one moment, in USD."""

    budget_usd: float | None
    spent_usd: float  #: by every attempt that ended, counted or not
    reserved_usd: float  #: for those at work, and for those that were lost: what they spent is not known
    exhausted: bool  #: the budget does not cover one more trial, so that the run ended
    arms_usd: tuple[float | None, ...]  #: spent by arm, in the plan's order; None: what one attempt cost is not known


FREE = Terms()
NOTHING = Spent()


def told_of(budget: Budget | None) -> list[str | int]:
    """What `meta` is told of a run's budget: names and whole micro-USD in turn."""
    if budget is None:
        return []
    told: list[str | int] = ["budget", micro(budget.max_cost_usd)]
    for arm, usd in enumerate(budget.trial_usd):
        told += [f"guess:{arm}", math.ceil(usd * _MICRO)]
    return told


def money_of(counts: Mapping[bytes, bytes], budget: bytes | None, *, exhausted: bool, arms: int) -> Money:
    """A run's money by its `cnt` and its budget, as they are stored."""
    lost = _count(counts, "lost") > _count(counts, "returned")
    return Money(
        budget_usd=None if budget is None else int(budget) / _MICRO,
        spent_usd=_count(counts, "cost") / _MICRO,
        reserved_usd=_count(counts, "reserved") / _MICRO,
        exhausted=exhausted,
        arms_usd=tuple(_arm_usd(counts, arm, lost=lost) for arm in range(arms)),
    )


def _arm_usd(counts: Mapping[bytes, bytes], arm: int, *, lost: bool) -> float | None:
    usd = _count(counts, f"cost:{arm}") / _MICRO
    if _count(counts, f"unpriced:{arm}") or (lost and usd and _count(counts, f"{arm}|infra:lost")):
        return None
    return usd


def micro(usd: float) -> int:
    """Whole micro-USD."""
    return round(usd * _MICRO)


def _count(counts: Mapping[bytes, bytes], name: str) -> int:
    return int(counts.get(name.encode(), 0))
