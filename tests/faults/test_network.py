"""The network between workers and broker: swallowing, one way and both, resetting, refusing, slow, cutting replies."""

import time
from collections.abc import Callable

import pytest

from tests.faults.farm import LEASE_S, Farm
from tests.faults.invariants import hold
from tests.faults.moments import Script, digest_of, trial_of
from tests.faults.proxy import Way

pytestmark = [pytest.mark.slow, pytest.mark.faults]

BOTH: tuple[Way, ...] = ("up", "down")


@pytest.mark.parametrize(("ways", "leases"), [(BOTH, 0.5), (BOTH, 1.0), (BOTH, 3.0), (("up",), 3.0), (("down",), 3.0)])
def test_a_black_hole_costs_time_and_never_a_count(
    start_farm: Callable[..., Farm], ways: tuple[Way, ...], leases: float
) -> None:
    farm = start_farm()
    held = [farm.provider.hold(case) for case in ("case-b", "case-g")]
    for _ in range(2):
        farm.work()
    farm.tend()
    for one in held:
        one.wait()
    farm.proxy.swallow(*ways)
    farm.provider.release(held[0])
    time.sleep(leases * LEASE_S)
    farm.proxy.heal()
    hold(farm, cap=None)


@pytest.mark.parametrize("script", ["claim", "renew", "end"])
@pytest.mark.parametrize("reply", ["lost", "and command lost"])
def test_a_script_whose_reply_is_lost_is_not_run_twice_to_effect(
    start_farm: Callable[..., Farm], script: Script, reply: str
) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    trap = farm.proxy.trap(digest_of(script), holds_reply=reply == "lost")
    farm.work()
    farm.tend()
    trap.wait()
    farm.proxy.release(trap, drop=True)
    farm.provider.release(held)
    books = hold(farm)
    assert books.started[trial_of(trap)] == 1


def test_replies_that_are_cut_in_the_middle_are_asked_for_again(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    for _ in range(2):
        farm.work()
    farm.tend()
    for after in (0, 1, 2, 3, 5, 8, 13):
        farm.proxy.cut_next_reply(after)
        time.sleep(0.15)
    hold(farm, cap=None)


def test_a_network_that_refuses_for_a_lease_is_waited_for(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    farm.work()
    farm.tend()
    held.wait()
    farm.proxy.reset(refuse=True)
    farm.provider.release(held)
    time.sleep(LEASE_S)
    farm.proxy.heal()
    hold(farm, cap=None)


def test_a_slow_network_costs_time_alone(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    farm.proxy.delay(0.1)
    for _ in range(2):
        farm.work()
    farm.tend()
    hold(farm)
