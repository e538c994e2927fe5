"""Files that a person names, read only where they are files: a device never ends, and a pipe waits for its writer."""

import errno
import os
import stat
from pathlib import Path


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file, through links too.

    Raises OSError, at once, for one that cannot be read and for whatever else has this name.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        return file.read()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
