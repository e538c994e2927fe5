"""What the ledger says that a run cost, held against the provider's own bill while both are at it."""

import os
import signal
from collections.abc import Callable

import pytest

from tests.faults.farm import Farm, plan_of
from tests.faults.invariants import Books, hold
from tests.faults.machine import until

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def counts_all(books: Books) -> bool:
    """Whether the ledger's counters hold all that the payloads say."""
    return books.counted_usd == pytest.approx(sum(trace.cost_usd or 0.0 for trace in books.traces.values()), abs=1e-5)


def unseen_usd(books: Books) -> float:
    """What the provider charged for answers that no payload with a known cost holds."""
    priced = [trace for trace in books.traces.values() if trace.cost_usd is not None]
    claimed = {request.response_id for trace in priced for request in trace.requests}
    return sum(charge.usd for charge in books.charges if charge.response_id not in claimed)


def test_a_superseded_attempt_is_priced_by_what_it_knows_and_never_scored(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm(plan_of(4, direct=False))
    of_zombie, of_successor = farm.provider.hold("case-c"), farm.provider.hold("case-c")
    farm.work()
    farm.tend()
    zombie = of_zombie.wait()
    stopped = [zombie, farm.workers[0].pid]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    farm.work()
    of_successor.wait()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    farm.provider.release(of_zombie)
    until(lambda: 0 < farm.progress().lost == farm.progress().returned, "that all that was frozen has ended")
    assert farm.progress().superseded >= 1
    books = hold(farm, cap=None)
    assert counts_all(books)
    # What was frozen may never have heard an answer that it is charged for.
    assert books.counted_usd + unseen_usd(books) == pytest.approx(farm.provider.bill_usd, abs=1e-5)
    trial = next(i for i in range(farm.plan.size) if farm.plan.trial(i).case == "case-c")
    assert {number for index, number in books.traces if index == trial} == {1, 2}
    assert next(result.attempt for result in books.results if result.trial.index == trial) == 2


def test_tries_that_the_provider_refused_cost_nothing_and_are_no_attempts(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm(plan_of(4, direct=False))
    farm.provider.refusals = {"case-a": [500, 503], "case-b": [429], "case-d": [529]}
    for _ in range(2):
        farm.work()
    farm.tend()
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
    assert counts_all(books)
    assert books.counted_usd == pytest.approx(farm.provider.bill_usd, abs=1e-5)
    tries = [len(request.tries) for trace in books.traces.values() for request in trace.requests]
    assert sum(tries) == 4


def test_what_was_charged_to_an_attempt_that_was_killed_is_on_the_bill_alone(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm(plan_of(4, direct=False))
    farm.provider.hold("case-c", kills=True)
    for _ in range(2):
        farm.work()
    farm.tend()
    books = hold(farm)
    assert counts_all(books)
    assert unseen_usd(books) > 0
    assert books.counted_usd + unseen_usd(books) == pytest.approx(farm.provider.bill_usd, abs=1e-5)
    (cell,) = books.summary.cells
    assert cell.cost.all_attempts_usd is None  # of which the report says that nobody knows the whole
