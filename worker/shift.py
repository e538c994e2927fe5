"""A worker's shift: take the trials of a message one by one through claim, attempt, grade, store and commit.

A message is only a hint. The ledger's claim decides whether there is anything to do, its attempt number fences
what is written, and a lease renewed while the attempt runs tells everyone else to keep off.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalfarm.contracts.run import Telemetry, Trace, Trial
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Result
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import BACKOFF_S, MAX_ATTEMPTS, Client, Ledger
from worker.attempt import observe
from worker.station import Prepared, Station

log = logging.getLogger(__name__)

#: Judges a trace; handed in, because a worker never judges.
Grade = Callable[[Case, Trace], Result]


@dataclass(frozen=True)
class Shift:
    """One worker process at work."""

    station: Station
    redis: Client
    grade: Grade

    @property
    def _lease_s(self) -> float:
        """How long a claim holds without being renewed: three missed renewals, each a third of it."""
        return self.station.settings.lease_s

    async def run(self, run: str, indices: Sequence[int]) -> None:
        """Run the trials of one message: those with a model side by side, as they wait for it.

        `direct` trials follow one another: side by side they would only wait for each other, and be timed so.
        """
        prepared = await self.station.prepare(run)
        ledger = Ledger(self.redis, run)
        direct = [index for index in indices if prepared.plan.trial(index).arm.harness == "direct"]
        for index in direct:
            await self._trial(ledger, prepared, index)
        async with asyncio.TaskGroup() as group:
            for index in set(indices).difference(direct):
                group.create_task(self._trial(ledger, prepared, index))

    async def _trial(self, ledger: Ledger, prepared: Prepared, index: int) -> None:
        token = uuid.uuid4().hex[:12]
        claim = await asyncio.to_thread(ledger.claim, index, token, self._lease_s)
        if claim.status != "ok":
            return
        trial = prepared.plan.trial(index)
        attempt = asyncio.create_task(self._attempt(prepared, trial, claim.attempt))
        keeper = asyncio.create_task(self._keep_lease(ledger, index, claim.attempt, token, attempt))
        try:
            trace = await attempt
        except asyncio.CancelledError:
            if keeper.done() and not keeper.cancelled():
                log.warning("trial %d attempt %d was superseded or cancelled; stopped", index, claim.attempt)
                return
            raise
        finally:
            keeper.cancel()
        await asyncio.to_thread(self._commit, ledger, prepared, trace)

    async def _attempt(self, prepared: Prepared, trial: Trial, number: int) -> Trace:
        try:
            return await observe(self.station, prepared, trial, number)
        except Exception as error:
            # A fault of our own must close the attempt as infrastructure now, not hang until its lease lapses.
            log.exception("trial %d attempt %d broke the worker", trial.index, number)
            return Trace(
                run=prepared.plan.run,
                trial=trial,
                attempt=number,
                outcome="infra_failed",
                failure=f"evalfarm itself failed: {type(error).__name__}: {error}",
                telemetry=Telemetry(complete=False, gaps=("the attempt was not observed to its end",)),
                isolation=prepared.plan.isolation,
                started_at=0.0,
                duration_s=0.0,
            )

    def _commit(self, ledger: Ledger, prepared: Prepared, trace: Trace) -> None:
        """Payload first, commit second: what the ledger counts is always there to be read."""
        result = self.grade(prepared.plan.suite.case(trace.trial.case), trace)
        self.station.store.put_trace(trace)
        ledger.end(
            trace.trial.index,
            trace.attempt,
            verdict=result.verdict,
            row=result.model_dump_json().encode(),
            final=result.verdict != "infra_failed",
            backoff_s=BACKOFF_S * 2 ** (trace.attempt - 1),
            max_attempts=MAX_ATTEMPTS,
        )

    async def _keep_lease(
        self, ledger: Ledger, index: int, attempt: int, token: str, work: "asyncio.Task[Trace]"
    ) -> None:
        """Renew until cancelled; when the ledger says the lease is no longer ours, stop spending."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                if not await asyncio.to_thread(ledger.renew, index, attempt, token, self._lease_s):
                    work.cancel()
                    return
            except BrokerUnavailable:
                # Out of touch is no verdict: go on, and commit when Redis is back; the fence decides then.
                log.warning("cannot renew the lease of trial %d; going on", index)
