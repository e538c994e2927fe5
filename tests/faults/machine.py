"""The processes that a test starts and breaks: a Valkey, workers, schedulers; and what /proc says of them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import redis

from evalfarm.embedded import find_server
from evalfarm.runstate import connect

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90.0
T = TypeVar("T")


def until(look: Callable[[], T], what: str, patience_s: float = PATIENCE_S) -> T:
    """What `look` gives once it is true; it is looked at often, and not for ever."""
    deadline = time.monotonic() + patience_s
    while not (seen := look()):
        assert time.monotonic() < deadline, f"in {patience_s:g} s it did not come to pass: {what}"
        time.sleep(0.02)
    return seen


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    pid: int
    parent: int
    argv: str


def processes_of(root: Path) -> list[Process]:
    """Those that have to do with a folder: by their arguments or their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            argv, environ = folder.joinpath("cmdline").read_bytes(), folder.joinpath("environ").read_bytes()
            state, parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[:2]
            if f"{root}/".encode() in argv + environ and state != "Z" and int(folder.name) != os.getpid():
                words = argv.replace(b"\0", b" ").decode("utf-8", "replace").strip()
                found.append(Process(int(folder.name), int(parent), words))
    return found


def argv_of(pid: int) -> str:
    """A process's words; none when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return ""


def parent_of(pid: int) -> int:
    """The process that started a process; 0 when either is gone."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def children_of(pid: int) -> list[int]:
    """The processes that a process started, from whatever thread."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if parent_of(int(path.name)) == pid]


def descendants(pid: int) -> list[int]:
    """All below a process, the nearest first."""
    children = children_of(pid)
    return children + [below for child in children for below in descendants(child)]


def owner_of(port: int, remote: int) -> int:
    """The process whose end of a local connection has this port, and the other end that one.

    Its own port is not enough: another test's process may have the same one, towards another server.
    """
    ends = f":{port:04X}", f":{remote:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    inode = next(row[9] for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1]))
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(descriptor) == f"socket:[{inode}]":
                return int(descriptor.parts[2])
    raise AssertionError(f"nobody holds the connection from port {port} to {remote}")


@dataclass
class Broker:
    """A Valkey of the test's own on a TCP port, with its append-only file in a folder."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it on what its file holds, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "appendonly": "yes", "save": ""}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen([find_server(), *words], stdout=log, stderr=log)
        until(self._answers, "that the broker answers")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal, and wait for that."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        with connect(self.url) as client, suppress(redis.RedisError):
            return bool(client.ping())
        return False


@dataclass
class Program:
    """One of our commands at work, in a session of its own, its output in a log."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def children(self) -> list[int]:
        """The processes that it started itself: of a worker, those that run trials."""
        return children_of(self.pid)

    def send(self, how: signal.Signals) -> None:
        self.process.send_signal(how)

    def end(self, how: signal.Signals = signal.SIGTERM, patience_s: float = PATIENCE_S) -> int:
        """Its exit code, after a signal where it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(patience_s)


def start_program(*words: str, environ: dict[str, str], log: Path) -> Program:
    """`evalfarm WORDS` with this environment and nothing else of ours in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVALFARM_", "OPENAI_", "AWS_"))}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["env", "--default-signal=INT", sys.executable, "-m", "evalfarm", *words],
            env=kept | {"PYTHONPATH": str(ROOT)} | environ,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    return Program(process, log)


@contextmanager
def tidied(root: Path) -> Iterator[Path]:
    """Whatever is left of a folder's processes when the block ends is killed."""
    try:
        yield root
    finally:
        for left in processes_of(root):
            with suppress(ProcessLookupError):
                os.kill(left.pid, signal.SIGKILL)
