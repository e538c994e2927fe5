"""Redis emptied: what object storage holds is enough to go on."""

import time
from collections.abc import Callable

import pytest

from evalfarm.runstate import connect
from tests.faults.farm import Farm
from tests.faults.invariants import (
    Books,
    every_cent_is_known,
    every_trial_is_closed_once,
    finish,
    nothing_is_added_by_going_on,
    the_ledger_counts_the_bill,
)
from tests.faults.machine import until

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def wipe(farm: Farm) -> None:
    with connect(farm.broker.url) as client:
        client.flushall()


def finished(farm: Farm) -> Books:
    """Every invariant but the count of attempts, of which Redis alone knew those that left nothing behind."""
    books = finish(farm)
    every_trial_is_closed_once(books)
    every_cent_is_known(books)
    the_ledger_counts_the_bill(books)
    nothing_is_added_by_going_on(farm)
    assert books.summary.passed == books.plan.size
    return books


def test_a_run_whose_redis_is_emptied_half_way_goes_on_by_itself(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = [farm.provider.hold(case) for case in ("case-b", "case-g")]
    farm.send("case-b", "case-g")  # to one worker, so that the other goes on
    for _ in range(2):
        farm.work()
    for one in held:
        one.wait()
    farm.tend()
    farm.when_closed(4)
    wipe(farm)
    farm.provider.release(held[0])
    time.sleep(0.5)
    finished(farm)


@pytest.mark.parametrize("command", ["rebuild", "resume"])
def test_a_run_whose_redis_was_emptied_with_nobody_there_is_brought_back_by_a_command(
    start_farm: Callable[..., Farm], command: str
) -> None:
    farm = start_farm()
    held = [farm.provider.hold(case, times=9) for case in ("case-c", "case-g")]
    farm.send("case-c", "case-g")
    worker = farm.work(slots=2)
    for one in held:
        one.wait()
    tender = farm.tend()
    farm.when_closed(farm.plan.size - 2)
    worker.process.kill()
    worker.process.wait()
    tender.stop()
    # Killed before anybody missed them: Redis would have known, and is about to forget.
    begun = [index for index, attempts in enumerate(farm.witness.attempts) if attempts]
    farm.witness.lost |= {(index, 1) for index in begun if not farm.store.attempts_of(farm.plan.run, index)}
    wipe(farm)
    for one in held:
        farm.provider.release(one)
    started = farm.command(command, farm.plan.run)
    if command == "rebuild":
        assert started.process.wait(60) == 0, started.said
        farm.tend()
    farm.work()
    finished(farm)
    assert started.process.wait(60) == 0, started.said


def test_a_run_that_is_decided_and_not_sealed_survives_the_loss_of_redis(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c", times=9)
    farm.send("case-c")  # it keeps one slot, and the other runs the rest
    farm.work(slots=2)
    held.wait()
    tender = farm.tend()
    until(lambda: farm.progress().closed == farm.plan.size - 1, "that all but one are decided")
    tender.stop()
    farm.provider.release(held)
    until(lambda: farm.progress().closed == farm.plan.size, "that all are decided, and nobody is there to seal it")
    wipe(farm)
    farm.tend()
    books = finished(farm)
    assert set(books.traces) == {(index, 1) for index in range(farm.plan.size)}
