"""Commands, run one after another under the meter, and what they used."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_server
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 580.0


@dataclass(frozen=True)
class Command:
    """A program to measure, in an environment of its own on top of what finds programs at all."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = ROOT


@dataclass(frozen=True)
class Used:
    """What one command and everything it started used."""

    wall_s: float  #: until the command ended
    cpu_s: float  #: of the whole tree, until the last of it ended
    machine_cpu_s: float  #: of the whole machine meanwhile
    pss_peak_mb: float  #: of the whole tree at its largest
    command_peak_mb: float  #: of the command's own process
    parts_cpu_s: Mapping[str, float]  #: by kind of process
    left_behind: int  #: processes that did not end


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the caller's but what programs need to be found; proxies would carry the loopback away."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "NO_COLOR": "1", **extra}


def measure(command: Command, folder: Path, *, expect: int = 0) -> Used:
    """Run a command to its end. Raises RuntimeError, with what it said, when it does not end as expected."""
    result, log = folder / "used.json", folder / "said.txt"
    result.unlink(missing_ok=True)
    with log.open("wb") as said:
        ended = subprocess.run(
            [sys.executable, str(ROOT / "bench" / "meter.py"), str(result), *command.argv],
            env=environment(command.env),
            cwd=command.cwd,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    if ended.returncode != expect or not result.exists():
        raise RuntimeError(f"{' '.join(command.argv)} ended with {ended.returncode}:\n{log.read_text()[-2000:]}")
    return Used(**json.loads(result.read_text()))


def interleaved(rounds: int, sides: Mapping[str, Callable[[], Used]]) -> dict[str, list[Used]]:
    """Every side once in each round, so that a machine that slows down slows them all."""
    seen: dict[str, list[Used]] = {name: [] for name in sides}
    for number in range(1, rounds + 1):
        for name, side in sides.items():
            seen[name].append(side())
            print(f"  round {number}: {name} {seen[name][-1].wall_s:.1f} s", file=sys.stderr, flush=True)
    return seen


def median(runs: list[Used], figure: Callable[[Used], float]) -> float:
    """The median of one figure over the rounds."""
    return statistics.median(figure(run) for run in runs)


class MockModel:
    """The mock model in a process of its own."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, delay_ms: int = 0) -> str:
        """The base URL that answers after so many milliseconds."""
        return f"http://127.0.0.1:{self._port}/" + (f"d{delay_ms}/v1" if delay_ms else "v1")

    def stats(self, path: str = "/stats") -> dict[str, Any]:
        """What was asked since the last reset. `/reset` begins anew."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answered:
            told: dict[str, Any] = json.load(answered)
        return told


@contextmanager
def mock_model() -> Iterator[MockModel]:
    """Run the mock model while the block lasts."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = subprocess.Popen([sys.executable, str(ROOT / "bench" / "mock_model.py"), str(port)])
    try:
        mock = MockModel(port)
        for _ in range(100):
            try:
                mock.stats("/reset")
                break
            except OSError:
                time.sleep(0.05)
        yield mock
    finally:
        running.kill()
        running.wait()


def fresh(folder: Path) -> Path:
    """A new folder in this one. Those of earlier calls stay until the end, whoever removes them.

    Where thousands of files were just removed, ext4 looks through all of them for each that is made in the next half
    minute: a millisecond of CPU time a trial, which no run has that follows no other.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=folder))
