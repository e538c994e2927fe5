"""Which answers of a run are at its judges, and which wait for them: a queue of leases, and no more.

What the judges said is in object storage, create-only, so this may be lost: it is opened anew from the judging's plan,
and an item whose opinions are stored already costs nothing. Two keys of a run, `f:{run}:` before each:

    due     sorted set  item -> when it may be handed out, ms: 0 at once, later: at work, or waiting for another attempt
    judges  hash        items, cost, unpriced; `attempt:ITEM`, `claimed:…` and `ended:ITEM:ATTEMPT`

An item that is at work and does not end is handed out again when its time is up: a lost worker costs that time.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import redis

from evalfarm.runstate.connection import answered

MOST_JUDGINGS = 3
"""Attempts at judging one answer before it stays INCONCLUSIVE."""

JUDGING_BACKOFF_S = 2.0
"""Seconds before the second; each further one waits twice as long."""

_SCRIPTS = ("open", "take", "end")


class Handed(NamedTuple):
    """An item that was handed out, and the attempt that this is."""

    item: int
    attempt: int


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """A judging at one moment."""

    items: int
    left: int  #: not done: at work, or waiting
    spent_usd: float  #: of all attempts whose cost is known
    unpriced: int  #: attempts whose cost is not


class JudgingQueue:
    """The judging of one run in Redis. Every method raises BrokerUnavailable when the server cannot be reached."""

    def __init__(self, client: redis.Redis, run: str) -> None:
        self._client = client
        self._keys = [f"f:{{{run}}}:due", f"f:{{{run}}}:judges"]
        self._scripts: dict[str, Any] = {name: client.register_script(_lua(name)) for name in _SCRIPTS}

    def open(self, items: int) -> bool:
        """Make `items` items wait. False: it is open already."""
        return bool(self._run_script("open", items))

    def take(self, concurrency: int, hold_s: float) -> list[Handed]:
        """Hand out what may be, so that no more than `concurrency` are at work; each for `hold_s` seconds."""
        flat = self._run_script("take", concurrency, round(hold_s * 1000), MOST_JUDGINGS)
        return [Handed(item, attempt) for item, attempt in zip(flat[::2], flat[1::2], strict=True)]

    def claim(self, handed: Handed) -> bool:
        """Whether this attempt is the newest, and nobody has begun it: of a message that comes twice, one counts."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.hget(self._keys[1], f"attempt:{handed.item}")
            pipe.hsetnx(self._keys[1], f"claimed:{handed.item}:{handed.attempt}", 1)
            newest, first = pipe.execute()
        return bool(first) and newest is not None and int(newest) == handed.attempt

    def end(self, handed: Handed, *, cost_usd: float | None, again: bool) -> None:
        """Say that an attempt is over. `again`: another is worth it, after a wait, if any are left."""
        wait = round(1000 * JUDGING_BACKOFF_S * 2 ** (handed.attempt - 1)) if again else ""
        cost = "" if cost_usd is None else repr(float(cost_usd))
        self._run_script("end", handed.item, handed.attempt, cost, wait, MOST_JUDGINGS)

    def drop_waiting(self) -> None:
        """Let go of everything that is not at work; what waits for another attempt goes when that is due."""
        with answered(self._client):
            seconds, micros = self._client.time()
            self._client.zremrangebyscore(self._keys[0], "-inf", seconds * 1000 + micros // 1000)

    def progress(self) -> JudgingProgress:
        """The judging now; all zero where it is not open."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.zcard(self._keys[0])
            pipe.hmget(self._keys[1], ["items", "cost", "unpriced"])
            left, (items, cost, unpriced) = pipe.execute()
        return JudgingProgress(int(items or 0), left, float(cost or 0), int(unpriced or 0))

    def close(self) -> None:
        """Drop its state."""
        with answered(self._client):
            self._client.unlink(*self._keys)

    def _run_script(self, name: str, *args: int | str) -> Any:
        with answered(self._client):
            return self._scripts[name](keys=self._keys, args=args)


@cache
def _lua(name: str) -> str:
    return (files("evalfarm") / "lua" / f"judging_{name}.lua").read_text()
