"""Trials that harm what runs them: one that kills it, one that hangs, one that eats its memory."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.farm import Farm, plan_of
from tests.faults.invariants import hold
from tests.faults.machine import argv_of, descendants, until

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_a_trial_that_kills_its_process_each_time_is_given_up_and_the_others_are_run(
    start_farm: Callable[..., Farm],
) -> None:
    farm = start_farm()
    farm.provider.hold("case-c", times=99, kills=True)
    for _ in range(2):
        farm.work()
    farm.tend()
    books = hold(farm, infra_failed=1)
    given_up = next(result for result in books.results if result.verdict == "infra_failed")
    assert (given_up.trial.case, given_up.attempt, books.started[given_up.trial.index]) == ("case-c", 3, 3)


def test_a_tool_that_hangs_and_ignores_sigterm_ends_with_its_attempt(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm(plan_of(4, direct=False, timeout_s=3.0, hangs="case-c"))
    farm.work()
    farm.tend()
    books = hold(farm, failed=1)
    late = next(result for result in books.results if result.verdict == "failed")
    assert (late.trial.case, late.outcome) == ("case-c", "timed_out")


def test_a_process_that_hangs_is_killed_with_all_that_it_started_once_its_message_s_time_is_up(
    start_farm: Callable[..., Farm],
) -> None:
    farm = start_farm(plan_of(4))
    held = farm.provider.hold("case-c")
    farm.send("case-c", time_limit_s=10.0)
    worker = farm.work()
    hung = held.wait()
    farm.tend()
    started = descendants(hung)
    os.kill(hung, signal.SIGSTOP)
    assert [pid for pid in started if "lookup.py" in argv_of(pid)]
    until(lambda: not any(map(argv_of, (hung, *started))), "that it and all that it started is gone")
    books = hold(farm)
    assert "Hard time limit (10.0s) exceeded" in worker.said
    trial = next(result.trial.index for result in books.results if books.started[result.trial.index] > 1)
    assert (farm.plan.trial(trial).case, sum(books.started)) == ("case-c", farm.plan.size + 1)


def test_a_trial_that_eats_its_process_s_memory_takes_no_other_with_it(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm(plan_of(4))
    farm.provider.floods.add("case-c")
    worker = farm.work()
    until(worker.children, "that it has a process for trials")
    status = Path(f"/proc/{worker.pid}/status").read_text()
    used = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmData"))) << 10
    for process in (worker.pid, *worker.children()):
        resource.prlimit(process, resource.RLIMIT_DATA, (used + (512 << 20), used + (512 << 20)))
    farm.tend()
    books = hold(farm, infra_failed=1)
    assert next(result.trial.case for result in books.results if result.verdict == "infra_failed") == "case-c"
