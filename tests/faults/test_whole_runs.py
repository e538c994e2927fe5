"""`evalfarm run` as a user types it: over a bucket, and with the harness killed under it."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zstandard

from evalfarm.store import Store
from tests.faults.machine import Program, argv_of, descendants, processes_of, start_program, tidied, until
from tests.faults.s3 import SECRET, Bucket

pytestmark = pytest.mark.slow

BLS = ("run", "bls", "--model")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with tidied(tmp_path):
        yield tmp_path


@pytest.fixture
def started(root: Path) -> Iterator[Callable[..., Program]]:
    """Starts a command; it is ended with the test."""
    with ExitStack() as stack:

        def start(*words: str, **environ: str) -> Program:
            environ["EVALFARM_HOME"] = str(root / "home")
            program = start_program(*words, environ=environ, log=root / "logs" / "run.log")
            stack.callback(program.end, signal.SIGKILL)
            return program

        yield start


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.decompress(data) if path.suffix == ".zst" else data


def test_a_run_over_a_bucket_is_one_as_over_a_folder_and_writes_no_secret(
    root: Path, bucket: Bucket, started: Callable[..., Program]
) -> None:
    url = "s3://bucket/runs-of-mine"
    for kind in ("answer", "cut after effect"):
        bucket.break_next(kind, "PUT .*/attempts/", times=2)
    words = (*BLS, "sim-careful", "--harness", "direct", "--harness", "loop", "--workers", "2")
    command = started(*words, EVALFARM_STORE_URL=url, **bucket.environ)
    assert command.process.wait(120) == 0, command.said
    (manifest,) = Store(url).runs()
    summary = Store(url).get_summary(manifest.run)
    assert summary is not None
    assert (summary.planned, summary.attempts, summary.infra_failed, summary.not_run) == (20, 20, 0, 0)
    assert not (root / "home" / "store").exists()
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if SECRET.encode() in plain(path)] == []
    assert [request for request in bucket.requests if SECRET in request] == []


@pytest.mark.faults
def test_a_harness_that_is_killed_is_an_outcome_of_its_trial_and_leaves_no_process(
    root: Path, started: Callable[..., Program]
) -> None:
    words = (*BLS, "sim-slow", "--harness", "codex", "--variant", "guided", "--workers", "1")
    command = started(*words)

    def sealed_in() -> list[int]:
        if not [room for room in (root / "home" / "cells").glob("*/*") if re.fullmatch("[0-9a-f]{12}", room.name)]:
            return []  # Codex is at work for the first time in a home, which others will be cloned from
        return [pid for found in processes_of(root) for pid in descendants(found.pid) if "app-server" in argv_of(pid)]

    # The innermost: what holds it, namespaces and all, is left to the product.
    os.kill(until(sealed_in, "that Codex is at work")[-1], signal.SIGKILL)
    assert command.process.wait(120) in {0, 3}, command.said
    store = Store((root / "home" / "store").as_uri())
    (manifest,) = store.runs()
    summary = store.get_summary(manifest.run)
    assert summary is not None
    assert (summary.planned, summary.infra_failed, summary.not_run) == (5, 0, 0)
    outcomes = sorted(result.outcome for result in store.results(manifest.run))
    # Before the model's first word nothing tells a harness that fell from a provider that is away: it is tried again.
    assert (summary.attempts, outcomes) in [(5, ["crashed", *["finished"] * 4]), (6, ["finished"] * 5)]
    until(lambda: not processes_of(root), "that no process is left", 20.0)
