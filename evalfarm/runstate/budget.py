"""What a run has cost, what is reserved for what is at work, and the most that it may cost.

Amounts are whole micro-USD in Redis. In the run's `cnt`: `cost` of every attempt that ended, counted or not,
`cost:{arm}` of each arm, `most:{arm}` the dearest attempt of an arm, `reserved` for attempts that started and have not
ended, `unpriced:{arm}` attempts that ended at a cost nobody knows. In its `meta`: `budget`, `guess:{arm}` for an arm
of which nothing has ended, `judging` for the judging of one answer and `judging:trial` for that of one trial on
average, `exhausted`. An arm's number is its place in the plan. What judges cost is in the run's `judges`, and counts
against the same budget.
"""

import math
from collections.abc import Mapping, Sequence
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
class Judged:
    """What a run's judges took, in USD; nothing once its judging is over."""

    spent_usd: float = 0.0  #: by every attempt at judging that ended
    reserved_usd: float = 0.0  #: for those at work, and for those that were lost


NO_JUDGES = Judged()


@dataclass(frozen=True, slots=True)
class Money:
    """A run's money at one moment, in USD."""

    budget_usd: float | None
    spent_usd: float  #: by every attempt that ended, counted or not
    reserved_usd: float  #: for those at work, and for those that were lost: what they spent is not known
    exhausted: bool  #: the budget does not cover one more trial, so that the run ended
    arms_usd: tuple[float | None, ...]  #: spent by arm, in the plan's order; None: what one attempt cost is not known
    judges: Judged = NO_JUDGES  #: besides: of the same budget, and in no other figure

    @property
    def left_usd(self) -> float | None:
        """What of the budget is neither spent nor set aside; None: there is no budget."""
        if self.budget_usd is None:
            return None
        taken = self.spent_usd + self.reserved_usd + self.judges.spent_usd + self.judges.reserved_usd
        return self.budget_usd - taken


FREE = Terms()
NOTHING = Spent()
JUDGES = ("cost", "reserved")
"""The fields of a run's `judges` that its money is told by."""


def told_of(budget: Budget | None) -> list[str | int]:
    """What `meta` is told of a run's budget: names and whole micro-USD in turn."""
    if budget is None:
        return []
    told: list[str | int] = ["budget", micro(budget.max_cost_usd)]
    if budget.judging_usd:
        of_answer, of_trial = budget.judging_usd, budget.judging_usd * budget.judged_share
        told += ["judging", math.ceil(of_answer * _MICRO), "judging:trial", math.ceil(of_trial * _MICRO)]
    for arm, usd in enumerate(budget.trial_usd):
        told += [f"guess:{arm}", math.ceil(usd * _MICRO)]
    return told


def judged_of(fields: Sequence[bytes | None]) -> Judged:
    """What a run's judges took, by the fields JUDGES of its `judges`."""
    spent, reserved = (int(amount or 0) / _MICRO for amount in fields)
    return Judged(spent, reserved)


def money_of(
    counts: Mapping[bytes, bytes], budget: bytes | None, judges: Judged, *, exhausted: bool, arms: int
) -> Money:
    """A run's money by its `cnt` and its budget, as they are stored."""
    lost = _count(counts, "lost") > _count(counts, "returned")
    return Money(
        budget_usd=None if budget is None else int(budget) / _MICRO,
        spent_usd=_count(counts, "cost") / _MICRO,
        reserved_usd=_count(counts, "reserved") / _MICRO,
        exhausted=exhausted,
        arms_usd=tuple(_arm_usd(counts, arm, lost=lost) for arm in range(arms)),
        judges=judges,
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
