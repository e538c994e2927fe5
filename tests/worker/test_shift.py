import asyncio
import dataclasses
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import Result
from evalfarm.embedded import embedded_redis
from evalfarm.errors import StoreUnavailable
from evalfarm.runstate import Client, Ledger, connect, ended_of
from evalfarm.store import Store
from graders.grade import result_of
from scheduler.planner import Measured, manifest_of
from worker.commit import commit
from worker.shift import Shift
from worker.station import Station

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_redis(tmp_path_factory.mktemp("home")) as url:
        yield url


@pytest.fixture
def redis(redis_url: str) -> Iterator[Client]:
    with connect(redis_url) as client:
        client.flushall()
        yield client


@dataclass(frozen=True)
class AtWork:
    """A shift over an open run, and what the run knows of it."""

    shift: Shift
    station: Station
    ledger: Ledger
    plan: Plan

    async def run(self, *indices: int) -> None:
        await self.shift.run(self.plan.run, indices)

    def counts(self) -> dict[str, int]:
        """What the ledger counts, zeros left out."""
        progress = self.ledger.progress()
        names = ("passed", "failed", "inconclusive", "infra_failed", "in_flight", "waiting", "attempts", "late")
        return {name: getattr(progress, name) for name in names if getattr(progress, name)}

    def rows(self) -> list[Result]:
        return [Result.model_validate_json(event.row) for event in self.ledger.events("0", 99) if event.row]


@pytest.fixture
def at_work(open_station: Any, planned: Any, suite: Any, shop_at: Any, redis: Client) -> Callable[..., Any]:
    """Opens a run of one arm over the shop, hands its first trials out, and gives a worker its shift."""

    @asynccontextmanager
    async def open_run(
        harness: str = "direct", model: str = "sim-careful", *, take: int = 1, **more: Any
    ) -> AsyncIterator[AtWork]:
        environ = more.pop("environ", {})
        async with open_station(**environ) as station, shop_at() as url:
            repeats = more.pop("repeats", 1)
            plan = planned(suite(**{"server": {"url": url}, **more}), harness, model, repeats=repeats)[0].plan
            station.store.put_plan(plan)
            measured = Measured(versions={}, digests={}, simulated=True)
            station.store.put_manifest(manifest_of(plan, measured, created_at=0, label=None, filters={}))
            ledger = Ledger(redis, plan.run)
            ledger.create(plan.size, digest(plan))
            ledger.take(take, 60)
            yield AtWork(
                Shift(station, redis, lambda prepared, trace: result_of(prepared.plan.suite, trace)),
                station,
                ledger,
                plan,
            )

    return open_run


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the worker's own modules logged."""
    return [entry.message for entry in caplog.records if entry.name.startswith("worker.")]


async def test_a_trial_is_run_graded_stored_and_counted_once_however_often_it_is_asked_for(at_work: Any) -> None:
    async with at_work() as work:
        await work.run(0)
        await work.run(0)
        assert work.counts() == {"passed": 1, "attempts": 1}
        (row,) = work.rows()
        trace = work.station.store.get_trace("r1", 0, 1)
        assert (row, work.station.store.attempts_of("r1", 0)) == (result_of(work.plan.suite, trace), [1])


async def test_a_trial_that_another_worker_holds_is_left_alone(at_work: Any) -> None:
    async with at_work() as work:
        work.ledger.claim(0, "someone else", 60)
        await work.run(0)
        assert work.counts() == {"in_flight": 1, "attempts": 1}
        assert work.station.store.attempts_of("r1", 0) == []


async def test_an_infrastructure_failure_is_kept_and_the_trial_waits_for_another_attempt(at_work: Any) -> None:
    async with at_work(server={"command": ["no-such-program"]}) as work:
        await work.run(0)
        assert work.counts() == {"waiting": 1, "attempts": 1}
        assert (work.station.store.get_trace("r1", 0, 1).outcome, work.rows()) == ("infra_failed", [])


async def test_a_fault_of_our_own_closes_the_attempt_as_infrastructure_with_its_words(
    at_work: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with at_work(cases=[{"id": "told", "query": "Well?"}]) as work:
        with caplog.at_level(logging.ERROR, "worker.shift"):
            await work.run(0)
        trace = work.station.store.get_trace("r1", 0, 1)
        assert work.counts() == {"waiting": 1, "attempts": 1}
    reason = "case 'told' has no direct form; the planner must not plan it"
    assert (trace.outcome, trace.failure) == ("infra_failed", f"evalfarm itself failed: ValueError: {reason}")
    assert trace.telemetry.gaps == ("the attempt was not observed to its end",)
    assert ours(caplog) == ["trial 0 attempt 1 broke the worker"]


STOPPED = "stopped: its run was cancelled, or another attempt took its place"
ANSWER = {"script": [{"when": ".", "answer": "It is full."}]}


async def test_trials_with_a_model_run_side_by_side(at_work: Any) -> None:
    async with at_work("loop", "sim-slow", repeats=4, take=4, simulation=ANSWER) as work:
        await work.run(0, 1, 2, 3)
        traces = [work.station.store.get_trace("r1", index, 1) for index in range(4)]
    assert max(trace.started_at for trace in traces) < min(trace.started_at + trace.duration_s for trace in traces)


async def test_a_run_that_is_cancelled_stops_what_is_under_way_and_keeps_what_was_seen(
    at_work: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    slow = {"environ": {"EVALFARM_LEASE_S": "1"}, "simulation": ANSWER}
    async with at_work("loop", "sim-slow", **slow) as work:
        working = asyncio.create_task(work.run(0))
        await eventually(lambda: work.counts().get("attempts"))
        work.ledger.cancel()
        await working
        trace = work.station.store.get_trace("r1", 0, 1)
        assert (trace.outcome, trace.failure, trace.failure_kind) == ("infra_failed", STOPPED, "stopped")
        assert work.counts() == {"waiting": 1, "attempts": 1}
    assert ours(caplog) == [f"trial 0 attempt 1: {STOPPED}"]


async def test_a_long_attempt_keeps_its_lease(at_work: Any, eventually: Any) -> None:
    slow = {"environ": {"EVALFARM_LEASE_S": "1"}, "simulation": ANSWER}
    lost = set()
    async with at_work("loop", "sim-slow", **slow) as work:
        working = asyncio.create_task(work.run(0))

        def reap_until_done() -> bool:
            lost.add(len(work.ledger.overdue(9, 1.0)))
            return working.done()

        await eventually(reap_until_done)
        assert (lost, sum(work.counts().values())) == ({0}, 2)


class Refusing(Store):
    """A store that takes the traces of all trials but one."""

    def __init__(self, refused: int, error: Exception) -> None:
        super().__init__("memory://")
        self.refused, self.error = refused, error

    def put_trace(self, trace: Trace) -> bool:
        if trace.trial.index == self.refused:
            raise self.error
        return super().put_trace(trace)


LEFT = "trial 1 of run r1 is left where it is"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreUnavailable("cannot write memory://: full"), f"{LEFT}: cannot write memory://: full"),
        (RuntimeError("a fault of our own"), LEFT),
    ],
)
async def test_a_trace_that_the_store_refuses_is_no_matter_of_the_other_trials(
    at_work: Any, caplog: pytest.LogCaptureFixture, error: Exception, told: str
) -> None:
    async with at_work("loop", "sim-careful", repeats=3, take=3, simulation=ANSWER) as work:
        plan, manifest = work.station.store.get_plan("r1"), work.station.store.get_manifest("r1")
        work.station.store = Refusing(1, error)
        work.station.store.put_plan(plan)
        work.station.store.put_manifest(manifest)
        await dataclasses.replace(work.shift, store_patience_s=0).run("r1", (0, 1, 2))
        counts = work.counts()
        assert (counts["in_flight"], counts["attempts"], len(work.rows())) == (1, 3, 2)
    assert ours(caplog) == [told]


@pytest.mark.parametrize("harness", ["direct", "loop"])
async def test_a_trace_that_cannot_be_judged_fails_as_infrastructure_and_is_no_matter_of_the_other_trials(
    at_work: Any, caplog: pytest.LogCaptureFixture, harness: str
) -> None:
    async with at_work(harness, repeats=3, take=3, simulation=ANSWER) as work:

        def grade(prepared: Any, trace: Trace) -> Result:
            if trace.trial.index == 0:
                raise RuntimeError("the judge fell")
            return work.shift.grade(prepared, trace)

        with caplog.at_level(logging.ERROR, "worker.shift"):
            await dataclasses.replace(work.shift, grade=grade).run("r1", (0, 1, 2))
        counts, trace = work.counts(), work.station.store.get_trace("r1", 0, 1)
    assert (counts, trace.outcome) == ({"passed": 2, "waiting": 1, "attempts": 3}, "finished")
    assert ours(caplog) == ["trial 0 attempt 1 cannot be judged"]


async def test_a_worker_that_is_told_to_stop_begins_no_trial_more_and_gives_the_rest_back(at_work: Any) -> None:
    async with at_work(repeats=3, take=3) as work:
        asked = iter((False,))
        await dataclasses.replace(work.shift, stopping=lambda: next(asked, True)).run("r1", (0, 1, 2))
        assert work.counts() == {"passed": 1, "waiting": 2, "attempts": 1}
        assert work.ledger.take(3, 60) == [1, 2]


async def test_what_is_not_begun_in_time_goes_back_for_others_to_run(at_work: Any) -> None:
    async with at_work("loop", repeats=3, take=3, simulation=ANSWER) as work:
        await dataclasses.replace(work.shift, begin_within_s=-1).run("r1", (0, 1, 2))
        assert work.counts() == {"waiting": 3}
        assert sorted(work.ledger.take(3, 60)) == [0, 1, 2]


async def test_a_message_s_next_trial_begins_as_soon_as_one_ends(at_work: Any) -> None:
    async with at_work("loop", repeats=4, take=4, simulation=ANSWER) as work:
        last_judged = threading.Event()

        def grade(prepared: Any, trace: Trace) -> Result:
            """The first trial ends when the last has ended, which has to begin beside it."""
            if trace.trial.index == 3:
                last_judged.set()
            assert trace.trial.index or last_judged.wait(20)
            return work.shift.grade(prepared, trace)

        await dataclasses.replace(work.shift, grade=grade, side_by_side=2).run("r1", (0, 1, 2, 3))
        assert work.counts() == {"passed": 4, "attempts": 4}


async def test_an_attempt_is_committed_once_redis_knows_its_run_again(
    at_work: Any, redis: Client, eventually: Any
) -> None:
    async with at_work("loop", "sim-slow", simulation=ANSWER) as work:
        working = asyncio.create_task(work.run(0))
        await eventually(lambda: work.counts().get("attempts"))
        redis.flushall()
        await eventually(lambda: work.station.store.attempts_of("r1", 0))
        work.ledger.create(work.plan.size, digest(work.plan))
        await working
        assert work.counts() == {"passed": 1, "attempts": 1}


async def test_of_two_attempts_of_one_number_the_one_that_was_stored_first_counts_and_both_are_kept(
    at_work: Any, redis: Client
) -> None:
    async with at_work() as work:
        await work.run(0)
        first = work.station.store.get_trace("r1", 0, 1)
        redis.flushall()
        work.ledger.create(work.plan.size, digest(work.plan))
        work.ledger.take(1, 60)
        await work.run(0)
        store = work.station.store
        assert store.attempts_of("r1", 0) == [1, 2]
        assert store.get_trace("r1", 0, 1) == first
        assert store.get_trace("r1", 0, 2).started_at > first.started_at
        assert work.rows() == [result_of(work.plan.suite, first, {})]


async def test_an_attempt_that_cannot_be_committed_is_left_to_be_adopted(
    at_work: Any, redis: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with at_work(environ={"EVALFARM_LEASE_S": "1"}) as work:
        work.ledger.claim(0, "before", 60)
        trace = work.station.store.find_trace("r1", 0, 1)
        assert trace is None
        redis.delete("f:{r1}:meta")
        result = Result(trial=work.plan.trial(0), attempt=1, outcome="finished", verdict="passed")
        await commit(work.ledger, ended_of(work.plan, result), lease_s=0.1)
    (entry,) = (entry for entry in caplog.records if entry.name.startswith("worker."))
    assert entry.message == (
        "trial 0 attempt 1 is stored and not committed; it is left to be adopted: Redis knows nothing of run 'r1'"
    )
