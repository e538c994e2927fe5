"""A worker's shift: take the trials of a message one by one through claim, attempt, store, grade and commit.

A message is only a hint. The ledger's claim decides whether there is anything to do, its attempt number fences
what is written, and a lease renewed while the attempt runs tells everyone else to keep off.
"""

import asyncio
import logging
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from evalfarm.broker import SIDE_BY_SIDE
from evalfarm.contracts.run import Trace, Trial
from evalfarm.contracts.verdict import Result
from evalfarm.errors import BrokerUnavailable, EvalFarmError, InfrastructureError, StoreUnavailable
from evalfarm.runstate import Claim, Client, Ledger, Terms, ended_of, note_refusal, terms_of
from worker.attempt import observe
from worker.commit import STORE_PATIENCE_S, commit, commit_and_claim, commit_now, keep, keep_now
from worker.own_faults import unjudged, unobserved
from worker.redaction import redacted
from worker.repeats import checked
from worker.station import Prepared, Station

log = logging.getLogger(__name__)

#: Judges a trace of a run; handed in, because a worker never judges.
Grade = Callable[[Prepared, Trace], Result]

#: Seconds until trials that this worker will not run are handed out again, perhaps to one that will.
REFUSED_S = 2.0
#: Seconds after which what a message holds and is not begun goes back: others may be free to run it.
BEGIN_WITHIN_S = 10.0


@dataclass(frozen=True)
class Shift:
    """One worker process at work."""

    station: Station
    redis: Client
    grade: Grade
    stopping: Callable[[], bool] = lambda: False  #: whether the worker takes no more trials
    side_by_side: int = SIDE_BY_SIDE
    begin_within_s: float = BEGIN_WITHIN_S
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
        try:
            prepared = await self.station.prepare(run)
        except EvalFarmError as error:
            self._refuse(run, indices, error)
            raise
        direct = [index for index in indices if prepared.plan.trial(index).arm.harness == "direct"]
        message = _Message(Ledger(self.redis, run), prepared, time.monotonic() + self.begin_within_s)
        await self._follow(message, deque(direct))
        others = deque(set(indices).difference(direct))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.side_by_side, len(indices) - len(direct))):
                group.create_task(self._follow(message, others))

    def _refuse(self, run: str, indices: Sequence[int], error: EvalFarmError) -> None:
        """What is not to be run here goes back, for others to run; whoever asks how the run stands is told why."""
        with suppress(BrokerUnavailable):  # then the hand-outs run out, and are sent again
            Ledger(self.redis, run).give_back(indices, REFUSED_S)
            note_refusal(self.redis, run, f"{socket.gethostname()}: {error.message}")

    async def _follow(self, message: "_Message", left: deque[int]) -> None:
        """Run one trial after another, of those that are left."""
        work = await asyncio.to_thread(self._claim_next, message, left)
        while work is not None:
            work = await self._see_to(message, work, left)

    def _claim_next(self, message: "_Message", left: deque[int]) -> "_Work | None":
        """Claim the first of those that are left which is ours to run; what comes too late goes back."""
        while (index := _next(left)) is not None:
            try:
                if self._too_late(message):
                    message.ledger.give_back([index, *_all(left)])
                elif (work := message.begun(index, message.ledger.claim(*self._wanted(message, index)))) is not None:
                    return work
            except InfrastructureError as error:  # its hand-out runs out, and it is handed out again
                _left_alone(message, index, error)
        return None

    def _too_late(self, message: "_Message") -> bool:
        return time.monotonic() > message.begin_until or self.stopping()

    def _wanted(self, message: "_Message", index: int) -> tuple[int, str, float, Terms]:
        """What claims a trial."""
        plan = message.prepared.plan
        return index, message.token, self._lease_s, terms_of(plan, plan.trial(index), self.station.limits)

    async def _see_to(self, message: "_Message", work: "_Work", left: deque[int]) -> "_Work | None":
        """Run a claimed trial to its commit; the next one, claimed in the same turn."""
        attempt = asyncio.create_task(self._attempt(message.prepared, work))
        keeping = asyncio.get_running_loop().call_later(
            self._lease_s / 3, self._start_keeping, message.ledger, work, attempt
        )
        try:
            trace = await attempt
            # In one go: each change of threads in a busy process costs a tenth of what a whole trial does.
            return await asyncio.to_thread(self._commit_and_claim_next, message, trace, left)
        except (StoreUnavailable, BrokerUnavailable):
            await self._commit_patiently(message, trace)
        except Exception:  # or it would end all that runs beside it; its lease runs out, and the trial is run again
            log.exception("trial %d of run %s is left where it is", work.trial.index, message.ledger.run)
        finally:
            keeping.cancel()
            if work.keeper is not None:
                work.keeper.cancel()
        return await asyncio.to_thread(self._claim_next, message, left)

    def _start_keeping(self, ledger: Ledger, work: "_Work", attempt: "asyncio.Task[Trace]") -> None:
        work.keeper = asyncio.create_task(self._keep_lease(ledger, work, attempt))

    async def _attempt(self, prepared: Prepared, work: "_Work") -> Trace:
        trial, number = work.trial, work.number
        try:
            return await observe(self.station, prepared, trial, number, lambda: work.stopped)
        except MemoryError:
            # What else is at work here would fail of it next, and a process without memory does not even end in order.
            # This way all of it is lost and tried again, each trial by itself.
            log.critical("trial %d attempt %d took all memory; its process ends", trial.index, number)
            os._exit(1)
        except Exception as error:
            # A fault of our own must close the attempt as infrastructure now, not hang until its lease lapses.
            log.exception("trial %d attempt %d broke the worker", trial.index, number)
            return unobserved(prepared.plan, trial, number, error)

    def _commit_and_claim_next(self, message: "_Message", trace: Trace, left: deque[int]) -> "_Work | None":
        kept = keep_now(self.station.store, self._clean(message.prepared, trace))
        ended = ended_of(message.prepared.plan, self._judged(message.prepared, kept))
        index = None if self._too_late(message) else _next(left)
        if index is None:
            commit_now(message.ledger, ended)
            return self._claim_next(message, left)
        try:
            claim = commit_and_claim(message.ledger, ended, self._wanted(message, index))
        except BrokerUnavailable:
            left.appendleft(index)
            raise
        return message.begun(index, claim) or self._claim_next(message, left)

    async def _commit_patiently(self, message: "_Message", trace: Trace) -> None:
        prepared = message.prepared
        try:
            clean = await asyncio.to_thread(self._clean, prepared, trace)
            kept = await keep(self.station.store, clean, patience_s=self.store_patience_s)
            result = await asyncio.to_thread(self._judged, prepared, kept)
            await commit(message.ledger, ended_of(prepared.plan, result), lease_s=self._lease_s)
        except InfrastructureError as error:  # its lease runs out, and the trial is run again
            _left_alone(message, trace.trial.index, error)

    def _judged(self, prepared: Prepared, trace: Trace) -> Result:
        try:
            return self.grade(prepared, trace)
        except Exception as error:  # or it would end the message, and with it all that runs beside this trial
            log.exception("trial %d attempt %d cannot be judged", trace.trial.index, trace.attempt)
            return unjudged(trace, error)

    def _clean(self, prepared: Prepared, trace: Trace) -> Trace:
        """The trace as it may be kept: no cached answer counts, and no secret is in it."""
        suite = prepared.plan.suite
        seen = checked(self.redis, prepared.plan, trace) if trace.requests else trace
        return redacted(seen, suite.redact, self.station.secrets(suite))

    async def _keep_lease(self, ledger: Ledger, work: "_Work", attempt: "asyncio.Task[Trace]") -> None:
        """Renew, now and then until cancelled; when the ledger says the lease is no longer ours, stop spending."""
        loop, lease = asyncio.get_running_loop(), (work.trial.index, work.number, work.token, self._lease_s)
        while True:
            try:
                if not await loop.run_in_executor(self.renewing, ledger.renew, *lease):
                    log.warning("trial %d attempt %d: %s", work.trial.index, work.number, _STOPPED)
                    work.stopped = _STOPPED
                    attempt.cancel()
                    return
            except BrokerUnavailable:
                # Out of touch is no verdict: go on, and commit when Redis is back; the fence decides then.
                log.warning("cannot renew the lease of trial %d; going on", work.trial.index)
            await asyncio.sleep(self._lease_s / 3)


def _next(left: deque[int]) -> int | None:
    """The next of those that are left, for one of many threads."""
    try:
        return left.popleft()
    except IndexError:
        return None


def _all(left: deque[int]) -> Iterator[int]:
    while (index := _next(left)) is not None:
        yield index


def _left_alone(message: "_Message", index: int, error: InfrastructureError) -> None:
    log.warning("trial %d of run %s is left where it is: %s", index, message.ledger.run, error.message)


@dataclass(frozen=True)
class _Message:
    """What the trials of one message have in common."""

    ledger: Ledger
    prepared: Prepared
    begin_until: float  #: by time.monotonic(); what is not claimed by then goes back
    #: Claims its trials, each of them once: a claim that is sent again, as its answer was lost, is the same claim.
    token: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def begun(self, index: int, claim: Claim) -> "_Work | None":
        """The work that a claim allows."""
        return _Work(self.prepared.plan.trial(index), claim.attempt, self.token) if claim.status == "ok" else None


_STOPPED = "stopped: its run was cancelled, or another attempt took its place"


@dataclass
class _Work:
    """One claimed trial."""

    trial: Trial
    number: int
    token: str
    stopped: str | None = None  #: why its attempt was cut short
    keeper: "asyncio.Task[None] | None" = None  #: renews its lease, from the first third of it on
