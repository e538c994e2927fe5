"""Large runs: how soon the first trial runs, what memory it takes, and what the ledger bears."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.figures import Figure, at_least, at_most
from bench.measuring import ROOT, environment, fresh, interleaved, median
from bench.sides import Load, Sides

_PATIENCE_S = 60.0


def dispatch(sides: Sides, rounds: int, _share: float) -> list[Figure]:
    """A run of a million trials: seconds from the command to the first model request, and the memory of its tending."""
    large, small = Load(repeats=9_260), Load(repeats=10)
    seen = {load.trials: [_first_trial(sides, load) for _ in range(rounds)] for load in (small, large)}
    first_s, memory_mb = (sorted(one[at] for one in seen[large.trials])[rounds // 2] for at in (0, 1))
    of_small_mb = sorted(one[1] for one in seen[small.trials])[rounds // 2]
    told = f"{memory_mb:.0f} MB against {of_small_mb:.0f} MB at {small.trials:,} trials"
    return [
        at_most(f"{large.trials:,} trials: the first one runs after", first_s, 2, unit="s"),
        at_most(f"{large.trials:,} trials: memory of planning them", memory_mb / of_small_mb, 1.1, told),
    ]


def _first_trial(sides: Sides, load: Load) -> tuple[float, float]:
    """Start a run, see its first model request, stop it: seconds until then, and the command's peak memory in MB."""
    folder = fresh(sides.work / "dispatch")
    argv, env = sides.farm_command(folder, load, model="mock-model", workers=None, suite="stdio")
    sides.mock.stats("/reset")
    began = time.monotonic()
    with (folder / "said.txt").open("wb") as said:
        running = subprocess.Popen(argv, env=environment(env), cwd=ROOT, stdout=said, stderr=said)
    try:
        while not sides.mock.stats()["requests"]:
            if running.poll() is not None or time.monotonic() - began > _PATIENCE_S:
                raise RuntimeError(f"no trial ran: {(folder / 'said.txt').read_text()[-1000:]}")
            time.sleep(0.005)
        first_s = time.monotonic() - began
        status = Path(f"/proc/{running.pid}/status").read_text()
        memory_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(_PATIENCE_S)
    return first_s, memory_kb / 1024


def memory(sides: Sides, _rounds: int, share: float) -> list[Figure]:
    """All processes together at 100,000 trials, to 10,000; once each, for it takes minutes."""
    few, many = Load(max(1, round(93 * share))), Load(max(2, round(926 * share)))
    runs = interleaved(1, {"few": lambda: sides.farm(few), "many": lambda: sides.farm(many)})
    small_mb, large_mb = (median(runs[name], lambda used: used.pss_peak_mb) for name in ("few", "many"))
    told = f"{large_mb:.0f} MB at {many.trials:,} trials, {small_mb:.0f} MB at {few.trials:,}"
    return [at_most("memory of all processes at ten times the trials", large_mb / small_mb, 1.1, told)]


def ledger(sides: Sides, rounds: int, share: float) -> list[Figure]:
    """Trials claimed and ended per second on one connection; the floor is its round trips."""
    trials = max(100, round(10_000 * share))
    rates: list[dict[str, float]] = []
    for _ in range(rounds):
        folder = fresh(sides.work / "ledger")
        argv = (sys.executable, "-m", "bench.ledger_rate", str(folder), str(trials))
        said = subprocess.run(argv, cwd=ROOT, env=environment({}), check=True, capture_output=True, text=True).stdout
        rates.append(json.loads(said))
    names = ("one_after_the_other", "one_by_one", "round_trips")
    rate, apart, trips = (sorted(one[name] for one in rates)[rounds // 2] for name in names)
    told = f"in a round trip a trial; {apart:.0f}/s in two; bare round trips {trips:.0f}/s; a row of 700 bytes"
    return [at_least("ledger: trials claimed and ended per second", rate, 5_000, told, unit="/s")]
