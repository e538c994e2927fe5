import os
import signal
import subprocess
import sys
import time

import pytest

from evalfarm.processes import Started

ENDS = "import sys; sys.exit(7)"
STAYS = "import time; time.sleep(60)"


def started(program: str) -> Started:
    return Started([sys.executable, "-c", program])


def test_its_exit_code_is_told() -> None:
    with started(ENDS) as process:
        assert (process.wait(60), process.wait(60), process.wait()) == (7, 7, 7)


def test_one_that_ended_before_it_was_asked_for_is_told_as_well() -> None:
    with started(ENDS) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process.wait(60) == 7


def test_one_that_stays_is_waited_for_no_longer_than_was_asked() -> None:
    with started(STAYS) as process:
        began = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        assert 0.2 <= time.monotonic() - began < 30
        process.kill()
        assert process.wait(60) == -signal.SIGKILL


def test_whoever_waits_sleeps_until_the_end() -> None:
    with started("import time; time.sleep(1)") as process:
        began = time.process_time(), time.monotonic()
        process.wait(60)
        assert time.process_time() - began[0] < 0.1
        assert time.monotonic() - began[1] < 30
