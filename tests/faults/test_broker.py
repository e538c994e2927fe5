"""The broker itself: its connections killed, restarted, killed, full, demoted, emptied."""

import time
from collections.abc import Callable

import pytest

from tests.faults.breakages import OF_THE_BROKER
from tests.faults.farm import Farm
from tests.faults.invariants import hold

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.mark.parametrize("fault", OF_THE_BROKER)
def test_a_run_outlives_its_broker_s_bad_minutes(
    start_farm: Callable[..., Farm], fault: Callable[[Farm], None]
) -> None:
    farm = start_farm()
    held = [farm.provider.hold(case) for case in ("case-b", "case-g")]
    for _ in range(2):
        farm.work()
    farm.tend()
    for one in held:
        one.wait()
    farm.provider.release(held[0])  # one trial ends meanwhile, the other afterwards
    fault(farm)
    hold(farm, cap=None)


def test_workers_wait_for_a_broker_that_is_not_there_yet(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    worker = farm.work()
    farm.tend()
    farm.when_closed(4)
    farm.broker.stop()
    time.sleep(1.0)
    assert worker.process.poll() is None
    farm.broker.start()
    hold(farm, cap=None)
