"""Runs one command and measures its whole process tree: wall time, CPU time, memory.

    python -m bench.meter RESULT.json COMMAND…

A process of its own, so that what it has waited for is this command's tree and nothing else. It adopts what the
command leaves behind (a subreaper), waits for that too, and reads CPU time from the kernel's account of waited
children: exact, detached servers included. Memory is sampled: PSS, so that what forked processes share counts once.
CPU time by part is sampled as well, and so lacks each process's last moments.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_CPU_EVERY_S = 0.05
_MEMORY_EVERY = 5  #: samples of CPU time to one of memory
_LEFT_BEHIND_S = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def main(result: Path, command: list[str]) -> None:
    """Run, measure, write the figures, and end as the command ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began, busy_s = time.monotonic(), machine_busy_s()
    running = subprocess.Popen(command)
    sampler = Sampler(running.pid)
    sampling = threading.Thread(target=sampler.run, daemon=True)
    sampling.start()
    code = running.wait()
    wall_s = time.monotonic() - began
    left = _wait_for_the_rest()
    sampler.over.set()
    sampling.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "wall_s": wall_s,
        "machine_cpu_s": machine_busy_s() - busy_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "pss_peak_mb": sampler.peak_mb,
        "command_peak_mb": sampler.command_peak_mb,
        "parts_cpu_s": sampler.parts(),
        "left_behind": left,
    }
    result.write_text(json.dumps(figures))
    sys.exit(code)


def machine_busy_s() -> float:
    """Seconds for which the machine's cores were at work since it started, whoever for."""
    user, nice, system, _idle, _waiting, *interrupts = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / _TICKS


def _wait_for_the_rest() -> int:
    """Wait for what the command left; how many of them would not end."""
    until = time.monotonic() + _LEFT_BEHIND_S
    while time.monotonic() < until:
        try:
            waited, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if not waited:
            time.sleep(0.01)
    return len(descendants(os.getpid()))


class Sampler:
    """Looks at the tree under this process now and then."""

    def __init__(self, command: int) -> None:
        self.over = threading.Event()
        self.peak_mb = self.command_peak_mb = 0.0
        self._command = command
        self._cpu_s: dict[int, tuple[str, float]] = {}

    def run(self) -> None:
        number = 0
        while not self.over.wait(_CPU_EVERY_S):
            tree = descendants(os.getpid())
            for pid, cpu_s in tree.items():
                name = self._cpu_s[pid][0] if pid in self._cpu_s and number % 20 else part_of(pid)
                self._cpu_s[pid] = (name, cpu_s)
            if number % _MEMORY_EVERY == 0:
                sizes = {pid: _pss_mb(pid) for pid in tree}
                self.peak_mb = max(self.peak_mb, sum(sizes.values()))
                self.command_peak_mb = max(self.command_peak_mb, _peak_mb(self._command))
            number += 1

    def parts(self) -> dict[str, float]:
        """CPU seconds by kind of process."""
        told: Counter[str] = Counter()
        for name, cpu_s in self._cpu_s.values():
            told[name] += cpu_s  # type: ignore[assignment]
        return dict(told)


def descendants(root: int) -> dict[int, float]:
    """Every process under `root`, with the CPU seconds that it has used."""
    parents: dict[int, tuple[int, float]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_bytes().rpartition(b") ")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS)
    found: dict[int, float] = {}
    level = {root}
    while level:
        level = {pid for pid, (parent, _) in parents.items() if parent in level}
        found |= {pid: parents[pid][1] for pid in level}
    return found


#: A word of the command line -> the part that such a process is.
_PARTS = {
    "valkey-server": "redis",
    "redis-server": "redis",
    "evalfarm.embedded": "redis",
    "plugin_server": "plugin",
    "worker": "worker",
}


def part_of(pid: int) -> str:
    """What a process is to the farm: redis, plugin, worker or command."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        words = ""
    return next((part for word, part in _PARTS.items() if word in words), "command")


def _pss_mb(pid: int) -> float:
    return _kb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024


def _peak_mb(pid: int) -> float:
    return _kb(Path(f"/proc/{pid}/status"), "VmHWM:") / 1024


def _kb(file: Path, name: str) -> int:
    try:
        return next((int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(name)), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
