"""What must hold after any fault. One checker, so that no test holds less than the others."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain, combinations

import pytest

from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import VERDICTS, Result, RunSummary
from evalfarm.outcomes import Outcomes
from tests.faults.farm import CAP, Farm
from tests.faults.machine import until
from tests.faults.provider import Charge

Attempt = tuple[int, int]  # trial, number


@dataclass(frozen=True)
class Books:
    """Everybody's account of a run that is over, independent of each other."""

    plan: Plan
    summary: RunSummary
    results: list[Result]
    traces: dict[Attempt, Trace]  #: every payload in the store
    started: list[int]  #: attempts of each trial, by the ledger
    lost: set[Attempt]  #: by the ledger's own log, and by the result of one whose last attempt was
    charges: list[Charge]  #: by the provider
    counted_usd: float  #: by the ledger's own counters, when the run was sealed


def read_books(farm: Farm) -> Books:
    """What is left when the run is sealed and everybody has gone home."""
    store, run = farm.store, farm.plan.run
    summary = store.get_summary(run)
    tally = Outcomes(store.objects).tally(run)
    assert summary is not None, "the run is not sealed"
    assert tally is not None, "it is sealed, and nobody kept what it took"
    traces = {
        (index, number): store.get_trace(run, index, number)
        for index in range(farm.plan.size)
        for number in store.attempts_of(run, index)
    }
    results = list(store.results(run))
    # The last one that is lost closes its trial and with it the run, which may be sealed before anybody looks again.
    last = {(at.trial.index, at.attempt) for at in results if at.failure and f"{at.attempt} was lost:" in at.failure}
    return Books(
        plan=farm.plan,
        summary=summary,
        results=results,
        traces=traces,
        started=list(farm.witness.attempts),
        lost=farm.witness.lost | last,
        charges=list(farm.provider.charges),
        counted_usd=sum(arm.known_usd for arm in tally.arms),
    )


def every_trial_is_closed_once(books: Books) -> None:
    """I1, I2: closed = planned, and exactly one counted attempt a trial, whose payload is there."""
    counts = Counter(result.trial.index for result in books.results)
    assert counts == Counter(range(books.plan.size)), "a trial is missing or counted twice"
    assert sum(getattr(books.summary, verdict) for verdict in VERDICTS) == books.summary.planned == books.plan.size
    assert books.summary.not_run == 0
    told = Counter(result.verdict for result in books.results)
    assert {verdict: told[verdict] for verdict in VERDICTS} == {v: getattr(books.summary, v) for v in VERDICTS}
    for result in books.results:
        assert result.trial == books.plan.trial(result.trial.index)
        if result.verdict != "infra_failed":
            trace = books.traces[result.trial.index, result.attempt]
            assert (trace.outcome, trace.cost_usd) == (result.outcome, result.cost_usd)


def every_attempt_is_accounted_for(books: Books) -> None:
    """I3: attempts started = payloads + lost; one that was lost and came back is both."""
    started = {(index, number + 1) for index, most in enumerate(books.started) for number in range(most)}
    known = books.traces.keys() | books.lost
    assert started == known, f"unaccounted: {sorted(started - known)}, never started: {sorted(known - started)}"
    assert books.summary.attempts == len(started)


def every_cent_is_known(books: Books) -> None:
    """I6: what the payloads know of, and what was charged for attempts that were lost or cut, is the provider's bill.

    An attempt that was cut in mid-request does not know what it cost, and says so.
    """
    bill = {charge.response_id: charge for charge in books.charges}
    noted = {
        attempt: [r.response_id for r in trace.requests if r.response_id] for attempt, trace in books.traces.items()
    }
    claimed = Counter(response for responses in noted.values() for response in responses)
    assert [response for response, times in claimed.items() if times > 1] == [], "answers that two attempts claim"
    assert claimed.keys() <= bill.keys(), "a trace holds an answer that the provider never gave"
    cut = {attempt for attempt, trace in books.traces.items() if trace.cost_usd is None}
    assert {books.traces[attempt].outcome for attempt in cut} <= {"infra_failed", "timed_out"}
    for attempt, trace in books.traces.items():
        if attempt not in cut:
            assert trace.cost_usd == pytest.approx(sum(bill[response].usd for response in noted[attempt]))
    unseen = {charge.case for response, charge in bill.items() if response not in claimed}
    assert unseen <= {books.plan.trial(index).case for index, _ in books.lost | cut}, (
        "charged, and nobody knows for what"
    )


def the_ledger_counts_the_bill(books: Books) -> None:
    """I6 again, by the ledger's own counters: every attempt that ended is in them once, counted or superseded.

    One that was lost and came back may have done so when the run was sealed: then nobody counts it any more.
    """
    known = {attempt: trace.cost_usd for attempt, trace in books.traces.items() if trace.cost_usd is not None}
    came_back = [usd for attempt, usd in known.items() if attempt in books.lost]
    others_usd = sum(usd for attempt, usd in known.items() if attempt not in books.lost)
    some_of_them = chain.from_iterable(combinations(came_back, n) for n in range(len(came_back) + 1))
    # A counter is in whole micro-USD, so that each attempt may be off by half of one.
    off_usd = 1e-6 * max(1, len(known))
    assert any(abs(books.counted_usd - others_usd - sum(some)) <= off_usd for some in some_of_them), (
        f"the ledger counted {books.counted_usd}, of attempts that cost {others_usd} and, come back, {came_back}"
    )
    assert books.counted_usd <= sum(charge.usd for charge in books.charges) + off_usd


def nothing_is_added_by_going_on(farm: Farm) -> None:
    """I7: whoever looks at the run again finds it sealed, and writes nothing."""
    before = written(farm)
    with farm.scheduler() as scheduler:
        again = scheduler.look_at(farm.plan.run)
    assert again == farm.store.get_summary(farm.plan.run)
    assert written(farm) == before


def written(farm: Farm) -> list[object]:
    """Every file of a local store with its content; every write to a bucket."""
    if farm.bucket is not None:
        return [request for request in farm.bucket.requests if request.startswith("PUT") and "/probes/" not in request]
    files = [path for path in sorted((farm.root / "store").rglob("*")) if path.is_file()]
    return [(str(path), path.read_bytes()) for path in files]


def finish(farm: Farm) -> Books:
    """Wait for the seal, send everybody home, and hold that nobody stays."""
    farm.provider.release_all()
    farm.sealed()
    farm.dismiss()
    until(lambda: not farm.living(), "that no process is left", 20.0)  # I5
    return read_books(farm)


def check(farm: Farm) -> Books:
    """Finish, and hold every invariant that holds whatever was done to the farm."""
    books = finish(farm)
    every_trial_is_closed_once(books)
    every_attempt_is_accounted_for(books)
    every_cent_is_known(books)
    the_ledger_counts_the_bill(books)
    nothing_is_added_by_going_on(farm)
    return books


def hold(farm: Farm, *, infra_failed: int = 0, failed: int = 0, cap: int | None = CAP) -> Books:
    """Check every invariant. All trials pass but those that are said to end otherwise.

    `cap`: the most requests that may have been under way at once; None where zombies make some of their own.
    """
    books = check(farm)
    verdicts = Counter(result.verdict for result in books.results)
    others = {"infra_failed": infra_failed, "failed": failed}
    passed = books.plan.size - infra_failed - failed
    assert verdicts == Counter({"passed": passed} | {verdict: n for verdict, n in others.items() if n})
    if cap is not None:
        assert farm.provider.most_at_once <= cap  # I4
    return books
