"""How many trials a second the ledger takes through claim and end on one connection, beside bare round trips.

    python bench/ledger_operations.py [TRIALS]

Each round claims and ends trials of a plan of a million, one call after the other, with rows of the usual size. Beside
it the same number of bare calls on the same connection: PING, and a script that does nothing. What is missing to the
latter is what the server works.
"""

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import Client, Ledger, connect

ROUNDS = 3
ROW = b'{"row": "' + b"x" * 700 + b'"}'


def rate(act: Callable[[int], None], trials: int) -> float:
    """Trials per second, the median of three rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        act(trials)
        rounds.append(trials / (time.perf_counter() - started))
    return statistics.median(rounds)


def one_by_one(ledger: Ledger) -> Callable[[int], None]:
    """Claim, end; claim, end; …"""

    def act(trials: int) -> None:
        for index in ledger.take(trials, 3600):
            ledger.claim(index, "token-of-12b", 60)
            _end(ledger, index)

    return act


def _end(ledger: Ledger, index: int) -> None:
    ledger.end(index, 1, verdict="passed", row=ROW, final=True, backoff_s=0, max_attempts=3)


def bare(client: Client, call: Callable[[Client], object]) -> Callable[[int], None]:
    """Two bare calls for each trial."""

    def act(trials: int) -> None:
        for _ in range(2 * trials):
            call(client)

    return act


def main() -> None:
    """Measure and print one line each."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as home, embedded_redis(Path(home)) as url, connect(url) as client:
        nothing = client.register_script("return 1")
        ledger = Ledger(client, "bench")
        ledger.create(1_000_000, "sha256:bench")
        floors = {
            "PING, twice": bare(client, lambda bare: bare.ping()),
            "an empty script, twice": bare(client, lambda _: nothing(keys=["f:{bench}:"], args=["1"])),
        }
        figures = {name: rate(act, trials) for name, act in floors.items()}
        figures["claim and end"] = rate(one_by_one(ledger), trials)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {trials} trials, median of {ROUNDS}")
    for name, figure in figures.items():
        print(f"{figure:10,.0f} trials/s  {name}")


if __name__ == "__main__":
    main()
