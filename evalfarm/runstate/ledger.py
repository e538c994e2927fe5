"""The ledger of one run: which trials are open, who works on them, what became of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import redis

from evalfarm.contracts.verdict import Verdict
from evalfarm.errors import UnknownName, UsageError
from evalfarm.runstate.connection import answered
from evalfarm.runstate.farm import OPEN_RUNS

ClaimStatus = Literal["ok", "closed", "held", "cancelled"]
Ending = Literal["counted", "late", "superseded", "retry", "infra_failed"]
EventKind = Literal["counted", "late", "superseded", "retry", "infra_failed", "lost"]

MAX_ATTEMPTS = 3
"""Attempts of one trial before an infrastructure failure closes it."""

BACKOFF_S = 2.0
"""Seconds before a second attempt; each further one waits twice as long."""

_KEYS = ("win", "att", "fl", "own", "rq", "cnt", "past", "out", "meta")  # in the order of prelude.lua
_SCRIPTS = ("create", "take", "claim", "renew", "end", "reap", "cancel", "archive")


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim. Only `ok` allows work, as this attempt; every other status drops the message."""

    status: ClaimStatus
    attempt: int  #: the attempt to run (ok) or the one that holds the trial (held); else 0


@dataclass(frozen=True, slots=True)
class Reaped:
    """What one round of reaping found overdue."""

    lost: int  #: leased and not renewed
    redispatched: int  #: handed out and never claimed; costs no attempt
    closed: int  #: of the lost, those closed as infra_failed because it was their last attempt


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
    lost: int  #: attempts whose lease ran out, also if they came back and counted
    late: int  #: attempts that ended after their trial was closed
    superseded: int  #: attempts that ended after a newer one had started
    redispatched: int  #: hand-outs that nobody claimed
    cancelled: bool


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


class Ledger:
    """The state of one run in Redis. Cheap to make, safe to share between threads.

    Every method raises BrokerUnavailable when the server cannot be reached or refuses. A method that was
    cut off may be called again: what a first call did, a second does not do twice.
    """

    def __init__(self, client: redis.Redis, run: str) -> None:
        self.run = run
        self._client = client
        self._keys = {name: f"f:{{{run}}}:{name}" for name in _KEYS}
        self._scripts: dict[str, Any] = {name: client.register_script(_lua(name)) for name in _SCRIPTS}

    def create(self, size: int, plan_digest: str) -> bool:
        """Makes the state of a plan of `size` ≥ 1 trials. False: it was there, with the same plan.

        Raises UsageError when the run has another plan.
        """
        created = self._run_script("create", size, plan_digest, self.run, more_keys=(OPEN_RUNS,))
        if created < 0:
            raise UsageError(
                f"run {self.run!r} exists with another plan",
                hint="choose another name, or resume the run with the suite and options it was started with",
            )
        return bool(created)

    def take(self, want: int, dispatch_s: float) -> list[int]:
        """Hands out up to `want` open trials, retries that are due first; nothing once cancelled.

        One that is not claimed within `dispatch_s` seconds is taken for lost on its way, and reaped.
        """
        return [int(index) for index in self._run_script("take", want, _ms(dispatch_s))]

    def claim(self, index: int, token: str, lease_s: float) -> Claim:
        """Starts an attempt at a trial that was handed out, under a lease of `lease_s` seconds.

        `token` is unique to the claimant: with the same one, a repeated call answers the same attempt.
        """
        status, attempt = self._run_script("claim", index, token, _ms(lease_s))
        return Claim(status=status.decode(), attempt=attempt)

    def renew(self, index: int, attempt: int, token: str, lease_s: float) -> bool:
        """Extends the lease to `lease_s` seconds from now. False: fenced or cancelled, stop spending."""
        return bool(self._run_script("renew", index, attempt, token, _ms(lease_s)))

    def end(
        self,
        index: int,
        attempt: int,
        *,
        verdict: Verdict,
        row: bytes,
        final: bool,
        backoff_s: float,
        max_attempts: int,
    ) -> Ending:
        """Commits an attempt; `row` rides on the event if that closes the trial.

        A verdict on the plugin is always final and counts, unless the trial is closed (`late`) or a newer
        attempt has started (`superseded`). `infra_failed` waits `backoff_s` seconds for the next attempt
        (`retry`), or closes the trial when it is final or the last of `max_attempts` (at most 200).
        Raises ValueError for a verdict that no attempt ends with.
        """
        if verdict == "not_run" or (verdict != "infra_failed" and not final):
            raise ValueError(f"an attempt cannot end as {verdict}, final={final}")
        ending: bytes = self._run_script("end", index, attempt, verdict, row, int(final), _ms(backoff_s), max_attempts)
        return ending.decode()  # type: ignore[return-value]  # end.lua returns nothing else

    def reap(self, limit: int, *, max_attempts: int, backoff_s: float) -> Reaped:
        """Takes back up to `limit` trials whose deadline has passed: a lost attempt is retried or closes its trial."""
        return Reaped(*self._run_script("reap", limit, max_attempts, _ms(backoff_s)))

    def cancel(self) -> None:
        """Stops the run: nothing more is handed out, claimed or renewed. Attempts at work may still end and count."""
        self._run_script("cancel")

    def progress(self) -> Progress:
        """The run now. Raises UnknownName when Redis holds no state of it."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._keys["cnt"])
            pipe.hgetall(self._keys["meta"])
            pipe.zcard(self._keys["fl"])
            pipe.zcard(self._keys["rq"])
            counts, meta, in_flight, waiting = pipe.execute()
        if not meta:
            raise UnknownName(f"run {self.run!r} has no state in Redis", hint="`evalfarm runs` lists the runs")
        return _progress(counts, meta, in_flight=in_flight, waiting=waiting)

    def events(self, after: str, count: int) -> list[Event]:
        """Up to `count` events after the one with this id (`0`: from the first), oldest first."""
        with answered(self._client):
            entries: Any = self._client.xrange(self._keys["out"], min=f"({after}", count=count)
        return [_event(entry_id, fields) for entry_id, fields in entries]

    def trim(self, before_id: str) -> None:
        """Drops the events older than this id."""
        with answered(self._client):
            self._client.xtrim(self._keys["out"], minid=before_id, approximate=False)

    def archive_position(self) -> ArchivePosition:
        """How far the archiver came: no segment and the id `0` at first."""
        with answered(self._client):
            stored: Any = self._client.hmget(self._keys["meta"], ["segments", "archived_id"])
        segments, archived_id = stored
        return ArchivePosition(segments=int(segments or 0), archived_id=(archived_id or b"0").decode())

    def advance_archive(self, position: ArchivePosition) -> bool:
        """Notes one more segment. False: another archiver has noted it, so read the position again."""
        return bool(self._run_script("archive", position.segments, position.archived_id))

    def delete(self) -> None:
        """Drops the run's state, and the run from the list of open ones."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.unlink(*self._keys.values())
            pipe.srem(OPEN_RUNS, self.run)
            pipe.execute()

    def _run_script(self, name: str, *args: int | str | bytes, more_keys: tuple[str, ...] = ()) -> Any:
        with answered(self._client):
            return self._scripts[name](keys=[*self._keys.values(), *more_keys], args=args)


@cache
def _lua(name: str) -> str:
    folder = files("evalfarm") / "lua"
    return (folder / "prelude.lua").read_text() + (folder / f"{name}.lua").read_text()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _progress(counts: Mapping[bytes, bytes], meta: Mapping[bytes, bytes], *, in_flight: int, waiting: int) -> Progress:
    def counted(name: str) -> int:
        return int(counts.get(name.encode(), 0))

    verdicts = {name: counted(name) for name in ("passed", "failed", "inconclusive", "infra_failed")}
    asides = {name: counted(name) for name in ("attempts", "lost", "late", "superseded", "redispatched")}
    return Progress(
        planned=int(meta[b"size"]),
        closed=sum(verdicts.values()),
        in_flight=in_flight,
        waiting=waiting,
        cancelled=b"cancelled" in meta,
        **verdicts,
        **asides,
    )


def _event(entry_id: bytes, fields: Mapping[bytes, bytes]) -> Event:
    kind: Any = fields[b"k"].decode()
    return Event(
        id=entry_id.decode(), kind=kind, index=int(fields[b"i"]), attempt=int(fields[b"n"]), row=fields.get(b"r")
    )
