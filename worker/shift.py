"""A worker's shift: take the trials of a message one by one through claim, attempt, store, grade and commit.

A message is only a hint. The ledger's claim decides whether there is anything to do, its attempt number fences
what is written, and a lease renewed while the attempt runs tells everyone else to keep off.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from evalfarm.contracts.run import Telemetry, Trace, Trial
from evalfarm.contracts.verdict import Result
from evalfarm.errors import BrokerUnavailable, InfrastructureError, StoreUnavailable
from evalfarm.runstate import Client, Ledger, terms_of
from worker.attempt import observe
from worker.commit import STORE_PATIENCE_S, commit, commit_now, keep, keep_now
from worker.redaction import redacted
from worker.repeats import checked
from worker.station import Prepared, Station

log = logging.getLogger(__name__)

#: Judges a trace of a run; handed in, because a worker never judges.
Grade = Callable[[Prepared, Trace], Result]

#: Trials with a model that one process has in work at a time.
SIDE_BY_SIDE = 16
#: Seconds after which what a message holds and is not begun goes back: others may be free to run it.
BEGIN_WITHIN_S = 10.0


@dataclass(frozen=True)
class Shift:
    """One worker process at work."""

    station: Station
    redis: Client
    grade: Grade
    stopping: Callable[[], bool] = lambda: False  #: whether the worker takes no more trials
    store_patience_s: float = STORE_PATIENCE_S  #: how long a store that refuses a trace is asked again
    #: Of its own: however many wait for the store, a lease is renewed.
    renewing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "renewing"))

    @property
    def _lease_s(self) -> float:
        """How long a claim holds without being renewed: three missed renewals, each a third of it."""
        return self.station.settings.lease_s

    async def run(self, run: str, indices: Sequence[int]) -> None:
        """Run the trials of one message: those with a model side by side, as they wait for it.

        A message holds more of them than run at once, so that the next begins as soon as one ends. `direct` trials
        follow one another: side by side they would only wait for each other, and be timed so. What befalls one trial
        is no matter of the others'. Those that are not begun in ten seconds, or when the worker is told to stop, go
        back to the ledger.
        """
        begin_until = time.monotonic() + BEGIN_WITHIN_S
        prepared = await self.station.prepare(run)
        ledger = Ledger(self.redis, run)
        direct = [index for index in indices if prepared.plan.trial(index).arm.harness == "direct"]
        await self._follow(ledger, prepared, iter(direct), begin_until)
        others = iter(set(indices).difference(direct))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(SIDE_BY_SIDE, len(indices) - len(direct))):
                group.create_task(self._follow(ledger, prepared, others, begin_until))

    async def _follow(self, ledger: Ledger, prepared: Prepared, left: Iterator[int], begin_until: float) -> None:
        """Run one trial after another, of those that are left."""
        for index in left:
            await self._trial(ledger, prepared, index, too_late=time.monotonic() > begin_until)

    async def _trial(self, ledger: Ledger, prepared: Prepared, index: int, *, too_late: bool) -> None:
        try:
            if too_late or self.stopping():
                await asyncio.to_thread(ledger.give_back, [index])
            else:
                await self._claimed(ledger, prepared, index)
        except InfrastructureError as error:
            # Its lease, or its hand-out, runs out, and the trial is run again.
            log.warning("trial %d of run %s is left where it is: %s", index, ledger.run, error.message)

    async def _claimed(self, ledger: Ledger, prepared: Prepared, index: int) -> None:
        token = uuid.uuid4().hex[:12]
        trial = prepared.plan.trial(index)
        terms = terms_of(prepared.plan, trial, self.station.limits)
        claim = await asyncio.to_thread(ledger.claim, index, token, self._lease_s, terms)
        if claim.status != "ok":
            return
        work = _Work(trial, claim.attempt, token)
        attempt = asyncio.create_task(self._attempt(prepared, work))
        keeper = asyncio.create_task(self._keep_lease(ledger, work, attempt))
        try:
            await self._commit(ledger, prepared, await attempt)
        finally:
            keeper.cancel()

    async def _attempt(self, prepared: Prepared, work: "_Work") -> Trace:
        trial, number = work.trial, work.number
        try:
            return await observe(self.station, prepared, trial, number, lambda: work.stopped)
        except Exception as error:
            # A fault of our own must close the attempt as infrastructure now, not hang until its lease lapses.
            log.exception("trial %d attempt %d broke the worker", trial.index, number)
            return Trace(
                run=prepared.plan.run,
                trial=trial,
                attempt=number,
                outcome="infra_failed",
                failure=f"evalfarm itself failed: {type(error).__name__}: {error}",
                failure_kind="internal",
                telemetry=Telemetry(complete=False, gaps=("the attempt was not observed to its end",)),
                isolation=prepared.plan.isolation,
                started_at=0.0,
                duration_s=0.0,
            )

    async def _commit(self, ledger: Ledger, prepared: Prepared, trace: Trace) -> None:
        try:
            # In one go: each change of threads in a busy process costs a tenth of what a whole trial does.
            await asyncio.to_thread(self._commit_now, ledger, prepared, trace)
        except (StoreUnavailable, BrokerUnavailable):
            clean = await asyncio.to_thread(self._clean, prepared, trace)
            kept = await keep(self.station.store, clean, patience_s=self.store_patience_s)
            result = await asyncio.to_thread(self.grade, prepared, kept)
            await commit(ledger, prepared.plan, result, lease_s=self._lease_s)

    def _commit_now(self, ledger: Ledger, prepared: Prepared, trace: Trace) -> None:
        kept = keep_now(self.station.store, self._clean(prepared, trace))
        commit_now(ledger, prepared.plan, self.grade(prepared, kept))

    def _clean(self, prepared: Prepared, trace: Trace) -> Trace:
        """The trace as it may be kept: no cached answer counts, and no secret is in it."""
        suite = prepared.plan.suite
        seen = checked(self.redis, prepared.plan, trace) if trace.requests else trace
        return redacted(seen, suite.redact, self.station.secrets(suite))

    async def _keep_lease(self, ledger: Ledger, work: "_Work", attempt: "asyncio.Task[Trace]") -> None:
        """Renew until cancelled; when the ledger says the lease is no longer ours, stop spending."""
        loop, lease = asyncio.get_running_loop(), (work.trial.index, work.number, work.token, self._lease_s)
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                if not await loop.run_in_executor(self.renewing, ledger.renew, *lease):
                    log.warning("trial %d attempt %d: %s", work.trial.index, work.number, _STOPPED)
                    work.stopped = _STOPPED
                    attempt.cancel()
                    return
            except BrokerUnavailable:
                # Out of touch is no verdict: go on, and commit when Redis is back; the fence decides then.
                log.warning("cannot renew the lease of trial %d; going on", work.trial.index)


_STOPPED = "stopped: its run was cancelled, or another attempt took its place"


@dataclass
class _Work:
    """One claimed trial."""

    trial: Trial
    number: int
    token: str
    stopped: str | None = None  #: why its attempt was cut short
