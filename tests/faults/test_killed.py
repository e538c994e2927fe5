"""SIGKILL: of the process that runs a trial, of its worker, of what runs inside, at every moment of a trial's life."""

import os
import signal
from collections.abc import Callable
from typing import Literal

import pytest

from tests.faults.farm import Farm
from tests.faults.invariants import hold
from tests.faults.machine import processes_of, until
from tests.faults.moments import MOMENTS, Moment, caught

pytestmark = [pytest.mark.slow, pytest.mark.faults]


@pytest.mark.parametrize("victim", ["the process that runs it", "its worker"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_costs_at_most_an_attempt_and_never_a_trial(
    start_farm: Callable[..., Farm], moment: Moment, victim: Literal["the process that runs it", "its worker"]
) -> None:
    farm = start_farm()
    with caught(farm, moment) as wait:
        for _ in range(2):
            farm.work()
        farm.tend()
        at = wait()
        os.kill(at.worker if victim == "its worker" else at.process, signal.SIGKILL)
        at.let_go()
        books = hold(farm)
    counted = next(result for result in books.results if result.trial.index == at.trial)
    # A payload that is stored is adopted, and never paid for again; an attempt that was not claimed is none.
    again = moment == "while it runs"
    assert (books.started[at.trial], counted.attempt) == ((2, 2) if again else (1, 1))


def test_a_plugin_s_server_that_is_killed_in_mid_run_costs_no_trial(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    # Two at once: what happens to a server that one attempt has for itself is that attempt's own doing.
    held = [farm.provider.hold(case) for case in ("case-c", "case-g")]
    farm.send("case-c", "case-g")
    farm.work()
    for one in held:
        one.wait()
    farm.tend()
    servers = [found for found in processes_of(farm.root) if "lookup.py" in found.argv]
    assert servers
    for server in servers:
        os.kill(server.pid, signal.SIGKILL)
    for one in held:
        farm.provider.release(one)
    hold(farm)


def of_workers(farm: Farm) -> list[str]:
    """What workers and the plugin's servers that they start go by."""
    return [found.argv for found in farm.living() if "worker" in found.argv or "lookup.py" in found.argv]


def test_both_workers_killed_at_once_are_replaced_by_another(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = [farm.provider.hold(case) for case in ("case-b", "case-e")]
    for _ in range(2):
        farm.work()
    farm.tend()
    for one in held:
        one.wait()
    for worker in farm.workers:
        worker.process.kill()
        worker.process.wait()
    until(lambda: not of_workers(farm), "that what they started is gone with them")
    farm.work()
    hold(farm)
