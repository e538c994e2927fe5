from typing import Any

import pytest
import redis

from evalfarm.runstate import Ended
from scheduler.reaper import reap


@pytest.fixture
def look(opened: Any) -> Any:
    """Looks for lost attempts once, as every tick of the scheduler does."""
    return lambda: reap(opened.ledger, opened.store, opened.plan, opened.scheduler.grade, lease_s=60.0)


def test_an_attempt_that_was_stored_and_never_committed_is_committed_and_not_paid_for_again(
    opened: Any, look: Any
) -> None:
    stored, lost = opened.hand_out(2)
    opened.worker.store(stored, opened.worker.claim(stored, lease_s=0.0))
    opened.worker.claim(lost, lease_s=0.0)
    look()
    progress = opened.ledger.progress()
    assert (progress.passed, progress.lost, progress.waiting, progress.attempts) == (1, 1, 1, 2)
    (counted,) = [event for event in opened.ledger.events("0", 9) if event.kind == "counted"]
    judged = opened.scheduler.grade(opened.plan, opened.store.get_trace("shop-1", stored, 1))
    assert counted.row == judged.model_dump_json().encode()


def test_an_infrastructure_failure_that_was_stored_is_tried_again_and_counts_as_no_loss(opened: Any, look: Any) -> None:
    (index,) = opened.hand_out(1)
    opened.worker.store(index, opened.worker.claim(index, lease_s=0.0), outcome="infra_failed")
    look()
    progress = opened.ledger.progress()
    assert (progress.lost, progress.waiting, progress.in_flight) == (0, 1, 0)


def test_a_worker_that_comes_back_finds_its_attempt_counted(opened: Any, look: Any) -> None:
    (index,) = opened.hand_out(1)
    opened.worker.store(index, opened.worker.claim(index, lease_s=0.0))
    look()
    ending = opened.ledger.end(Ended(index, 1, verdict="passed", row=b"{}", final=True, backoff_s=0.0, max_attempts=3))
    assert (ending, opened.ledger.progress().passed) == ("counted", 1)


def test_after_a_time_in_which_nobody_looked_every_worker_has_a_lease_to_come_back(
    opened: Any, look: Any, client: redis.Redis
) -> None:
    look()
    (index,) = opened.hand_out(1)
    opened.worker.claim(index, lease_s=0.0)
    client.hincrby("f:{shop-1}:meta", "tended", -31_000)
    look()
    look()
    assert opened.ledger.progress().lost == 0
    client.hincrby("f:{shop-1}:meta", "grace", -60_000)
    look()
    assert opened.ledger.progress().lost == 1
