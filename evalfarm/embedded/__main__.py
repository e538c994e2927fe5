"""The keeper: a process of its own that runs the server until its last user has gone."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from evalfarm.embedded.ending import ending_with
from evalfarm.embedded.places import Places, open_lock, try_lock
from evalfarm.embedded.server import server_command

_POLL_S = 0.05
_STOP_TIMEOUT_S = 30.0


def keep(places: Places, server: str) -> None:
    """Detaches itself, runs the server until it ends or its last user has gone, then stops it cleanly.

    The process that starts it holds start.lock meanwhile, and waits for the first of its two halves.
    """
    fcntl.flock(open_lock(places.keeper_lock), fcntl.LOCK_EX)
    server_lock = open_lock(places.server_lock)
    fcntl.flock(server_lock, fcntl.LOCK_EX)  # an earlier server may still be writing its file
    if os.fork():
        os._exit(0)  # the locks go on in the other half, which is nobody's child to wait for
    os.chdir("/")
    running = subprocess.Popen(
        server_command(server, places),
        stdin=subprocess.DEVNULL,
        pass_fds=(server_lock,),
        preexec_fn=ending_with(os.getpid()),  # noqa: PLW1509  # safe: the keeper has one thread
    )
    users_lock = open_lock(places.users_lock)
    while running.poll() is None and not try_lock(users_lock, fcntl.LOCK_EX):
        time.sleep(_POLL_S)
    _stop(running)
    if places.socket.parent != places.folder:
        places.socket.unlink(missing_ok=True)
        places.socket.parent.rmdir()


def _stop(running: subprocess.Popen[bytes]) -> None:
    running.terminate()  # Valkey flushes its append-only file on SIGTERM
    try:
        running.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


if __name__ == "__main__":
    keep(Places(Path(sys.argv[1])), sys.argv[2])
