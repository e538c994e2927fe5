"""Ctrl-C, kill -9 and the like: every trial is counted once, nothing stays behind, and the run can be gone on with."""

import os
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Until = Callable[[Callable[[], object], str], Any]
CODEX = ("run", "bls", "--model", "sim-careful", "--harness", "codex", "--variant", "plain", "--workers", "2")
SLOW = ("run", "bls", "--model", "sim-slow", "--harness", "codex", "--variant", "guided", "--workers", "2")
STOPPING = "Stopping. Trials at work finish first; Ctrl-C again stops them at once, to be run anew."
SHORT_LEASE = {"EVALFARM_LEASE_S": "2"}


def begun(run: str, trials: int) -> str:
    return f"Run {run}: {trials} trials; a simulated model takes part\n"


def stopped(run: str) -> str:
    return f"Stopped. What is decided is kept. Go on with: evalfarm resume {run}\n"


def when_decided(place: Any, run: str, wait_until: Until, count: int) -> None:
    """Waits until `count` trials are closed and another is at work."""
    with place.ledger(run) as ledger:

        def far_enough() -> bool:
            progress = ledger.progress()
            return bool(progress.closed >= count and progress.attempts > progress.closed)

        wait_until(far_enough, f"that {count} trials are decided and one at work")


def test_ctrl_c_lets_what_is_at_work_finish_and_resume_runs_the_rest(place: Any, wait_until: Until) -> None:
    started = place.start(*CODEX, "--repeats", "4")
    run = started.run_id()
    for decided, from_a_terminal in ((2, True), (8, False)):
        when_decided(place, run, wait_until, decided)
        started.interrupt(group=from_a_terminal)
        ended = started.end()
        assert (ended.code, ended.out) == (130, "")
        assert ended.err == f"{begun(run, 20)}\n{STOPPING}\n{stopped(run)}"
        place.falls_quiet()
        kept = [bool(place.store.attempts_of(run, index)) for index in range(20)]
        assert decided <= sum(kept) < 20
        started = place.start("resume", run)
        assert started.run_id() == run
    ended = started.end()
    assert (ended.code, ended.err) == (0, begun(run, 20))
    summary = place.summary(run)
    assert (summary.planned, summary.passed, summary.failed, summary.attempts) == (20, 12, 8, 20)
    assert set(place.results(run)) == set(range(20))
    assert {tuple(place.store.attempts_of(run, index)) for index in range(20)} == {(1,)}
    place.falls_quiet()


def test_a_second_ctrl_c_stops_at_once_and_what_was_at_work_runs_anew(
    another_place: Callable[..., Any], wait_until: Until
) -> None:
    place = another_place("place", **SHORT_LEASE)
    started = place.start(*SLOW)
    run = started.run_id()
    with place.ledger(run) as ledger:
        wait_until(lambda: ledger.progress().attempts == 2, "that both workers are at work")
    started.interrupt(group=True)
    started.hear(STOPPING)
    started.interrupt(group=True)
    ended = started.end()
    assert (ended.code, ended.out) == (130, "")
    assert ended.err.endswith(f"{STOPPING}\n{stopped(run)}")
    wait_until(lambda: not place.living(), "that every process has ended")
    # Begun a second before it, on a busy machine one may have ended by then: it is kept.
    kept = [place.store.get_trace(run, index, 1).outcome for index in range(5) if place.store.attempts_of(run, index)]
    assert kept in ([], ["finished"])

    resumed = place.run("resume", run)
    assert resumed.code == 0, resumed.err
    summary = place.summary(run)
    assert (summary.planned, summary.passed, summary.attempts) == (5, 5, 7 - len(kept))
    place.falls_quiet()


def both_slots(place: Any) -> list[Any]:
    """The two processes that run trials; none while one of them starts another, which for a moment looks like it."""
    workers = {worker.pid: worker for worker in place.workers()}
    found = [worker for worker in workers.values() if worker.parent in workers]
    return found if len(found) == 2 else []


def test_workers_killed_in_mid_run_cost_attempts_and_no_trial(
    another_place: Callable[..., Any], wait_until: Until
) -> None:
    place = another_place("place", **SHORT_LEASE)
    started = place.start(*CODEX, "--repeats", "4")
    run = started.run_id()
    when_decided(place, run, wait_until, 3)
    first, second = wait_until(lambda: both_slots(place), "that there are two processes for trials")
    os.kill(first.pid, signal.SIGKILL)  # the process that runs trials: its worker starts another
    when_decided(place, run, wait_until, 7)
    os.kill(second.pid, signal.SIGKILL)
    ended = started.end()
    assert (ended.code, ended.err) == (0, begun(run, 20))
    summary = place.summary(run)
    assert (summary.planned, summary.passed, summary.failed) == (20, 12, 8)
    assert 20 <= summary.attempts <= 22
    results = place.results(run)
    assert set(results) == set(range(20))
    assert all(place.store.attempts_of(run, index)[-1] == result.attempt for index, result in results.items())
    wait_until(lambda: not place.living(), "that every process has ended")


def test_a_run_outlives_its_workers_and_its_command(another_place: Callable[..., Any], wait_until: Until) -> None:
    place = another_place("place", **SHORT_LEASE)
    started = place.start(*CODEX, "--repeats", "2")
    run = started.run_id()
    when_decided(place, run, wait_until, 1)
    for worker in place.workers():
        os.kill(worker.pid, signal.SIGKILL)
    ended = started.end()
    assert (ended.code, ended.out) == (4, "")
    told = re.escape(f"{begun(run, 10)}{stopped(run)}Error: the local worker has stopped\n")
    hint = re.escape(f"\nhint: its log is in {place.home}/logs; evalfarm doctor checks the machine\n")
    assert re.fullmatch(told + rf"{re.escape(run)}-worker\.log: .*\n" + hint, ended.err)
    wait_until(lambda: not place.living(), "that every process has ended")

    started = place.start("resume", run)
    assert started.run_id() == run
    when_decided(place, run, wait_until, 3)
    started.process.kill()
    started.end()
    wait_until(lambda: not place.living(), "that every process has ended")

    resumed = place.run("resume", run)
    assert resumed.code == 0, resumed.err
    summary = place.summary(run)
    assert (summary.planned, summary.passed, summary.failed) == (10, 6, 4)
    assert 10 <= summary.attempts <= 14
    assert set(place.results(run)) == set(range(10))
    wait_until(lambda: not place.living(), "that every process has ended")
