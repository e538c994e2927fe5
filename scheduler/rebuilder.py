"""Redis from object storage alone: the segments in their order, then what was stored and is in none of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import Result
from evalfarm.runstate import Ledger, Restored, Shape, commit_result
from evalfarm.store import Store
from scheduler.feeder import together
from scheduler.reaper import Grade

#: Results restored in one script: some milliseconds of the server's time.
_BATCH = 500


@dataclass(frozen=True)
class Rebuilt:
    """What object storage knew of a run that Redis had lost."""

    closed: int  #: trials whose result was in a segment
    committed: int  #: trials whose trace was stored and in no segment yet


def shape_of(plan: Plan, manifest: Manifest) -> Shape:
    """What the ledger is told of a run."""
    arms = plan.arms_in_order if len(plan.arms) > 1 else ()
    return Shape(queue=manifest.queue, together=together(plan), arms=arms, budget=manifest.budget)


def rebuild(ledger: Ledger, store: Store, plan: Plan, manifest: Manifest, grade: Grade) -> Rebuilt | None:
    """Build a run's state anew; None: it is there. Safe to repeat, to run twice at once, and to go on with.

    Nothing is handed out before it is whole. Attempts that are at work take their leases up again, and attempts that
    end meanwhile count. Of a trial that is in no segment, the lowest attempt with a verdict counts.
    """
    new = ledger.create(plan.size, manifest.digests["plan"], shape_of(plan, manifest), rebuilding=True)
    if not new and not ledger.progress().rebuilding:
        return None
    open_trials = bytearray(b"\1" * plan.size)
    closed = 0
    segments = store.segments(plan.run)
    for k in range(segments):
        results = store.segment(plan.run, k)
        restore(ledger, store, plan, results)
        for result in results:
            closed += open_trials[result.trial.index]
            open_trials[result.trial.index] = 0
    committed = 0
    for index in store.begun(plan.run):
        if open_trials[index] and _commit_stored(ledger, store, plan, grade, index):
            open_trials[index] = 0
            committed += 1
    first_open = open_trials.find(1)
    ledger.end_rebuilding(segments, plan.size if first_open < 0 else first_open)
    return Rebuilt(closed=closed, committed=committed)


def restore(ledger: Ledger, store: Store, plan: Plan, results: Sequence[Result]) -> None:
    """Close the trials of these stored results, where the ledger holds them open."""
    told = iter(results)
    while batch := list(islice(told, _BATCH)):
        ledger.restore([_restored(store, plan, result) for result in batch])


def _restored(store: Store, plan: Plan, result: Result) -> Restored:
    """With what its trial cost: over all attempts whose traces are kept, counted or not."""
    index = result.trial.index
    if result.attempt == 1:
        return Restored(index, 1, result.verdict, 1, result.cost_usd)
    kept = [n for n in store.attempts_of(plan.run, index) if n <= result.attempt]
    costs = [store.get_trace(plan.run, index, n).cost_usd for n in kept]
    return Restored(index, result.attempt, result.verdict, len(kept), _sum(costs))


def _sum(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)


def _commit_stored(ledger: Ledger, store: Store, plan: Plan, grade: Grade, index: int) -> bool:
    return any(
        commit_result(ledger, plan, result) in ("counted", "infra_failed", "late")
        for result in _stored(store, plan, grade, index)
    )


def _stored(store: Store, plan: Plan, grade: Grade, index: int) -> Iterator[Result]:
    for attempt in store.attempts_of(plan.run, index):
        yield grade(plan, store.get_trace(plan.run, index, attempt))
