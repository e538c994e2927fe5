"""Workers of another version in the same farm: what they may not run they leave to others, and it costs nothing."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evalfarm.runstate import connect, refusal_of
from tests.faults.farm import Farm
from tests.faults.invariants import hold
from tests.faults.machine import ROOT, until

pytestmark = [pytest.mark.slow, pytest.mark.faults]

Change = tuple[str, str, str]
"""A file, and a text in it that is replaced by another."""

OTHER_GRADERS: Sequence[Change] = [("graders/tool_route.py", "VERSION = ", 'VERSION = "another" + ')]
NEWER_CONTRACTS: Sequence[Change] = [
    ("evalfarm/contracts/run.py", "schema_version: Literal[1] = 1", "schema_version: Literal[2] = 2"),
    ("evalfarm/documents.py", "SCHEMA_VERSION = 1", "SCHEMA_VERSION = 2"),
]


def changed_code(place: Path, changes: Sequence[Change]) -> str:
    """A folder to import from that holds this project's code but for these changes."""
    for package in ("evalfarm", "cases", "scheduler", "worker", "graders"):
        for file in (path for path in (ROOT / package).rglob("*") if path.is_file()):  # what is compiled, too
            target = place / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(file)
    for name, old, new in changes:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert old in text
        (place / name).unlink()
        (place / name).write_text(text.replace(old, new), encoding="utf-8")
    return str(place)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (OTHER_GRADERS, "with other graders than this worker's"),
        (NEWER_CONTRACTS, "is of schema version 1; evalfarm 0.1.0 reads 2"),
    ],
    ids=["other graders", "newer contracts"],
)
def test_a_worker_of_another_version_refuses_a_run_says_so_and_loses_nothing(
    start_farm: Callable[..., Farm], tmp_path: Path, changes: Sequence[Change], why: str
) -> None:
    farm = start_farm()
    other = farm.work(PYTHONPATH=changed_code(tmp_path / "code", changes))
    farm.tend()
    with connect(farm.broker.url) as client:
        told = until(lambda: refusal_of(client, farm.plan.run), "that it has refused the run")
        assert why in told
        assert farm.progress().attempts == 0
    status = farm.command("status", farm.plan.run, "--json")
    assert status.process.wait(60) == 0
    assert json.loads(status.said)["refused"] == told
    farm.work()
    farm.sealed()
    assert other.process.poll() is None
    assert hold(farm).started == [1] * farm.plan.size
