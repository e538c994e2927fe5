from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.contracts.run import Outcome
from evalfarm.runstate import Ended, Ledger, standing_of
from evalfarm.store import Store
from scheduler.archiver import archive
from scheduler.rebuilder import Rebuilt, rebuild, shape_of


@pytest.fixture
def lose(opened: Any, client: redis.Redis) -> Any:
    """Wipes Redis and builds the run anew from the store."""

    def wipe() -> Rebuilt | None:
        client.flushall()
        return opened.scheduler.rebuild("shop-1")

    return wipe


def test_a_run_is_restored_from_segments_and_from_what_is_in_none(opened: Any, lose: Any, client: redis.Redis) -> None:
    opened.worker.decide(opened.hand_out(4), "failed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    for index in opened.hand_out(3):
        opened.worker.store(index, opened.worker.claim(index))
    before = standing_of(client, opened.plan)
    assert lose() == Rebuilt(closed=4, committed=3)
    progress = opened.ledger.progress()
    assert (progress.closed, progress.failed, progress.passed, progress.attempts) == (7, 4, 3, 7)
    assert (progress.in_flight, progress.waiting, progress.rebuilding) == (0, 0, False)
    after = standing_of(client, opened.plan)
    assert [arm.planned for arm in after.arms] == [arm.planned for arm in before.arms] == [6, 6]
    assert sum(sum(arm.closed.values()) for arm in after.arms) == 7
    assert Ledger(client, "shop-1").money(2).spent_usd == 1.5
    assert opened.hand_out(99) == [7, 8, 9, 10, 11]
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert sorted(result.trial.index for result in opened.store.results("shop-1")) == list(range(7))


def test_rebuilding_what_redis_holds_changes_nothing(opened: Any, client: redis.Redis) -> None:
    opened.worker.decide(opened.hand_out(2), "passed")
    before = {key: client.dump(key) for key in client.keys("f:*")}
    assert opened.scheduler.rebuild("shop-1") is None
    assert {key: client.dump(key) for key in client.keys("f:*")} == before


def test_the_lowest_attempt_with_a_verdict_counts_and_infrastructure_failures_before_it_are_kept_in_mind(
    opened: Any, lose: Any
) -> None:
    opened.worker.store(0, 1, outcome="infra_failed")
    opened.worker.store(0, 2)
    opened.worker.store(0, 3)
    opened.worker.store(1, 1, outcome="infra_failed")
    for attempt in (1, 2, 3):
        opened.worker.store(2, attempt, outcome="infra_failed")
    assert lose() == Rebuilt(closed=0, committed=2)
    progress = opened.ledger.progress()
    assert (progress.passed, progress.infra_failed, progress.attempts) == (1, 1, 6)
    assert opened.hand_out(2) == [1, 3]
    assert opened.ledger.claim(1, "next", 60.0).attempt == 2


def test_nothing_is_handed_out_of_a_run_that_is_half_rebuilt_and_anyone_may_finish_it(
    opened: Any, client: redis.Redis, manifest: Any
) -> None:
    opened.worker.store(0, 1)
    client.flushall()
    ledger = Ledger(client, "shop-1")
    ledger.create(12, manifest.digests["plan"], shape_of(opened.plan, manifest), rebuilding=True)
    assert ledger.progress().rebuilding
    assert ledger.take(5, 60.0) == []
    assert opened.scheduler.look_at("shop-1") is None
    assert not ledger.progress().rebuilding
    assert ledger.take(2, 60.0) == [1, 2]
    assert not ledger.end_rebuilding(0, 0)  # a second one comes too late, and hands nothing out twice
    assert ledger.take(1, 60.0) == [3]


def test_what_was_at_work_when_redis_was_lost_takes_its_lease_up_again_and_counts(opened: Any, lose: Any) -> None:
    index, other = opened.hand_out(2)
    token, attempt = "token-0", opened.worker.claim(index)
    opened.worker.claim(other)
    lose()
    assert opened.ledger.renew(index, attempt, token, 60.0)
    assert opened.hand_out(2) == [1, 2]
    assert opened.ledger.claim(index, "another", 60.0).status == "held"
    end = {"verdict": "passed", "row": b"{}", "final": True, "backoff_s": 0.0, "max_attempts": 3}
    assert opened.ledger.end(Ended(index, attempt, **end)) == "counted"
    progress = opened.ledger.progress()
    assert (progress.attempts, progress.lost, progress.passed) == (1, 0, 1)


def test_an_attempt_ends_as_unknown_while_redis_knows_nothing_and_goes_on_renewing(
    opened: Any, client: redis.Redis
) -> None:
    (index,) = opened.hand_out(1)
    attempt = opened.worker.claim(index)
    client.flushall()
    end = {"verdict": "passed", "row": b"{}", "final": True, "backoff_s": 0.0, "max_attempts": 3}
    assert opened.ledger.renew(index, attempt, f"token-{index}", 60.0)
    assert opened.ledger.end(Ended(index, attempt, **end)) == "unknown"
    opened.scheduler.rebuild("shop-1")
    assert opened.ledger.end(Ended(index, attempt, **end)) == "counted"


ENDINGS = st.sampled_from(("nothing", "finished", "infra_failed", "archived"))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(endings=st.lists(ENDINGS, min_size=12, max_size=12))
def test_a_rebuilt_run_has_closed_exactly_what_the_store_can_tell_of(
    opened: Any, client: redis.Redis, manifest: Any, endings: list[Outcome]
) -> None:
    client.flushall()
    store = Store("memory://")
    opened.worker.traces = store
    done = [opened.worker.decided(index, "failed") for index, ending in enumerate(endings) if ending == "archived"]
    for k in range(0, len(done), 2):
        store.put_segment("shop-1", k // 2, done[k : k + 2])
    for index, ending in enumerate(endings):
        if ending in ("finished", "infra_failed"):
            opened.worker.store(index, 1, outcome=ending)
    for again in (False, True):
        rebuilt = rebuild(opened.ledger, store, opened.plan, manifest, opened.scheduler.grade)
        assert (rebuilt is None) == again
    progress = opened.ledger.progress()
    assert (progress.failed, progress.passed) == (endings.count("archived"), endings.count("finished"))
    assert progress.attempts == 12 - endings.count("nothing")
    open_trials = [index for index, ending in enumerate(endings) if ending in ("nothing", "infra_failed")]
    assert opened.hand_out(99) == open_trials
