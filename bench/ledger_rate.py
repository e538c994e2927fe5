"""Claims and ends trials of a ledger on one connection to an embedded server.

    python -m bench.ledger_rate HOME TRIALS

Prints trials per second; how often a second the same connection goes to the server and back twice, which is the floor;
and how often it has the server run a script that does nothing twice. The run is one of a million trials.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import Ledger, connect

_ROW = b"x" * 700
_TAKEN = 1_000


def main(home: Path, trials: int) -> None:
    """Measure and print."""
    with embedded_redis(home) as url:
        client = connect(url)
        ledger = Ledger(client, "bench")
        ledger.create(1_000_000, "sha256:0")
        indices = [index for at in range(0, trials, _TAKEN) for index in ledger.take(min(_TAKEN, trials - at), 600.0)]
        began = time.perf_counter()
        for index in indices:
            attempt = ledger.claim(index, "bench", 60.0).attempt
            ledger.end(index, attempt, verdict="passed", row=_ROW, final=True, backoff_s=1.0, max_attempts=3)
        took_s = time.perf_counter() - began
        if ledger.progress().passed != trials:
            raise RuntimeError(f"{ledger.progress().passed} of {trials} trials were ended")
        nothing = client.register_script("return 1")
        floors = [_twice(trials, act) for act in (client.ping, lambda: nothing(keys=["f:{bench}:"], args=["1"]))]
        print(trials / took_s, *floors)


def _twice(trials: int, act: Callable[[], object]) -> float:
    """How often a second two calls are made, one after the other."""
    began = time.perf_counter()
    for _ in range(2 * trials):
        act()
    return trials / (time.perf_counter() - began)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
