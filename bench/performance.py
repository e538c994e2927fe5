"""Measures the farm beside its peers and its floors, and writes the table of docs/performance.md.

    python -m bench.performance [--only one-call,tool-loop] [--rounds 3] [--share 1.0] [--page docs/performance.md]

All sides run in turn on this machine, so read the ratios. The first call installs promptfoo and inspect_ai under
`.evalfarm/bench`; the model is a mock on the loopback. All of it takes some twenty minutes on two idle cores; `--only`
measures a part, `--share 0.1` a tenth of the trials.
"""

import argparse
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import running, starting, study, throughput
from bench.figures import Figure
from bench.measuring import ROOT, mock_model
from bench.sides import PEERS, PROMPTFOO, Sides, set_up

SECTIONS: dict[str, Callable[[Sides, int, float], list[Figure]]] = {
    "start": starting.starting,
    "one-call": throughput.one_call,
    "delayed": throughput.delayed,
    "tool-loop": throughput.tool_loop,
    "scale-out": throughput.scale_out,
    "dispatch": running.dispatch,
    "ledger": running.ledger,
    "memory": running.memory,
    "study": study.study,
}

#: Benchmarks that are whole programs, and print what they found.
PROGRAMS = {"codex": "bench/codex_overhead.py", "aggregation": "bench/aggregate_rows.py"}

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> None:
    """Measure what was asked for; print the table, and write it where asked."""
    # A shell has what it starts in the background ignore Ctrl-C, and so would the runs that sections stop by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = arguments()
    chosen = asked.only.split(",") if asked.only else [*SECTIONS, *PROGRAMS]
    bench = ROOT / ".evalfarm/bench"
    set_up(bench / "peers")
    figures: list[Figure] = []
    missing: list[str] = []
    with mock_model() as mock, TemporaryDirectory(dir=bench, ignore_cleanup_errors=True) as work:
        sides = Sides(mock, Path(work), bench / "peers")
        for name in (name for name in SECTIONS if name in chosen):
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                figures += SECTIONS[name](sides, asked.rounds, asked.share)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                missing.append(f"{name}: {str(error).strip()}")
                print(f"  failed: {missing[-1]}", file=sys.stderr, flush=True)
        programs = {name: program(PROGRAMS[name]) for name in PROGRAMS if name in chosen}
    table = told(figures, programs, shlex.join(["python", "-m", "bench.performance", *sys.argv[1:]]), missing)
    print(table)
    if asked.page:
        write(asked.page, table)
    sys.exit(1 if missing else 0)


def arguments() -> argparse.Namespace:
    """What was asked for. Ends the program for a section that does not exist."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=f"sections, with commas: {', '.join([*SECTIONS, *PROGRAMS])}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each section")
    parser.add_argument("--page", type=Path, help="the page whose table is replaced")
    asked = parser.parse_args()
    unknown = {name for name in asked.only.split(",") if name} - {*SECTIONS, *PROGRAMS}
    if asked.page and _BEGIN not in (asked.page.read_text(encoding="utf-8") if asked.page.exists() else ""):
        parser.error(f"{asked.page} has no place for the table: a line {_BEGIN}")
    if unknown or asked.rounds < 1 or asked.share <= 0:
        parser.error(f"no such section: {', '.join(sorted(unknown))}" if unknown else "rounds and share are above zero")
    return asked


def program(path: str) -> str:
    """What a benchmark of its own prints."""
    print(f"{path} …", file=sys.stderr, flush=True)
    ended = subprocess.run([sys.executable, path], cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or f"it ended with {ended.returncode}: {ended.stderr.strip()[-500:]}"


def told(figures: list[Figure], programs: dict[str, str], command: str, missing: list[str]) -> str:
    """The measured part of the page, with the command that made it."""
    peers = ", ".join([f"promptfoo {PROMPTFOO}", *PEERS[:2]])
    lines = [f"{time.strftime('%Y-%m-%d', time.gmtime())}, {machine()}; {peers}; by `{command}`.", ""]
    if figures:
        lines += [
            "| what | measured | target | | |",
            "|---|---|---|---|---|",
            *(figure.row() for figure in figures),
            "",
        ]
    lines += [f"Not measured: {one.splitlines()[0]}\n" for one in missing]
    for name, said in programs.items():
        lines += [f"`{PROGRAMS[name]}`:", "", "```text", said, "```", ""]
    return "\n".join(lines).strip() + "\n"


def machine() -> str:
    """The machine and its load, in a few words."""
    about = Path("/proc/cpuinfo").read_text().splitlines()
    cpus = (line.partition(":")[2].strip() for line in about if line.startswith("model name"))
    cores = f"{os.cpu_count()} cores ({next(cpus, platform.machine())})"
    return f"{cores}, load {os.getloadavg()[0]:.1f} when it ended, Python {platform.python_version()}"


def write(page: Path, table: str) -> None:
    """Put the table between the page's two marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n\n{table}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
