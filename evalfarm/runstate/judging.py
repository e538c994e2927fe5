"""Which answers of a run are at its judges, and which wait for them: a queue of leases, and no more.

What the judges said is in object storage, create-only, so this may be lost: it is opened anew from the judging's plan
and from what is kept, and an item whose opinions are stored already costs nothing. An item at its judges takes a place
of each judge's model, as a trial does of its own, and money is set aside for it. Keys of a run, `f:{run}:` before each:

    due     sorted set  item -> when it may be handed out, ms: 0 at once, later: at work, or waiting for another attempt
    judges  hash        items, cost (micro-USD), reserved (likewise: set aside for what is at work or was lost), dearest
                        (of one attempt), most, unpriced, spent (why no more are asked: the `run`'s money, or the
                        `judges`' own); `attempt:ITEM`, `claimed:ITEM:ATTEMPT` (what was set aside), `ended:…`,
                        `sent:ITEM` (when, ms: handed out, and not heard of since)
    judged  hash        item -> attempt at work

A hand-out that nobody claims is sent again under its number. An item that is at work and is not renewed is handed out
again when its time is up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

from evalfarm.runstate.budget import judged_of, micro
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.scripts import Scripts, milliseconds

MOST_JUDGINGS = 3
"""Attempts at judging one answer before it stays INCONCLUSIVE."""

JUDGING_BACKOFF_S = 2.0
"""Seconds before the second; each further one waits twice as long."""

NO_CAPS: Mapping[str, int | None] = {}


class Handed(NamedTuple):
    """An item that was handed out, and the attempt that this is."""

    item: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Kept:
    """An attempt at judging an item whose opinions are stored."""

    item: int
    attempt: int
    cost_usd: float | None
    done: bool  #: nothing more is to be asked about the item


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """A judging at one moment."""

    items: int
    left: int  #: not done: at work, or waiting
    spent_usd: float  #: of all attempts that ended; one whose cost is not known counts as what was set aside for it
    unpriced: int  #: attempts whose cost is not known
    reserved_usd: float = 0.0  #: for those at work, and for those that were lost
    stopped_by: Literal["run", "judges"] | None = None  #: whose money does not cover one more answer


class JudgingQueue:
    """The judging of one run in Redis. Every method raises BrokerUnavailable when the server cannot be reached."""

    def __init__(self, client: Client, run: str, caps: Mapping[str, int | None] = NO_CAPS) -> None:
        """`caps`: for who claims and ends: each judge's model, with the most of it that may be at work in the farm."""
        self._client = client
        self._keys = [f"f:{{{run}}}:{name}" for name in ("due", "judges", "judged")]
        self._caps = [told for model, cap in caps.items() for told in (model, cap or 0)]
        self._scripts = Scripts(client, run, "judging")

    def open(self, items: int, kept: Sequence[Kept] = (), most_usd: float | None = None) -> bool:
        """Make `items` items wait, but for those that `kept` tells to be done. False: it is open already.

        `most_usd`: what the judges may cost, whatever the run's own budget leaves.
        """
        told: list[int | str] = []
        for one in kept:
            told += [one.item, one.attempt, _micro(one.cost_usd), int(one.done)]
        return bool(self._scripts.run("open", items, _micro(most_usd), *told))

    @property
    def is_open(self) -> bool:
        """Whether Redis holds the judging."""
        with answered(self._client):
            return bool(self._client.exists(self._keys[1]))

    def take(self, concurrency: int, hold_s: float, lost_s: float | None = None) -> list[Handed]:
        """Hand out what may be, so that no more than `concurrency` are out; each to be claimed within `hold_s` s.

        `lost_s`: one that was handed out so long ago and not claimed is handed out again already; none: after `hold_s`.
        """
        hold_ms, lost_ms = milliseconds(hold_s), milliseconds(hold_s if lost_s is None else lost_s)
        flat = self._scripts.run("take", concurrency, hold_ms, MOST_JUDGINGS, lost_ms)
        return [Handed(item, attempt) for item, attempt in zip(flat[::2], flat[1::2], strict=True)]

    def claim(self, handed: Handed, hold_s: float) -> bool:
        """Whether to begin this attempt, which is then held for `hold_s` s: it is the newest, and nobody has begun it.

        One that a judge's limits or the money have no room for now is handed out again. Where no money is left for it
        and none is at work, no more are asked.
        """
        return bool(self._scripts.run("claim", *handed, milliseconds(hold_s), *self._caps))

    def renew(self, handed: Handed, hold_s: float) -> None:
        """Hold an attempt that is at work for another `hold_s` s."""
        self._scripts.run("renew", *handed, milliseconds(hold_s), *self._caps)

    def end(self, handed: Handed, *, cost_usd: float | None, again: bool) -> None:
        """Say that an attempt is over. `again`: another is worth it, after a wait, if any are left."""
        wait = milliseconds(JUDGING_BACKOFF_S * 2 ** (handed.attempt - 1)) if again else ""
        self._scripts.run("end", *handed, _micro(cost_usd), wait, MOST_JUDGINGS, *self._caps)

    def progress(self) -> JudgingProgress:
        """The judging now; all zero where it is not open."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.zcard(self._keys[0])
            pipe.hmget(self._keys[1], ["items", "cost", "unpriced", "reserved", "spent"])
            left, (items, cost, unpriced, reserved, spent) = pipe.execute()
        paid = judged_of([cost, reserved])
        why = None if spent is None else cast("Literal['run', 'judges']", spent.decode())
        return JudgingProgress(int(items or 0), left, paid.spent_usd, int(unpriced or 0), paid.reserved_usd, why)

    def close(self) -> None:
        """Drop its state."""
        with answered(self._client):
            self._client.unlink(*self._keys)


def _micro(usd: float | None) -> int | str:
    return "" if usd is None else micro(usd)
