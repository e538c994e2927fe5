"""Redis that dies under a run, and Redis that forgets it: the command that waits goes on by itself."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Until = Callable[[Callable[[], object], str], Any]
LOOP = ("run", "bls", "--model", "sim-slow", "--harness", "loop", "--variant", "plain", "--workers", "1")


def half_done(place: Any, run: str, wait_until: Until) -> None:
    with place.ledger(run) as ledger:
        wait_until(lambda: ledger.progress().attempts >= 3, "that three trials have begun")


def whole(place: Any, run: str) -> None:
    summary = place.summary(run)
    assert (summary.planned, summary.not_run, summary.infra_failed) == (10, 0, 0)
    assert set(place.results(run)) == set(range(10))
    place.falls_quiet()


def test_the_embedded_server_is_started_again_when_it_dies(
    another_place: Callable[..., Any], wait_until: Until
) -> None:
    place = another_place("place", EVALFARM_LEASE_S="2")
    started = place.start(*LOOP, "--repeats", "2")
    run = started.run_id()
    half_done(place, run, wait_until)
    (server,) = [found for found in place.living() if "valkey-server" in found.argv.split()[0]]
    os.kill(server.pid, signal.SIGKILL)
    ended = started.end()
    assert ended.code in (0, 3), ended.err
    assert "trying again for 5 minutes" in ended.err
    whole(place, run)


def test_a_run_that_redis_forgets_is_rebuilt_and_what_is_at_work_counts(
    another_place: Callable[..., Any], wait_until: Until
) -> None:
    place = another_place("place", EVALFARM_LEASE_S="2")
    started = place.start(*LOOP, "--repeats", "2")
    run = started.run_id()
    half_done(place, run, wait_until)
    with place.ledger(run) as ledger:
        ledger._client.flushall()
    ended = started.end()
    assert ended.code in (0, 3), ended.err
    assert f"Redis holds no state of run {run}: rebuilding it from file://" in ended.err
    whole(place, run)


def test_sigterm_is_as_orderly_as_ctrl_c(place: Any, wait_until: Until) -> None:
    started = place.start(*LOOP, "--repeats", "2")
    run = started.run_id()
    half_done(place, run, wait_until)
    started.process.terminate()
    ended = started.end()
    assert ended.code == 130
    assert ended.err.endswith(f"Stopped. What is decided is kept. Go on with: evalfarm resume {run}\n")
    resumed = place.run("resume", run)
    assert resumed.code in (0, 3), resumed.err
    whole(place, run)
    assert {tuple(place.store.attempts_of(run, index)) for index in range(10)} == {(1,)}
