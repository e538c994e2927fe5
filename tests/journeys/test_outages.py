"""Redis that dies under a run, and Redis that forgets it: the command that waits goes on by itself."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evalfarm.embedded import find_server

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
    with place.ledger(run) as ledger:
        os.kill(ledger._client.info("server")["process_id"], signal.SIGKILL)
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


@contextmanager
def server_on(port: int) -> Iterator[None]:
    """A server of the tests' own, killed at the end."""
    options = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--maxmemory-policy", "noeviction")
    with subprocess.Popen([find_server(), *options], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert any("Ready to accept connections" in line for line in server.stdout)
        try:
            yield
        finally:
            server.kill()


def test_a_scheduler_outlives_an_outage_of_redis_and_tells_of_it_once(another_place: Callable[..., Any]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = another_place("place", EVALFARM_REDIS_URL=f"redis://127.0.0.1:{port}/0")
    with server_on(port):
        started = place.start("scheduler")
        started.hear("Tending the runs in")
    started.hear(f"127.0.0.1:{port}")
    with server_on(port):
        started.hear("every open run is tended again")
        started.process.send_signal(signal.SIGTERM)
        started.end()
    (said,) = [line for line in started.told if "Redis" in line]
    assert said.startswith(f"cannot reach Redis at redis://127.0.0.1:{port}/0: ")
