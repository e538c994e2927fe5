"""Providers that fail, models that dawdle, and secrets that must stay where they are."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cases.policies import SLOW_DELAY_S
from evalfarm.embedded import find_server

pytestmark = pytest.mark.slow

MODELS = ("--harness", "loop", "--harness", "codex", "--variant", "guided")
KEY, PASSWORD = "sk-planted-key-0123456789", "planted-password-0123456789"


def test_neither_a_failing_provider_nor_a_slow_model_loses_a_trial(place: Any) -> None:
    ended = place.run("run", "bls", "--model", "sim-erratic", "--model", "sim-slow", *MODELS)
    run = ended.err.split()[1].rstrip(":")
    summary = place.summary(run)
    assert (summary.planned, summary.not_run, summary.finished) == (20, 0, True)
    assert ended.code == (4 if summary.infra_failed else 3 if summary.inconclusive else 0)
    results = place.results(run)
    assert set(results) == set(range(20))
    kept = {index: place.store.attempts_of(run, index) for index in results}
    assert all(kept[index][-1] == result.attempt for index, result in results.items())
    assert sum(map(len, kept.values())) == summary.attempts
    place.falls_quiet()

    traces = [place.store.get_trace(run, index, attempt) for index, attempts in kept.items() for attempt in attempts]
    erratic = [trace for trace in traces if trace.trial.arm.model == "sim-erratic"]
    assert any(request.tries for trace in erratic for request in trace.requests), "nothing was ever tried twice"
    slow = [cell for cell in summary.cells if cell.model == "sim-slow"]
    assert [(cell.passed, cell.planned) for cell in slow] == [(5, 5), (5, 5)]
    assert all(2 * SLOW_DELAY_S <= cell.latency_s.p50 < 4 * SLOW_DELAY_S + 5 for cell in slow)


@contextmanager
def guarded_redis(folder: Path) -> Iterator[str]:
    """A server that asks for a password, which stands in no command line."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"bind": "127.0.0.1", "port": port, "requirepass": PASSWORD, "save": "''", "dir": folder}
    server = subprocess.Popen(
        [find_server(), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.writelines(f"{name} {value}\n" for name, value in options.items())
    server.stdin.close()
    assert any("Ready to accept connections" in line for line in server.stdout)
    try:
        yield f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.stdout.close()
        server.wait()


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.decompress(data) if path.suffix == ".zst" else data


def test_no_file_and_no_command_line_holds_a_secret(
    another_place: Callable[..., Any], all_processes: Callable[[], list[Any]], tmp_path: Path
) -> None:
    seen: set[tuple[str, str]] = set()
    with guarded_redis(tmp_path / "redis") as url:
        place = another_place("place", EVALFARM_REDIS_URL=url, OPENAI_API_KEY=KEY)
        started = place.start("run", "bls", "--model", "sim-careful", *MODELS, "--workers", "2")
        while started.process.poll() is None:
            seen |= {(process.argv, process.environ) for process in all_processes() if str(place.home) in process.argv}
            seen |= {(process.argv, "") for process in place.living()}
        ended = started.end()
    assert ended.code == 0, ended.err
    assert any("app-server" in argv for argv, _ in seen), "no sealed cell was seen"
    for secret in (KEY, PASSWORD):
        assert [argv for argv, environ in seen if secret in argv or secret in environ] == []
        assert secret not in ended.out + ended.err
        files = [path for path in place.home.rglob("*") if path.is_file()]
        assert len(files) > 30
        assert [path for path in files if secret.encode() in content(path)] == []
    place.falls_quiet()
