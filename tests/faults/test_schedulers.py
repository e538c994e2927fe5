"""Those who tend a run: several at once, one that is killed in the middle of a step, none for a while."""

import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.farm import LEASE_S, Farm
from tests.faults.invariants import hold
from tests.faults.moments import digest_of

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_four_who_tend_one_run_feed_and_seal_it_once(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    schedulers = [farm.command("scheduler") for _ in range(2)]
    for _ in range(2):
        farm.tend()
        farm.work()
    farm.sealed()
    for scheduler in schedulers:
        scheduler.end()
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
    assert farm.store.segments(farm.plan.run) == 1


@pytest.mark.parametrize("step", ["between take and publish", "between a segment and its note"])
def test_a_scheduler_that_is_killed_in_the_middle_of_a_step_leaves_it_to_the_next(
    start_farm: Callable[..., Farm], step: str
) -> None:
    farm = start_farm()
    pattern = b"LPUSH" if step == "between take and publish" else digest_of("archive")
    trap = farm.proxy.trap(pattern)
    farm.work(straight=True)
    scheduler = farm.command("scheduler", straight=False)
    trap.wait()
    scheduler.send(signal.SIGKILL)
    scheduler.process.wait()
    farm.proxy.release(trap, drop=True)
    farm.tend()
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
    assert farm.store.segments(farm.plan.run) == 1


def test_a_run_that_nobody_tends_for_four_leases_goes_on_when_somebody_does(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    farm.work()
    tender = farm.tend()
    held.wait()
    tender.stop()
    time.sleep(4 * LEASE_S)
    farm.tend()
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
