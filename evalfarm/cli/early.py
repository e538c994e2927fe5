"""A process that `evalfarm run` will need, started while the command still imports what it needs itself.

A worker imports for three quarters of a second. Started with the first word of the command line it does that on the
other core, and then waits on standard input to be told what to do (`beside/orders.py`).
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from evalfarm.processes import Started

#: With one of these nothing is run.
_NO_RUN = {"-h", "--help", "--dry-run"}

_waiting: "list[subprocess.Popen[bytes]]" = []


def is_wanted(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether a command line, by the look of it, will have workers of its own."""
    return list(argv[:1]) == ["run"] and not _NO_RUN.intersection(argv) and "EVALFARM_REDIS_URL" not in environ


def start(argv: Sequence[str]) -> None:
    """Start what a command line will need."""
    if is_wanted(argv, os.environ):
        _waiting.append(worker_to_be(os.environ))


def take() -> "subprocess.Popen[bytes] | None":
    """The process that waits, which is the caller's now; None: there is none."""
    return _waiting.pop() if _waiting else None


def stop() -> None:
    """End what nobody has taken."""
    if (waiting := take()) is not None:
        with waiting:
            waiting.kill()


def worker_to_be(environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A worker that does what it is ordered until it is told to be one, and ends with its standard input.

    What it stands on goes by environment, never by argument: a URL may hold a password.
    """
    return ordered("evalfarm", "worker", "--ordered", environ=environ)


def ordered(*words: str, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """`python -m WORDS…`, which is told what to do on standard input and answers on standard output; no Ctrl-C of ours
    reaches it.
    """
    return Started(
        [sys.executable, "-m", *words],
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
