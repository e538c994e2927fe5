"""The files of one home's server that its users and its keeper agree on."""

import fcntl
import hashlib
import os
from pathlib import Path

_LONGEST_SOCKET_PATH = 103  # bytes: macOS allows 104 with the closing zero, Linux 108


class Places:
    """Where everything is, given `home/redis` as a resolved path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users_lock = folder / "users.lock"
        self.start_lock = folder / "start.lock"
        self.keeper_lock = folder / "keeper.lock"
        self.server_lock = folder / "server.lock"
        self.log = folder / "server.log"
        self.socket = folder / "redis.sock"
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET_PATH:
            # Not tempfile's choice, which depends on each process's environment: all users must find one place.
            name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
            self.socket = Path("/tmp") / f"evalfarm-{name}" / "redis.sock"  # noqa: S108  # its folder is made private


def open_lock(path: Path) -> int:
    """A descriptor to lock; like all of Python's it is closed in programs that this process starts."""
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def try_lock(descriptor: int, how: int) -> bool:
    """Whether the lock was free for `how` (fcntl.LOCK_SH or LOCK_EX), and so is held now."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
