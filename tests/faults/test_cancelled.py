"""A run that is cancelled while it runs."""

from collections.abc import Callable

import pytest

from evalfarm.contracts.verdict import VERDICTS
from tests.faults.farm import CAP, Farm
from tests.faults.invariants import (
    every_attempt_is_accounted_for,
    every_cent_is_known,
    finish,
    nothing_is_added_by_going_on,
    the_ledger_counts_the_bill,
)
from tests.faults.machine import until

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_a_run_that_is_cancelled_keeps_what_it_has_and_says_what_did_not_run(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    held = [farm.provider.hold(f"case-{name}", times=9) for name in "bdfh"]
    for _ in range(2):
        farm.work()
    farm.tend()
    # All four need not be: a worker takes no message while a trial of its last one is held.
    until(lambda: sum(len(one.arrivals) for one in held) >= 2, "that two of the held are at work")
    assert farm.command("cancel", farm.plan.run).process.wait(60) == 0
    farm.sealed()  # though nobody has answered: what was at work is stopped
    books = finish(farm)
    every_attempt_is_accounted_for(books)
    every_cent_is_known(books)
    the_ledger_counts_the_bill(books)
    nothing_is_added_by_going_on(farm)
    assert farm.provider.most_at_once <= CAP
    counts = {verdict: getattr(books.summary, verdict) for verdict in VERDICTS}
    assert counts["not_run"] >= 4
    assert sum(counts.values()) == books.plan.size
    assert len({result.trial.index for result in books.results}) == len(books.results) == counts["passed"]
