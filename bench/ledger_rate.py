"""Claims and ends trials of a ledger on one connection to an embedded server.

    python -m bench.ledger_rate HOME TRIALS

Prints how many trials a second, as JSON: as a busy worker goes about it, who ends one and claims the next in one round
trip; in two round trips each; and how often a second the same connection goes to the server and back, once and twice,
which are the floors. The run is one of a million trials.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import Ended, Ledger, connect

_ROW = b"x" * 700
_TAKEN = 1_000
_LEASE_S = 60.0


def main(home: Path, trials: int) -> None:
    """Measure and print."""
    with embedded_redis(home) as url:
        client = connect(url)
        ledger = Ledger(client, "bench")
        ledger.create(1_000_000, "sha256:0")
        rates: dict[str, float] = {}
        for act in (one_after_the_other, one_by_one):
            taken = [index for at in range(0, trials, _TAKEN) for index in ledger.take(min(_TAKEN, trials - at), 600.0)]
            rates[act.__name__] = trials / _took_s(lambda act=act, taken=taken: act(ledger, taken))
        if ledger.progress().passed != 2 * trials:
            raise RuntimeError(f"{ledger.progress().passed} of {2 * trials} trials were ended")
        rates["round_trips"] = trials / _took_s(lambda: [client.ping() for _ in range(trials)])
        print(json.dumps(rates))


def one_after_the_other(ledger: Ledger, taken: Sequence[int]) -> None:
    """End each trial and claim the next in one round trip."""
    attempt = ledger.claim(taken[0], "bench", _LEASE_S).attempt
    for index, following in pairwise(taken):
        _, claim = ledger.end_and_claim(_ended(index, attempt), following, "bench", _LEASE_S)
        attempt = claim.attempt
    ledger.end(_ended(taken[-1], attempt))


def one_by_one(ledger: Ledger, taken: Sequence[int]) -> None:
    """Claim each trial in a round trip, and end it in another."""
    for index in taken:
        ledger.end(_ended(index, ledger.claim(index, "bench", _LEASE_S).attempt))


def _ended(index: int, attempt: int) -> Ended:
    return Ended(index, attempt, verdict="passed", row=_ROW, final=True, backoff_s=1.0, max_attempts=3)


def _took_s(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
