"""A child that is stopped in order however its parent dies."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def ending_with(parent: int) -> Callable[[], None] | None:
    """What a child does before it becomes its program (`preexec_fn`): have SIGTERM sent to it when `parent` is gone.

    For a parent with one thread: the kernel sends it when the thread ends that started the child. None outside Linux.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def tie() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the tie
            os._exit(1)

    return tie
