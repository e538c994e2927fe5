"""The whole product as a user has it: commands as processes, real workers, a real Valkey, the real Codex."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import pytest

from evalfarm.contracts.verdict import VERDICTS, Result, RunSummary
from evalfarm.embedded.places import Places
from evalfarm.runstate import Ledger, connect
from evalfarm.store import Store

PATIENCE_S = 120.0

#: Folders of a place that stay as empty as they are made.
EMPTY = ("cwd", "user", "tmp")

T = TypeVar("T")


def until(look: Callable[[], T], what: str) -> T:
    """What `look` gives once it is true; it is looked at often, and not for ever."""
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < deadline, f"in {PATIENCE_S:g} s it did not come to pass: {what}"
        time.sleep(0.02)
    return seen


@dataclass(frozen=True)
class Process:
    """A process of this machine, as /proc shows it."""

    pid: int
    parent: int
    argv: str
    environ: str


def processes() -> list[Process]:
    """Every process that can be looked at."""
    return [found for folder in Path("/proc").glob("[0-9]*") if (found := _process(folder)) is not None]


def _process(folder: Path) -> Process | None:
    try:
        argv, environ = (
            folder.joinpath(name).read_bytes().decode("utf-8", "replace") for name in ("cmdline", "environ")
        )
        parent = folder.joinpath("stat").read_text().rpartition(")")[2].split()[1]
    except (OSError, ProcessLookupError):
        return None
    return Process(int(folder.name), int(parent), argv.replace("\0", " ").strip(), environ.replace("\0", "\n"))


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Started:
    """A command at work, in a session of its own."""

    process: "subprocess.Popen[str]"
    told: list[str] = field(default_factory=list)

    def hear(self, words: str) -> str:
        """The next line on standard error that holds these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} was never said, but: {''.join(self.told)}")

    def run_id(self) -> str:
        """The run that the command says it started."""
        return self.hear("Run ").split()[1].rstrip(":")

    def interrupt(self, *, group: bool) -> None:
        """Ctrl-C, as a terminal gives it to a whole group, or as a supervisor gives it to one process."""
        (os.killpg if group else os.kill)(self.process.pid, signal.SIGINT)

    def end(self) -> Ended:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Ended(self.process.returncode, out, "".join(self.told) + err)


@dataclass(frozen=True)
class Place:
    """One user's machine: a home, an empty working folder, an environment that holds nothing else of ours."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def cwd(self) -> Path:
        return self.root / "cwd"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVALFARM_", "OPENAI_"))}
        for empty in EMPTY:
            (self.root / empty).mkdir(parents=True, exist_ok=True)
        here = {"HOME": "user", "TMPDIR": "tmp", "EVALFARM_HOME": "home"}
        return kept | {name: str(self.root / folder) for name, folder in here.items()} | self.extra

    def run(self, *words: str) -> Ended:
        """Run a command to its end."""
        return self.start(*words).end()

    def start(self, *words: str) -> Started:
        """Start a command."""
        environ = self.environ
        process = subprocess.Popen(
            # Whoever starts the tests in the background has Ctrl-C ignored, and it would be so in here.
            ["env", "--default-signal=INT", sys.executable, "-m", "evalfarm", *words],
            cwd=self.cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Started(process)

    @property
    def store(self) -> Store:
        return Store(self.extra.get("EVALFARM_STORE_URL", f"file://{self.home}/store"))

    def summary(self, run: str) -> RunSummary:
        """The summary of a sealed run; its counts are held to add up."""
        summary = self.store.get_summary(run)
        assert summary is not None
        assert sum(getattr(summary, verdict) for verdict in VERDICTS) == summary.planned
        return summary

    def results(self, run: str) -> dict[int, Result]:
        """Every trial's result; each is held to be counted once."""
        results = list(self.store.results(run))
        assert [index for index, times in Counter(result.trial.index for result in results).items() if times > 1] == []
        return {result.trial.index: result for result in results}

    @contextmanager
    def ledger(self, run: str) -> Iterator[Ledger]:
        """The ledger of a run on the embedded server."""
        socket = Places(self.home.resolve() / "redis").socket
        with connect(self.extra.get("EVALFARM_REDIS_URL", f"unix://{quote(str(socket))}")) as client:
            yield Ledger(client, run)

    def living(self) -> list[Process]:
        """The processes that have to do with this place: our own, servers, sealed cells, Codex."""
        return [found for found in processes() if str(self.home) in found.argv or str(self.home) in found.environ]

    def workers(self) -> list[Process]:
        """The main processes of this place's workers, and the processes that they run trials in."""
        return [found for found in self.living() if "evalfarm worker" in found.argv]

    def falls_quiet(self) -> None:
        """Hold that nothing of this place goes on, and that nothing of it lies outside its home."""
        until(lambda: not self.living(), "that every process has ended")
        socket = Places(self.home.resolve() / "redis").socket
        assert [entry.name for name in EMPTY for entry in (self.root / name).iterdir()] == []
        assert socket.parent == self.home / "redis" or not socket.parent.exists()
        assert list((self.home / "cells").glob("*")) == []


@contextmanager
def tidied(root: Path) -> Iterator[Path]:
    """Whatever a test that fails leaves behind under a folder is ended with it."""
    try:
        yield root
    finally:
        for left in (found for found in processes() if f"{root}/" in found.argv + found.environ):
            with suppress(ProcessLookupError):
                os.kill(left.pid, signal.SIGKILL)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with tidied(tmp_path):
        yield Place(tmp_path)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One place for all tests of a module: for those that only look."""
    with tidied(tmp_path_factory.mktemp("place")) as root:
        yield Place(root)


@pytest.fixture
def another_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    with tidied(tmp_path):
        yield lambda name, **extra: Place(tmp_path / name, extra)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object], str], object]:
    return until


@pytest.fixture
def all_processes() -> Callable[[], list[Process]]:
    return processes
