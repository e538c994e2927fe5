import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.rooms import close_room, new_room, open_room

pytestmark = pytest.mark.slow

#: As a worker does: a pool's folder, and a process that is forked while it is there and forgets what it is to clear up.
WORKER = """
import os, sys
from multiprocessing import util
from pathlib import Path
from worker.rooms import keep_temporary_files
keep_temporary_files(Path(sys.argv[1]))
made = util.get_temp_dir()
if not (child := os.fork()):
    util._finalizer_registry.clear()
    os._exit(0)
os.waitpid(child, 0)
print(made, os.path.isdir(made), flush=True)
sys.stdin.read()
"""

Begin = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Starts a worker whose temporary folder is not the farm's."""
    (tmp_path / "tmp").mkdir()
    argv = [sys.executable, "-c", WORKER, str(tmp_path / "home" / "cells")]
    env = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    pipe = subprocess.PIPE
    return lambda: subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_worker_that_ends_leaves_no_temporary_file(begin: Begin, tmp_path: Path) -> None:
    out, err = begin().communicate(timeout=60)
    made, there = out.split()
    assert (Path(made).parent.parent, there, err) == (tmp_path / "home" / "cells", "True", "")
    assert (files_under(tmp_path / "tmp"), files_under(tmp_path / "home")) == ([], ["cells", "cells.lock"])


def test_what_a_killed_worker_leaves_lies_under_the_home_and_is_cleared_away_by_the_next(
    begin: Begin, tmp_path: Path
) -> None:
    with begin() as process:
        assert process.stdout is not None
        room = Path(process.stdout.readline().split()[0]).parent
        process.kill()
    assert (files_under(tmp_path / "tmp"), room.is_dir()) == ([], True)
    mine = new_room(room.parent)
    lock = open_room(mine)
    assert list(room.parent.iterdir()) == [mine]
    close_room(mine, lock)
