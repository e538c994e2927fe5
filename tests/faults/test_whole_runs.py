"""`evalfarm run` as a user types it: over a bucket, and with the harness killed under it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from evalfarm.store import Store
from tests.faults.machine import Program, processes_of, start_program, tidied, until
from tests.faults.s3 import SECRET, Bucket

pytestmark = pytest.mark.slow

BLS = ("run", "bls", "--model")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with tidied(tmp_path):
        yield tmp_path


def started(root: Path, *words: str, **environ: str) -> Program:
    return start_program(
        *words, environ={"EVALFARM_HOME": str(root / "home"), **environ}, log=root / "logs" / "run.log"
    )


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.decompress(data) if path.suffix == ".zst" else data


def test_a_run_over_a_bucket_is_one_as_over_a_folder_and_writes_no_secret(root: Path, bucket: Bucket) -> None:
    url = "s3://bucket/runs-of-mine"
    for kind in ("answer", "cut after effect"):
        bucket.break_next(kind, "PUT .*/attempts/", times=2)
    words = (*BLS, "sim-careful", "--harness", "direct", "--harness", "loop", "--workers", "2")
    command = started(root, *words, EVALFARM_STORE_URL=url, **bucket.environ)
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
def test_a_harness_that_is_killed_is_an_outcome_of_its_trial_and_leaves_no_process(root: Path) -> None:
    words = (*BLS, "sim-slow", "--harness", "codex", "--variant", "guided", "--workers", "1")
    command = started(root, *words)

    def sealed_in() -> list[int]:
        return [found.pid for found in processes_of(root) if "app-server" in found.argv and "bwrap" not in found.argv]

    for pid in until(sealed_in, "that Codex is at work"):
        os.kill(pid, signal.SIGKILL)
    assert command.process.wait(120) in {0, 3}, command.said
    store = Store((root / "home" / "store").as_uri())
    (manifest,) = store.runs()
    summary = store.get_summary(manifest.run)
    assert summary is not None
    assert (summary.planned, summary.attempts, summary.infra_failed, summary.not_run) == (5, 5, 0, 0)
    outcomes = sorted(result.outcome for result in store.results(manifest.run))
    assert outcomes == ["crashed", *["finished"] * 4]
    until(lambda: not processes_of(root), "that no process is left", 20.0)
