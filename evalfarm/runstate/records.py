"""What the ledger says: frozen records of one run's state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalfarm.contracts.budget import Budget
from evalfarm.contracts.run import QueueName
from evalfarm.contracts.verdict import Verdict
from evalfarm.runstate.budget import NOTHING, Spent, Terms, micro
from evalfarm.runstate.scripts import milliseconds

ClaimStatus = Literal["ok", "closed", "held", "cancelled", "deferred"]
Ending = Literal["counted", "late", "superseded", "retry", "infra_failed", "unknown"]
EventKind = Literal["counted", "late", "superseded", "retry", "infra_failed", "lost"]

MAX_ATTEMPTS = 3
"""Attempts of one trial before an infrastructure failure closes it."""

BACKOFF_S = 2.0
"""Seconds before a second attempt; each further one waits twice as long."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the ledger is told of a run besides its plan's size."""

    queue: QueueName = "interactive"
    together: int = 1  #: trials that travel in one message
    arms: tuple[int, ...] = ()  #: the arm of each trial of one repeat, in the plan's order; empty: there is one arm
    budget: Budget | None = None


PLAIN = Shape()


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim. Only `ok` allows work, as this attempt; every other status drops the message."""

    status: ClaimStatus
    attempt: int  #: the attempt to run (ok) or the one that holds the trial (held); else 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended."""

    index: int
    attempt: int
    verdict: Verdict
    row: bytes  #: rides on the event, if that closes the trial
    final: bool  #: no other attempt follows, which holds for every verdict on the plugin
    backoff_s: float  #: that the next attempt waits
    max_attempts: int  #: the last of which closes the trial whatever came of it; at most 200
    spent: Spent = NOTHING


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt at work, or one whose lease ran out."""

    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """What one round of reaping took back."""

    lost: int  #: leased and not renewed
    closed: int  #: of the lost, those closed as infra_failed because it was their last attempt


@dataclass(frozen=True, slots=True)
class Restored:
    """A result that object storage holds, for a ledger that is built anew."""

    index: int
    attempt: int  #: the counted one
    verdict: Verdict
    payloads: int  #: attempts up to this one whose traces are kept
    cost_usd: float | None  #: of all of these; None: not known


@dataclass(frozen=True, slots=True)
class Progress:
    """A run at one moment. Trials first: planned = closed + in_flight + waiting + those not yet handed out."""

    planned: int
    closed: int  #: passed + failed + inconclusive + infra_failed
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    in_flight: int  #: handed out or leased
    waiting: int  #: to be handed out again
    attempts: int  #: started, counted or not
    lost: int  #: attempts whose lease ran out, also if they came back
    returned: int  #: of the lost, those that came back and ended: attempts = payloads + lost - returned + at work
    late: int  #: attempts that ended after their trial was closed
    superseded: int  #: attempts that ended after a newer one had started
    redispatched: int  #: hand-outs that nobody claimed
    cancelled: bool
    rebuilding: bool  #: being built anew from object storage; nothing is handed out meanwhile


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a run's stream. `counted` and `infra_failed` close the trial, once per trial."""

    id: str
    kind: EventKind
    index: int
    attempt: int
    row: bytes | None  #: the serialised result; none: not a closing event, or a trial closed by the reaper


@dataclass(frozen=True, slots=True)
class ArchivePosition:
    """How far the stream is in object storage: so many segments, up to and including this event."""

    segments: int
    archived_id: str


def progress_of(
    counts: Mapping[bytes, bytes], meta: Mapping[bytes, bytes], *, in_flight: int, waiting: int
) -> Progress:
    """The progress that the hashes `cnt` and `meta` tell of."""

    def counted(name: str) -> int:
        return int(counts.get(name.encode(), 0))

    verdicts = dict.fromkeys(("passed", "failed", "inconclusive", "infra_failed"), 0)
    for name, count in counts.items():  # of each arm; a total beside them would be one more write for every trial
        if (verdict := name.decode().partition("|")[2]) in verdicts:
            verdicts[verdict] += int(count)
    asides = {name: counted(name) for name in ("attempts", "lost", "returned", "late", "superseded", "redispatched")}
    return Progress(
        planned=int(meta[b"size"]),
        closed=sum(verdicts.values()),
        in_flight=in_flight,
        waiting=waiting,
        cancelled=b"cancelled" in meta,
        rebuilding=b"rebuilding" in meta,
        **verdicts,
        **asides,
    )


def event_of(entry_id: bytes, fields: Mapping[bytes, bytes]) -> Event:
    """The event that an entry of the stream is."""
    kind: Any = fields[b"k"].decode()
    return Event(
        id=entry_id.decode(), kind=kind, index=int(fields[b"i"]), attempt=int(fields[b"n"]), row=fields.get(b"r")
    )


def told_of_claim(index: int, token: str, lease_s: float, terms: Terms) -> tuple[int | str, ...]:
    """What claim.lua is told."""
    return (index, token, milliseconds(lease_s), terms.arm, terms.model, terms.concurrency or 0)


def claim_of(reply: tuple[bytes, int]) -> Claim:
    """The claim that claim.lua answers."""
    status, attempt = reply
    return Claim(status=status.decode(), attempt=attempt)  # type: ignore[arg-type]  # claim.lua returns nothing else


def told_of_end(ended: Ended) -> tuple[int | str | bytes, ...]:
    """What end.lua is told. Raises ValueError for a verdict that no attempt ends with."""
    if ended.verdict == "not_run" or (ended.verdict != "infra_failed" and not ended.final):
        raise ValueError(f"an attempt cannot end as {ended.verdict}, final={ended.final}")
    cost: int | str = "" if ended.spent.cost_usd is None else micro(ended.spent.cost_usd)
    retries = (int(ended.final), milliseconds(ended.backoff_s), ended.max_attempts)
    return (ended.index, ended.attempt, ended.verdict, ended.row, *retries, ended.spent.arm, cost)


def ending_of(reply: bytes) -> Ending:
    """The ending that end.lua answers."""
    return reply.decode()  # type: ignore[return-value]  # end.lua returns nothing else
