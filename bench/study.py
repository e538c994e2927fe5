"""A large study: 200 repeats of 108 cases at two levels, stopped twice in different ways, resumed, and summed up.

The whole farm is killed after a third of its trials, Ctrl-C ends it after two thirds, and the last resume sums it up.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from bench.figures import Figure, at_least, at_most
from bench.measuring import ROOT, Used, environment, fresh
from bench.meter import descendants
from bench.sides import CASES, Sides
from evalfarm.broker import ALL_QUEUES
from evalfarm.contracts.verdict import VERDICTS
from evalfarm.embedded.places import Places
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import Limits, OpenRun, connect, view_farm
from evalfarm.store import Store

LEVELS = ("loop", "direct")
_REPEATS = 200
_LABEL = "study"
_LOOK_EVERY_S = 0.2
_STANDSTILL_S = 120.0  # without a trial that closes
_MB = 1024 * 1024

Stop = Callable[["Watched"], None]


@dataclass
class Watched:
    """A command under the meter, and what was seen of its run in Redis."""

    meter: "subprocess.Popen[bytes]"
    home: Path
    closed: int = 0
    moved_at: float = field(default_factory=time.monotonic)
    redis_peak_bytes: int = 0

    def look(self) -> int:
        """How many trials are closed by now, as far as it can be asked. Raises RuntimeError when nothing goes on."""
        with suppress(BrokerUnavailable):
            socket = Places(self.home.resolve() / "redis").socket
            with connect(f"unix://{quote(str(socket))}") as client:
                farm = view_farm(client, Limits(), ALL_QUEUES)
            self.redis_peak_bytes = max(self.redis_peak_bytes, farm.memory_used_bytes)
            self._note(farm.runs)
        if time.monotonic() - self.moved_at > _STANDSTILL_S:
            raise RuntimeError(f"no trial closed for {_STANDSTILL_S:.0f} s, after {self.closed:,}")
        return self.closed

    def _note(self, runs: tuple[OpenRun, ...]) -> None:
        closed = sum(view.closed for view in runs)
        if closed > self.closed:
            self.closed, self.moved_at = closed, time.monotonic()


def study(sides: Sides, _rounds: int, share: float) -> list[Figure]:
    """Every trial is counted once after it; what it took is that of the three commands together."""
    repeats = max(2, round(_REPEATS * share))
    planned = CASES * repeats * len(LEVELS)
    folder = fresh(sides.work / "study")
    levels = [word for level in LEVELS for word in ("--harness", level)]
    asked = ["run", "bls-108", "--model", "sim-careful", *levels, "--variant", "guided", "--repeats", str(repeats)]
    killed = _phase(folder, [*asked, "--label", _LABEL], planned // 3, _kill)
    stopped = _phase(folder, ["resume", _LABEL], 2 * planned // 3, _interrupt)
    ended = _phase(folder, ["resume", _LABEL], math.inf, None)
    attempts = _counted(folder / "home", planned)
    return _figures((killed, stopped, ended), _stored_bytes(folder / "home"), planned, attempts)


@dataclass(frozen=True)
class Phase:
    """One command of the study."""

    used: Used
    redis_peak_bytes: int
    last_closed_s: float  #: before its end, when its last trial closed


def _phase(folder: Path, words: list[str], until: float, stop: Stop | None) -> Phase:
    """Run a command under the meter until so many trials are closed, and stop it then; without `stop` to its end."""
    with _metered(folder, words) as watched:
        while watched.meter.poll() is None and watched.look() < until:
            time.sleep(_LOOK_EVERY_S)
        if stop is not None and watched.meter.poll() is None:
            stop(watched)
        watched.meter.wait(_STANDSTILL_S)
    said = (folder / "said.txt").read_text()
    if not (folder / "used.json").exists() or (stop is None) != (watched.meter.returncode == 0):
        raise RuntimeError(f"evalfarm {' '.join(words)} ended with {watched.meter.returncode}:\n{said[-2000:]}")
    used = Used(**json.loads((folder / "used.json").read_text()))
    if used.left_behind:
        raise RuntimeError(f"evalfarm {' '.join(words)} left {used.left_behind} processes behind")
    print(f"  {words[0]}: {watched.closed:,} closed after {used.wall_s:.1f} s", file=sys.stderr, flush=True)
    return Phase(used, watched.redis_peak_bytes, time.monotonic() - watched.moved_at)


@contextmanager
def _metered(folder: Path, words: list[str]) -> Iterator[Watched]:
    (folder / "used.json").unlink(missing_ok=True)
    env: Mapping[str, str] = {"EVALFARM_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, str(ROOT / "bench" / "meter.py"), str(folder / "used.json")]
    with (folder / "said.txt").open("wb") as said:
        meter = subprocess.Popen(
            [*argv, sys.executable, "-m", "evalfarm", *words],
            env=environment(env),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    watched = Watched(meter, folder / "home")
    try:
        yield watched
    finally:
        if meter.poll() is None:
            _kill(watched)
            meter.kill()
            meter.wait()


def _kill(watched: Watched) -> None:
    """End everything that the command started at once, Redis among it; what forks meanwhile is met the next time."""
    while left := descendants(watched.meter.pid):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _interrupt(watched: Watched) -> None:
    """What Ctrl-C does to the command; it stops its workers itself."""
    children = Path(f"/proc/{watched.meter.pid}/task/{watched.meter.pid}/children").read_text().split()
    commands = [pid for pid in map(int, children) if _is_command(pid)]
    for pid in commands:
        os.kill(pid, signal.SIGINT)


def _is_command(pid: int) -> bool:
    return b"\0resume\0" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _counted(home: Path, planned: int) -> int:
    """The attempts that it took. Raises RuntimeError unless every trial is counted once, in the results and in sum."""
    store = Store(f"file://{home}/store")
    (manifest,) = store.runs()
    summary = store.get_summary(manifest.run)
    times = Counter(result.trial.index for result in store.results(manifest.run))
    if sorted(times) != list(range(planned)) or max(times.values()) != 1:
        raise RuntimeError(f"{len(times):,} of {planned:,} trials have a result, and {times.most_common(1)} the most")
    if summary is None or not summary.finished or sum(getattr(summary, name) for name in VERDICTS) != planned:
        raise RuntimeError(f"the verdicts do not add up to {planned:,} trials")
    return summary.attempts


def _stored_bytes(home: Path) -> tuple[int, int]:
    """Bytes of the objects in the store, and how many there are."""
    sizes = [path.stat().st_size for path in (home / "store").rglob("*") if path.is_file()]
    return sum(sizes), len(sizes)


def _figures(phases: tuple[Phase, ...], stored: tuple[int, int], planned: int, attempts: int) -> list[Figure]:
    wall_s, cpu_s = (sum(getattr(phase.used, name) for phase in phases) for name in ("wall_s", "cpu_s"))
    memory_mb = max(phase.used.pss_peak_mb for phase in phases)
    redis_bytes = max(phase.redis_peak_bytes for phase in phases)
    of_study = f"study of {planned:,} trials"
    levels = f"{planned // len(LEVELS):,} at {' and at '.join(LEVELS)}"
    timed = f"{wall_s:.0f} s, {cpu_s:.0f} s CPU, in {' + '.join(f'{phase.used.wall_s:.0f}' for phase in phases)} s"
    told = f"{attempts - planned:,} more than trials, after a kill -9 of everything and a Ctrl-C"
    spread = f"{stored[0] / _MB:.1f} MB in {stored[1]:,} objects"
    held = (
        f"{redis_bytes / planned:.0f} bytes a trial, an empty server and its results until they are archived included"
    )
    return [
        at_least(f"{of_study}: counted once", planned, planned, levels, unit=""),
        at_most(f"{of_study}: attempts, to trials", attempts / planned, 1.05, told),
        at_least(f"{of_study}: trials/s, with both stops and the summary", planned / wall_s, 50, timed, unit="/s"),
        at_most(f"{of_study}: from its last trial to its report", phases[-1].last_closed_s, 30, unit="s"),
        at_most(f"{of_study}: memory of all processes", memory_mb, 1_024, unit="MB"),
        at_most(f"{of_study}: memory of Redis", redis_bytes / _MB, 64, held, unit="MB"),
        at_most(f"{of_study}: storage a trial", stored[0] / planned / 1024, 8, spread, unit="KB"),
    ]
