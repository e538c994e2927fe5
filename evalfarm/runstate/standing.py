"""How far a run is, arm by arm, from what the ledger counts: reads Redis once, changes nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import VERDICTS
from evalfarm.errors import UnknownName
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.records import Progress, progress_of
from evalfarm.runstate.scripts import KEYS

_SLOT_S, _SLOTS = 10, 6  # as prelude.lua keeps the pace


@dataclass(frozen=True, slots=True)
class ArmStanding:
    """One arm of a run at one moment. planned = closed + in_flight + waiting."""

    planned: int
    closed: dict[str, int]  #: by verdict
    at_work: int  #: leased
    handed_out: int  #: in a message that nobody claimed yet
    failures: dict[str, int]  #: attempts that infrastructure ended, counted or tried again, by what broke

    @property
    def in_flight(self) -> int:
        """Trials handed out or at work."""
        return self.at_work + self.handed_out

    @property
    def waiting(self) -> int:
        """Trials that are yet to be handed out, for the first time or again."""
        return self.planned - sum(self.closed.values()) - self.in_flight


@dataclass(frozen=True, slots=True)
class Standing:
    """A run at one moment."""

    progress: Progress
    arms: tuple[ArmStanding, ...]  #: in the plan's order
    per_second: float  #: trials closed, over the last minute or since the run was opened

    @property
    def to_go_s(self) -> float | None:
        """Seconds until the last trial closes at this rate; None: nothing was closed in the last minute."""
        left = self.progress.planned - self.progress.closed
        return left / self.per_second if self.per_second else (0.0 if not left else None)


def standing_of(client: Client, plan: Plan) -> Standing:
    """The run of a plan now. Raises UnknownName when Redis holds no state of it, BrokerUnavailable."""
    keys = {name: f"f:{{{plan.run}}}:{name}" for name in KEYS}
    with answered(client), client.pipeline(transaction=True) as pipe:
        pipe.time()
        for name in ("cnt", "meta", "pace"):
            pipe.hgetall(keys[name])
        for name in ("sent", "fl"):
            pipe.zrange(keys[name], 0, -1)
        pipe.zcard(keys["rq"])
        (seconds, micros), counts, meta, pace, sent, leased, waiting = pipe.execute()
    if b"size" not in meta:
        raise UnknownName(f"run {plan.run!r} has no state in Redis", hint=f"`evalfarm resume {plan.run}` rebuilds it")
    age_s = seconds + micros / 1e6 - int(meta[b"created"]) / 1000
    return Standing(
        progress=progress_of(counts, meta, in_flight=len(sent) + len(leased), waiting=waiting),
        arms=_arms(plan, counts, sent, leased),
        per_second=pace_of(pace, seconds + micros / 1e6, age_s),
    )


def pace_of(slots: Mapping[bytes, bytes], now_s: float, age_s: float) -> float:
    """Trials closed per second, by the counts of ten seconds each that reach back over a minute at most."""
    first = int(now_s // _SLOT_S) - _SLOTS + 1
    closed = sum(int(count) for slot, count in slots.items() if int(slot) >= first)
    return closed / max(1.0, min(age_s, now_s - first * _SLOT_S))


def _arms(
    plan: Plan, counts: Mapping[bytes, bytes], sent: Sequence[bytes], leased: Sequence[bytes]
) -> tuple[ArmStanding, ...]:
    order = plan.arms_in_order
    at_work, handed_out = (Counter(order[int(index) % len(order)] for index in place) for place in (leased, sent))
    closed: list[dict[str, int]] = [{} for _ in plan.arms]
    failures: list[dict[str, int]] = [{} for _ in plan.arms]
    for name, count in counts.items():
        arm, bar, what = name.decode().partition("|")
        if bar and what in VERDICTS:
            closed[int(arm)][what] = int(count)
        elif bar:
            failures[int(arm)][what.removeprefix("infra:")] = int(count)
    planned = len(plan.cases) * plan.repeats
    return tuple(
        ArmStanding(planned, closed[arm], at_work[arm], handed_out[arm], dict(sorted(failures[arm].items())))
        for arm in range(len(plan.arms))
    )
