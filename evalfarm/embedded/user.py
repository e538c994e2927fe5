"""A user's side of the embedded server: join it, or start its keeper."""

import fcntl
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from evalfarm.embedded.places import Places, open_lock, try_lock
from evalfarm.embedded.server import find_server
from evalfarm.errors import BrokerUnavailable
from evalfarm.processes import Started

_START_TIMEOUT_S = 60.0  # a large append-only file takes a while to load
_POLL_S = 0.005

_held: set[int] = set()  # descriptors of the locks that this process holds


def _let_go_after_fork() -> None:
    # A lock belongs to the open file, which a fork shares: a worker's child would keep the server alive.
    # Closing it here leaves the parent's lock alone; unlocking it would not.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_after_fork)


@contextmanager
def embedded_redis(home: Path) -> Iterator[str]:
    """The URL (`unix:///…`) of this home's server, which runs at least as long as the block.

    A child forked inside the block may use the server, but does not keep it running.
    Raises BrokerUnavailable when there is no server to start, or it does not start.
    """
    places = Places(home.resolve() / "redis")
    _make_private(places.folder)
    # Waits while a keeper that was left by its last user stops its server, some 100 ms.
    with _locked(places.users_lock, fcntl.LOCK_SH):
        with _locked(places.start_lock, fcntl.LOCK_EX):
            _make_private(places.socket.parent)
            if not (_kept(places) and _answers(places.socket)):
                _start(places, find_server())
        yield f"unix://{quote(str(places.socket))}"


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            raise PermissionError(f"{folder} is not a folder of this user")
        folder.chmod(0o700)
    except OSError as error:
        raise BrokerUnavailable(
            f"cannot keep run state in {folder}: {error}",
            hint="set EVALFARM_HOME to a folder of yours, or EVALFARM_REDIS_URL to a running server",
        ) from error


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    descriptor = open_lock(path)
    _held.add(descriptor)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        if descriptor in _held:  # it is not, in a child forked meanwhile
            _held.remove(descriptor)
            os.close(descriptor)


def _kept(places: Places) -> bool:
    """Whether a keeper lives; for a holder of start.lock, or this look could stand in a new keeper's way."""
    descriptor = open_lock(places.keeper_lock)
    try:
        return not try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _answers(path: Path) -> bool:
    """Whether a server has loaded its data and serves."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _start(places: Places, server: str) -> None:
    _launch_keeper(places, server)
    for _ in range(round(_START_TIMEOUT_S / _POLL_S)):
        if not _kept(places):
            break
        if _answers(places.socket):
            return
        time.sleep(_POLL_S)
    tail = "\n".join(places.log.read_text(errors="replace").splitlines()[-10:])
    raise BrokerUnavailable(
        f"the embedded server {server} did not start; {places.log} ends with:\n{tail}",
        hint="mend what it names, or set EVALFARM_REDIS_URL to a running server",
    )


def _launch_keeper(places: Places, server: str) -> None:
    with places.log.open("wb") as output:
        launched = Started(
            [sys.executable, "-m", "evalfarm.embedded", str(places.folder), server],
            cwd=Path(__file__).parents[2],  # this very evalfarm, installed or not
            env={},  # no key stays behind in a process that outlives this one
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the users
        )
        try:
            launched.wait(_START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            launched.kill()
            launched.wait()
            output.write(b"an earlier server is still running, and does not end\n")
