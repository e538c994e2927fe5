"""Breaks farms at random for so many minutes, and holds the invariants after each: `make soak MINUTES=30 SEED=7`.

Every round prints its seed and what it does, so that one that fails can be had again: `--seed N --minutes 0`.
"""

import argparse
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.breakages import OF_THE_BROKER, OF_THE_NETWORK, OF_WORKERS
from tests.faults.farm import Farm, farm, plan_of
from tests.faults.invariants import check

_ALL = (*OF_THE_BROKER, *OF_THE_NETWORK, *OF_WORKERS)


def one_round(seed: int) -> None:
    """A run of 40 trials under two workers and two who tend it, broken a few times at random moments."""
    draw = random.Random(seed)
    with TemporaryDirectory(prefix="evalfarm-soak-") as folder, farm(Path(folder), plan_of(20)) as here:
        here.provider.latency_s = draw.uniform(0.05, 0.6)
        for _ in range(2):
            here.work()
            here.tend()
        for fault in draw.choices(_ALL, k=draw.randint(1, 5)):
            _when_begun(here, draw)
            print(f"  {fault.__name__}", flush=True)
            fault(here)
        books = check(here)
        lost = f"{len(books.lost)} attempts lost, {books.summary.infra_failed} trials given up"
        print(f"  held: {len(books.traces)} payloads, {lost}", flush=True)


def _when_begun(here: Farm, draw: random.Random) -> None:
    here.when_closed(draw.randint(0, 6))
    time.sleep(draw.uniform(0.0, 1.0))


def main() -> int:
    """Rounds until the time is over, at least one."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--minutes", type=float, default=10.0)
    told.add_argument("--seed", type=int, default=0)
    options = told.parse_args()
    deadline, seed = time.monotonic() + 60 * options.minutes, options.seed
    while True:
        print(f"seed {seed}", flush=True)
        one_round(seed)
        seed += 1
        if time.monotonic() >= deadline:
            return 0


if __name__ == "__main__":
    sys.exit(main())
