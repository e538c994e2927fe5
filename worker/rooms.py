"""Folders of processes under the farm's home, each locked for as long as its process lives."""

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TextIO

_LOCK = ".lock"


def new_room(cells: Path) -> Path:
    """A path in `cells` that no other process has."""
    return cells / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"


def open_room(room: Path) -> TextIO:
    """Make a room, and clear away those of processes that were killed; its lock, for `close_room`."""
    room.parent.mkdir(parents=True, exist_ok=True)
    with _alone(room.parent):
        _sweep(room.parent)
        room.mkdir()
        lock = (room / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def close_room(room: Path, lock: TextIO) -> None:
    """Remove a room. Never by itself, as a context does that is dropped: a process is forked from one that has one."""
    lock.close()
    shutil.rmtree(room, ignore_errors=True)


def keep_temporary_files(cells: Path) -> None:
    """Have this process and its children put them into a room, which is cleared away if it is killed.

    Celery's pool has a folder of them for as long as it lives.
    """
    room = new_room(cells)
    lock = open_room(room)
    tempfile.tempdir = str(room)
    Finalize(None, close_room, (room, lock), exitpriority=-101)  # at -100 multiprocessing removes what it has in there


def sweep(cells: Path) -> None:
    """Remove the rooms of worker processes that no longer live, which is to say that hold no lock on them.

    The number in a room's name says nothing: a worker in another container has numbers of its own.
    """
    if cells.exists():
        with _alone(cells):
            _sweep(cells)


@contextmanager
def _alone(cells: Path) -> Iterator[None]:
    # A room that is made is there before its lock is held.
    with cells.with_suffix(_LOCK).open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        yield


def _sweep(cells: Path) -> None:
    for lock in cells.glob(f"*/{_LOCK}"):
        with lock.open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(lock.parent, ignore_errors=True)
