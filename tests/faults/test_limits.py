"""A model's cap that falls while a run is at work: what is begun ends, and the farm sinks to the new cap."""

import signal
from collections.abc import Callable

import pytest

from evalfarm.runstate import Throttle, connect, load_limits
from tests.faults.farm import CAP, Farm, plan_of
from tests.faults.invariants import hold
from tests.faults.machine import until
from tests.faults.provider import MODEL

pytestmark = [pytest.mark.slow, pytest.mark.faults]

LOWER = CAP // 2


def by_a_429(farm: Farm) -> None:
    with connect(farm.broker.url) as client:
        Throttle(client, load_limits(farm.root / "limits.toml")).pause(MODEL, 1.0)


def by_another_file(farm: Farm) -> None:
    """The file is changed, the workers of the old one are told to stop, and others are started."""
    (farm.root / "limits.toml").write_text(f'[models."{MODEL}"]\nconcurrency = {LOWER}\n', encoding="utf-8")
    for worker in farm.at_work():
        worker.send(signal.SIGTERM)
    for _ in range(2):
        farm.work()


@pytest.mark.parametrize("lower", [by_a_429, by_another_file])
def test_when_a_cap_is_lowered_what_is_in_flight_sinks_to_it_and_nothing_is_lost(
    start_farm: Callable[..., Farm], lower: Callable[[Farm], None]
) -> None:
    farm = start_farm(plan_of(12, direct=False))
    held = [farm.provider.hold(case.id) for case in farm.plan.suite.cases]

    def arrived() -> int:
        return sum(len(hold.arrivals) for hold in held)

    for _ in range(2):
        farm.work()
    farm.tend()
    until(lambda: arrived() == CAP, "that as many are at work as may be")
    lower(farm)
    begun = [hold for hold in held if hold.arrivals]
    for ended in range(CAP - LOWER):
        farm.provider.release(begun[ended])
        until(lambda ended=ended: farm.progress().closed == ended + 1, "that one has ended")
        assert arrived() == CAP  # nobody took its place
    for one in begun[CAP - LOWER :]:
        farm.provider.release(one)
    until(lambda: farm.progress().closed >= CAP, "that all that were at work before have ended")
    until(lambda: arrived() >= CAP + LOWER, "that others have begun")
    farm.provider.most_at_once = 0
    books = hold(farm, cap=LOWER)
    assert books.started == [1] * farm.plan.size
