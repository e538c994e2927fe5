"""The names of runs: readable, and nobody else's."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from evalfarm.contracts.run import Plan
from evalfarm.errors import StoreUnavailable
from evalfarm.store import Store


@contextmanager
def named_run(plan: Plan, suite: str, at: float, store: Store) -> Iterator[Plan]:
    """The plan under a name that is its own, however many commands name a run of this suite at the same time.

    The name is kept in the store; where the block fails before the run is begun, it is let go.
    """
    taken = store.names_of_runs()
    while not store.claim_plan(named := plan.model_copy(update={"run": new_run_id(suite, at, taken)})):
        taken |= {named.run}
    try:
        yield named
    except BaseException:
        with suppress(StoreUnavailable):  # what went wrong is to be told, and not this
            store.drop_claim(named.run)
        raise


def new_run_id(suite: str, at: float, taken: frozenset[str]) -> str:
    """A run's name: suite, UTC date and time, and a number where two start within one second."""
    stem = f"{suite}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name
