"""A worker whose clock is an hour off: whatever has to do with time is decided by the server's."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.farm import Farm
from tests.faults.invariants import hold

pytestmark = [
    pytest.mark.slow,
    pytest.mark.faults,
    pytest.mark.skipif(
        shutil.which("cc") is None and "CI" not in os.environ,
        reason="moving a process's clock takes `cc`, a C compiler",
    ),
]


@pytest.fixture
def preload(tmp_path: Path) -> str:
    """What moves the clock of a process that it is preloaded into."""
    library = tmp_path / "clock_off.so"
    source = Path(__file__).with_name("clock_off.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


@pytest.mark.parametrize("off_s", [3_600, -3_600])
def test_a_worker_whose_clock_is_an_hour_off_loses_and_doubles_nothing(
    start_farm: Callable[..., Farm], preload: str, off_s: int
) -> None:
    farm = start_farm()
    held = farm.provider.hold("case-c", times=1)
    farm.send("case-c")
    farm.work()
    farm.work(LD_PRELOAD=preload, CLOCK_OFF_S=str(off_s))
    held.wait()
    farm.tend()
    farm.when_closed(1)  # by the other
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
    clocks = {round((trace.started_at - time.time()) / 3_600) for trace in books.traces.values()}
    assert clocks == {0, off_s // 3_600}, "both workers were at work, and one of them lives an hour off"
