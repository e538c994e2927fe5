"""SIGTERM, SIGQUIT and SIGSTOP: a worker that is told to go, and one that comes back from the dead."""

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Literal

import pytest

from tests.faults.farm import LEASE_S, Farm
from tests.faults.invariants import hold
from tests.faults.machine import until

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_a_worker_that_is_told_to_stop_ends_what_it_began_and_gives_the_rest_back(
    start_farm: Callable[..., Farm],
) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    worker = farm.work()
    farm.tend()
    held.wait()
    worker.send(signal.SIGTERM)
    until(lambda: "Warm shutdown" in worker.said, "that it has heard")
    farm.provider.release(held)
    assert worker.process.wait(30) == 0
    farm.work()
    books = hold(farm)
    assert books.started == [1] * farm.plan.size


def test_a_worker_that_is_told_to_stop_while_it_is_being_told_to_stop_goes_in_order(
    start_farm: Callable[..., Farm],
) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    worker = farm.work()
    farm.tend()
    held.wait()
    apart = random.Random(7)
    for _ in range(2_000):
        worker.send(signal.SIGTERM)
        time.sleep(apart.uniform(0.0, 3e-4))
    farm.provider.release(held)
    assert worker.process.wait(30) == 0
    farm.work()
    assert hold(farm).started == [1] * farm.plan.size


def test_an_idle_worker_that_is_told_to_stop_goes(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    worker = farm.work()
    until(lambda: "concurrency" in worker.said, "that it is up")
    assert worker.end() == 0
    farm.work()
    farm.tend()
    assert hold(farm).started == [1] * farm.plan.size


AT_ONCE = {"twice": (signal.SIGTERM, signal.SIGTERM), "by SIGQUIT": (signal.SIGQUIT,)}


@pytest.mark.parametrize("told", AT_ONCE)
def test_a_worker_that_is_told_to_stop_at_once_costs_no_trial(start_farm: Callable[..., Farm], told: str) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c")
    worker = farm.work()
    farm.tend()
    held.wait()
    for how in AT_ONCE[told]:
        worker.send(how)
        until(lambda: "shutdown" in worker.said or worker.process.poll() is not None, "that it has heard")
    farm.work()
    farm.provider.release(held)
    worker.process.wait(30)
    hold(farm)


@pytest.mark.parametrize("successor", ["is at work", "is done", "does not exist"])
def test_a_zombie_s_answer_is_kept_and_never_counted_beside_its_successor_s(
    start_farm: Callable[..., Farm], successor: Literal["is at work", "is done", "does not exist"]
) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c", times=2 if successor == "is at work" else 1)
    farm.work()
    farm.tend()
    zombie = held.wait()
    stopped = [zombie, farm.workers[0].pid]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    if successor != "does not exist":
        farm.work()
        if successor == "is at work":
            assert held.wait() != zombie
        else:
            farm.sealed()
    until(lambda: time.monotonic() - began > 3 * LEASE_S, "that three leases are over")
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    books = hold(farm, cap=None)
    trial = next(i for i in range(farm.plan.size) if farm.plan.trial(i).arm.model != "none" and (i, 1) in books.lost)
    if successor != "does not exist":
        assert next(result.attempt for result in books.results if result.trial.index == trial) == 2
