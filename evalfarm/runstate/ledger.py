"""The ledger of one run: which trials are open, who works on them, what became of them."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from evalfarm.errors import UnknownName, UsageError
from evalfarm.runstate.budget import FREE, JUDGES, Money, Terms, judged_of, micro, money_of, told_of
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.farm import OPEN_RUNS
from evalfarm.runstate.records import (
    PLAIN,
    ArchivePosition,
    Claim,
    Ended,
    Ending,
    Event,
    Held,
    Progress,
    Reaped,
    Restored,
    Shape,
    claim_of,
    ending_of,
    event_of,
    progress_of,
    told_of_claim,
    told_of_end,
)
from evalfarm.runstate.scripts import Scripts, milliseconds
from evalfarm.runstate.watching import OpenRun, view_run

_REMEMBERED_S = 86_400.0  # that a run is sealed; longer than any attempt of it can take


class Ledger:
    """The state of one run in Redis. Cheap to make, safe to share between threads.

    Every method raises BrokerUnavailable when the server cannot be reached or refuses. A method that was
    cut off may be called again: what a first call did, a second does not do twice.
    """

    def __init__(self, client: Client, run: str) -> None:
        self.run = run
        self._client = client
        self._scripts = Scripts(client, run)
        self._keys = self._scripts.keys

    # ---- a run's beginning and end

    def create(self, size: int, plan_digest: str, shape: Shape = PLAIN, *, rebuilding: bool = False) -> bool:
        """Makes the state of a plan of `size` ≥ 1 trials. False: it was there, with the same plan.

        With `rebuilding` nothing is handed out before `end_rebuilding`. Raises UsageError when the run has another
        plan.
        """
        arms = array("H", shape.arms)
        if arms.itemsize == 2 and array("H", [1]).tobytes() == b"\x01\x00":
            arms.byteswap()  # as BITFIELD reads it: the high byte first
        told = (size, plan_digest, self.run, shape.queue, shape.together, arms.tobytes(), int(rebuilding))
        created = self._scripts.run("create", *told, *told_of(shape.budget), more_keys=(OPEN_RUNS,))
        if created < 0:
            raise UsageError(
                f"run {self.run!r} exists with another plan",
                hint="choose another name, or resume the run with the suite and options it was started with",
            )
        return bool(created)

    def cancel(self) -> None:
        """Stops the run: nothing more is handed out, claimed or renewed. Attempts at work may still end and count."""
        self._scripts.run("cancel")

    def delete(self) -> None:
        """Drops the state of a run that is sealed, and the run from the list of open ones."""
        self._scripts.run("drop", self.run, milliseconds(_REMEMBERED_S), more_keys=(OPEN_RUNS,))

    def restore(self, results: Sequence[Restored]) -> int:
        """Closes those of these trials that are open, for results that object storage holds; how many that were."""
        told: list[int | str] = []
        for one in results:
            cost = "" if one.cost_usd is None else micro(one.cost_usd)
            told += [one.index, one.attempt, one.verdict, one.payloads, cost]
        return int(self._scripts.run("restore", *told)) if told else 0

    def end_rebuilding(self, segments: int, first_open: int) -> bool:
        """Lets trials be handed out, from the first that is open. False: another process has done so."""
        return bool(self._scripts.run("rebuilt", segments, first_open))

    # ---- a trial's way

    def take(self, want: int, dispatch_s: float) -> list[int]:
        """Hands out up to `want` open trials, retries that are due first; nothing once cancelled.

        One that is not claimed within `dispatch_s` seconds may have been lost on its way: see `resend`.
        """
        return [int(index) for index in self._scripts.run("take", want, milliseconds(dispatch_s))]

    def lost_before(self, indices: Sequence[int]) -> frozenset[int]:
        """Those of these trials whose newest attempt was lost with its worker, which it may have killed itself."""
        if not indices:
            return frozenset()
        with answered(self._client):
            attempts = self._client.bitfield(self._keys["att"])
            for index in indices:
                attempts.get("u8", f"#{index}")
            numbers: Any = attempts.execute()
            begun = {index: number for index, number in zip(indices, numbers, strict=True) if number}
            if not begun:
                return frozenset()
            ends: Any = self._client.hmget(self._keys["past"], [f"{index}:{number}" for index, number in begun.items()])
        return frozenset(index for index, end in zip(begun, ends, strict=True) if end == b"lost")

    def claim(self, index: int, token: str, lease_s: float, terms: Terms = FREE) -> Claim:
        """Starts an attempt at a trial that was handed out, under a lease of `lease_s` seconds.

        `token` is unique to the claimant: with the same one, a repeated call answers the same attempt. A trial that
        `terms` or the budget keep from starting now is `deferred`: it waits to be handed out again. Where nothing is
        at work and the budget does not cover one more, the run is stopped as by `cancel`.
        """
        return claim_of(self._scripts.run("claim", *told_of_claim(index, token, lease_s, terms)))

    def renew(self, index: int, attempt: int, token: str, lease_s: float) -> bool:
        """Extends the lease to `lease_s` seconds from now. False: fenced or cancelled, stop spending.

        A lease that ran out, or that Redis forgot, is taken up again as long as no newer attempt has started.
        """
        return bool(self._scripts.run("renew", index, attempt, token, milliseconds(lease_s)))

    def end(self, ended: Ended) -> Ending:
        """Commits an attempt.

        A verdict on the plugin counts, unless the trial is closed (`late`) or a newer attempt has started
        (`superseded`). `infra_failed` waits for the next attempt (`retry`), or closes the trial. What was spent
        counts however the attempt ends. `unknown`: Redis has lost the run; commit again once it is rebuilt.
        Raises ValueError for a verdict that no attempt ends with.
        """
        return ending_of(self._scripts.run("end", *told_of_end(ended)))

    def end_and_claim(
        self, ended: Ended, index: int, token: str, lease_s: float, terms: Terms = FREE
    ) -> tuple[Ending, Claim]:
        """Commits an attempt as `end` does, then claims another trial as `claim` does, in one round trip."""
        told = (*told_of_end(ended), *told_of_claim(index, token, lease_s, terms))
        ending, claim = self._scripts.run("end_and_claim", *told)
        return ending_of(ending), claim_of(claim)

    def give_back(self, indices: Iterable[int], after_s: float = 0.0) -> None:
        """Has trials that were handed out, and that nobody begins, wait for their next hand-out."""
        self._scripts.run("give_back", milliseconds(after_s), *indices)

    def overdue(self, limit: int, lease_s: float) -> list[Held]:
        """Up to `limit` attempts whose lease ran out. Changes none of them: see `reap`.

        None for one more lease when nobody has asked for half of one: then workers could not renew either.
        """
        found = self._scripts.run("overdue", limit, milliseconds(lease_s))
        return [Held(index, attempt) for index, attempt in zip(found[::2], found[1::2], strict=True)]

    def reap(self, overdue: Sequence[Held], *, max_attempts: int, backoff_s: float) -> Reaped:
        """Takes back those of the attempts that are still overdue: a lost one is retried or closes its trial."""
        told = [word for one in overdue for word in (one.index, one.attempt)]
        return Reaped(*self._scripts.run("reap", max_attempts, milliseconds(backoff_s), *told))

    def resend(self, limit: int, beyond_s: float) -> int:
        """Has up to `limit` trials wait for another hand-out that nobody claimed, `beyond_s` after their time."""
        return int(self._scripts.run("resend", limit, milliseconds(beyond_s)))

    # ---- what is known

    def progress(self) -> Progress:
        """The run now. Raises UnknownName when Redis holds no state of it."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._keys["cnt"])
            pipe.hgetall(self._keys["meta"])
            for place in ("sent", "fl", "rq"):
                pipe.zcard(self._keys[place])
            counts, meta, sent, leased, waiting = pipe.execute()
        if b"size" not in meta:
            raise UnknownName(f"run {self.run!r} has no state in Redis", hint="`evalfarm runs` lists the runs")
        return progress_of(counts, meta, in_flight=sent + leased, waiting=waiting)

    def view(self) -> OpenRun | None:
        """All that is counted of the run now; None: Redis holds no state of it."""
        return view_run(self._client, self.run)

    def money(self, arms: int) -> Money:
        """What the run, which has so many arms, has spent and holds."""
        with answered(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(self._keys["cnt"])
            pipe.hmget(self._keys["meta"], ["budget", "exhausted"])
            pipe.hmget(f"f:{{{self.run}}}:judges", JUDGES)
            counts, (budget, exhausted), judges = pipe.execute()
        return money_of(counts, budget, judged_of(judges), exhausted=exhausted is not None, arms=arms)

    def events(self, after: str, count: int) -> list[Event]:
        """Up to `count` events after the one with this id (`0`: from the first), oldest first."""
        with answered(self._client):
            entries: Any = self._client.xrange(self._keys["out"], min=f"({after}", count=count)
        return [event_of(entry_id, fields) for entry_id, fields in entries]

    def kept_events(self) -> int:
        """How many events Redis holds; one of them may be archived."""
        with answered(self._client):
            held: Any = self._client.xlen(self._keys["out"])
        return int(held)

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

    def advance_archive(self, before: ArchivePosition, now: ArchivePosition) -> bool:
        """Notes further segments. False: another archiver has noted some, so read the position again."""
        return bool(self._scripts.run("archive", before.archived_id, now.segments, now.archived_id))
