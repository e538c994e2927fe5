import dataclasses
import math
from typing import Any

import pytest
import redis

from evalfarm.broker import App, queue_depth
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.run import Manifest
from evalfarm.errors import BrokerUnavailable, InfrastructureError, UnknownName, UsageError
from evalfarm.runstate import Ended, Progress, beat, open_runs
from evalfarm.store import Store
from scheduler.runs import Scheduler


def test_opening_a_run_stores_what_it_is_made_of_and_enters_it(
    opened: Any, client: redis.Redis, manifest: Manifest
) -> None:
    assert opened.store.get_plan("shop-1") == opened.plan
    assert opened.store.get_manifest("shop-1") == manifest
    assert opened.store.get_blob(digest_bytes(b"# the server")) == b"# the server"
    assert open_runs(client) == ["shop-1"]
    assert opened.ledger.progress().planned == 12


def test_opening_a_run_again_changes_nothing(opened: Any, manifest: Manifest) -> None:
    opened.worker.decide(opened.hand_out(3), "passed")
    opened.scheduler.open_run(opened.plan, manifest, {})
    assert opened.ledger.progress().passed == 3


def test_a_run_s_name_is_taken_by_its_plan(opened: Any, manifest: Manifest) -> None:
    with pytest.raises(UsageError) as caught:
        opened.scheduler.open_run(opened.plan.model_copy(update={"seed": 6}), manifest, {})
    assert caught.value.message.startswith("run 'shop-1' exists already in memory://")


def test_a_look_feeds_as_many_slots_as_live(opened: Any, app: App, client: redis.Redis) -> None:
    assert opened.scheduler.look_at("shop-1") is None
    assert queue_depth(app) == 0
    beat(client, "worker-1", 2, 60.0)
    opened.scheduler.look_at("shop-1")
    assert queue_depth(app) > 0


def test_a_look_shows_the_progress(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(2), "passed")
    seen: list[Progress] = []
    opened.scheduler.look_at("shop-1", seen.append)
    assert [(progress.closed, progress.passed, progress.planned) for progress in seen] == [(2, 2, 12)]


def test_a_look_takes_back_what_a_dead_worker_held(opened: Any) -> None:
    (index,) = opened.hand_out(1)
    opened.worker.claim(index, lease_s=0.0)
    opened.scheduler.look_at("shop-1")
    progress = opened.ledger.progress()
    assert (progress.lost, progress.waiting, progress.in_flight) == (1, 1, 0)


def test_the_last_trial_seals_the_run(opened: Any, client: redis.Redis) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    summary = opened.scheduler.look_at("shop-1")
    assert summary is not None
    assert summary == opened.store.get_summary("shop-1")
    assert open_runs(client) == []


def test_a_cancelled_run_is_sealed_when_nothing_is_at_work(opened: Any) -> None:
    held, *_ = opened.hand_out(3)
    attempt = opened.worker.claim(held)
    opened.ledger.cancel()
    assert opened.scheduler.look_at("shop-1") is None
    opened.ledger.end(Ended(held, attempt, verdict="infra_failed", row=b"", final=False, backoff_s=0.0, max_attempts=3))
    summary = opened.scheduler.look_at("shop-1")
    assert summary is not None
    assert (summary.finished, summary.not_run) == (False, 12)


def test_a_run_that_was_sealed_elsewhere_is_seen_through_at_once(opened: Any, client: redis.Redis, app: App) -> None:
    opened.worker.decide(opened.hand_out(12), "failed")
    sealed = opened.scheduler.look_at("shop-1")
    late = Scheduler(opened.store, client, app, opened.scheduler.grade)
    assert late.look_at("shop-1") == sealed
    assert late.see_through("shop-1", lambda _: None) == sealed


def test_a_run_that_never_was_is_named(client: redis.Redis, app: App) -> None:
    with pytest.raises(UnknownName) as caught:
        Scheduler(Store("memory://"), client, app, lambda plan, trace: None).look_at("shop-9")
    assert str(caught.value) == (
        "no run 'shop-9' in memory://\n\nhint: there is no run yet: start one with `evalfarm run`"
    )


def test_a_run_whose_state_was_lost_before_it_was_sealed_is_rebuilt_and_gone_on_with(
    opened: Any, client: redis.Redis, app: App
) -> None:
    for index in opened.hand_out(2):
        opened.worker.store(index, opened.worker.claim(index))
    client.flushall()
    said: list[str] = []
    scheduler = dataclasses.replace(opened.scheduler, say=said.append)
    assert scheduler.look_at("shop-1") is None
    assert said == [
        "Redis holds no state of run shop-1: rebuilding it from memory://",
        "Rebuilt: 2 trials are decided",
    ]
    assert opened.ledger.progress().closed == 2
    opened.worker.decide(opened.hand_out(12), "failed")
    summary = scheduler.look_at("shop-1")
    assert summary is not None
    assert (summary.planned, summary.passed, summary.failed, summary.attempts) == (12, 2, 10, 12)


def test_a_run_that_is_deleted_from_the_store_while_it_runs_is_named(
    opened: Any, app: App, client: redis.Redis
) -> None:
    opened.scheduler.look_at("shop-1")
    elsewhere = dataclasses.replace(
        opened.scheduler,
        store=Store("memory://"),
        known={"shop-1": dataclasses.replace(opened.scheduler.known["shop-1"], looked_at=-math.inf)},
    )
    with pytest.raises(InfrastructureError) as caught:
        elsewhere.see_through("shop-1", lambda _: None)
    assert str(caught.value) == (
        "run 'shop-1' is gone from memory://: its plan was deleted while it ran\n\n"
        "hint: put it back and `evalfarm resume shop-1`, or start a new run"
    )


def test_whoever_waits_for_a_run_bears_that_redis_is_away(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    said: list[str] = []
    revived: list[str] = []
    waiting = dataclasses.replace(opened.scheduler, say=said.append, revive=lambda: revived.append("again"))

    def fail_once(_: Progress) -> None:
        if not revived:
            raise BrokerUnavailable("cannot reach Redis at unix:///x: gone")

    assert waiting.see_through("shop-1", fail_once).passed == 12
    assert (said, revived) == (
        ["cannot reach Redis at unix:///x: gone; trying again for 5 minutes"],
        ["again"],
    )
