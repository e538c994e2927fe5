"""A run of a million trials: what it takes of Redis, and how soon its first trial is handed out."""

import time
import tracemalloc
from typing import Any

import pytest
import redis

from evalfarm.broker import App, queue_depth
from evalfarm.contracts.run import Arm, Plan
from evalfarm.contracts.verdict import Label, Result
from evalfarm.runstate import Ended, Ledger, beat
from evalfarm.store import Store
from scheduler.archiver import SEGMENT_EVENTS
from scheduler.feeder import feed
from scheduler.planner import Measured, manifest_of
from scheduler.runs import Scheduler

CODEX = Arm(model="gpt-5-mini", harness="codex", variant="plain")
SLOTS = 2_222  # with the messages that wait for them, five thousand trials are in flight
MILLION = 1_000_000


@pytest.fixture
def large(plan: Plan) -> Plan:
    """2 cases × 500,000 repeats."""
    return plan.model_copy(update={"arms": (CODEX,), "cases": plan.cases[:2], "repeats": MILLION // 2})


@pytest.fixture
def scheduler(client: redis.Redis, app: App) -> Scheduler:
    return Scheduler(Store("memory://"), client, app, lambda plan, trace: Result.model_validate({}))


def opened(scheduler: Scheduler, plan: Plan) -> Ledger:
    measured = Measured(versions={}, digests={}, simulated=False)
    scheduler.open_run(plan, manifest_of(plan, measured, created_at=1.0, label=None, filters={}), {})
    return Ledger(scheduler.redis, plan.run)


def row(plan: Plan, index: int) -> bytes:
    """A result as a real one is: two labels, one with its reasons, and the figures of six requests."""
    told = Result(
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        verdict="failed",
        labels=(
            Label(grader="tool_route", version="3", value="FAIL", reasons=("no call of `search` was seen",) * 3),
            Label(grader="answer", version="2", value="PASS"),
        ),
        tool_calls=4,
        input_tokens=48_211,
        cached_tokens=31_104,
        output_tokens=1_204,
        reasoning_tokens=832,
        latency_s=41.52331,
        request_latency_s=(6.21342, 5.91231, 8.12313, 7.34554, 6.12315, 7.80576),
        cost_usd=0.0214,
        answered_models=("gpt-5-mini-2026-05-01",),
    )
    return told.model_dump_json().encode()


@pytest.mark.slow
def test_a_million_trials_with_five_thousand_in_flight_take_twenty_megabytes_with_the_queue(
    scheduler: Scheduler, client: redis.Redis, app: App, large: Plan
) -> None:
    before = client.info("memory")["used_memory"]
    ledger = opened(scheduler, large)
    for index in ledger.take(SEGMENT_EVENTS - 1, 60.0):  # as much as ever waits to be archived
        ledger.claim(index, f"{index:012d}", 60.0)
        ledger.end(Ended(index, 1, verdict="failed", row=row(large, index), final=True, backoff_s=0.0, max_attempts=3))
    for index in ledger.take(SLOTS, 60.0):
        ledger.claim(index, f"{index:012d}", 60.0)
    beat(client, "all of them", SLOTS, 60.0)
    while feed(app, client, ledger, large, "interactive"):
        pass
    progress = ledger.progress()
    assert (progress.planned, progress.in_flight, queue_depth(app)) == (MILLION, 5_000, 2_778)
    assert client.info("memory")["used_memory"] - before <= 20_000_000


@pytest.mark.slow
def test_the_first_trial_of_a_million_is_handed_out_within_two_seconds_and_nothing_is_held_per_trial(
    scheduler: Scheduler, client: redis.Redis, app: App, large: Plan
) -> None:
    beat(client, "one", 2, 60.0)
    started = time.monotonic()
    ledger = opened(scheduler, large)
    assert feed(app, client, ledger, large, "interactive") == 3
    took_s = time.monotonic() - started
    tracemalloc.start()
    scheduler.look_at(large.run)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (took_s < 2.0, peak < 2_000_000) == (True, True), (took_s, peak)


def test_the_order_of_a_million_trials_is_known_without_being_kept(large: Plan) -> None:
    trials: Any = {large.trial(index).case for index in (0, 1, MILLION - 2, MILLION - 1)}
    assert (large.size, trials, len(large.arms_in_order)) == (MILLION, set(large.cases), 2)
