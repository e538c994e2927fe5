"""Finds attempts whose worker is gone: what they stored is committed, what they did not is tried again."""

from collections.abc import Callable

from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import Result
from evalfarm.runstate import BACKOFF_S, MAX_ATTEMPTS, Held, Ledger, commit_result
from evalfarm.store import Store

#: Judges a trace of a run; handed in, because a scheduler never judges.
Grade = Callable[[Plan, Trace], Result]

#: Overdue trials dealt with in one look.
_LIMIT = 500


def reap(ledger: Ledger, store: Store, plan: Plan, grade: Grade, *, lease_s: float) -> None:
    """Adopt or take back the attempts whose lease ran out.

    The store is asked first, so while it is away nothing is taken back: raises StoreUnavailable.
    """
    overdue = ledger.overdue(_LIMIT, lease_s)
    for held in overdue:
        adopt(ledger, store, plan, grade, held)
    if overdue:  # those that were adopted are overdue no more
        ledger.reap(overdue, max_attempts=MAX_ATTEMPTS, backoff_s=BACKOFF_S)


def adopt(ledger: Ledger, store: Store, plan: Plan, grade: Grade, held: Held) -> None:
    """Commit an attempt if its trace is stored, and so is paid for.

    A result follows from its trace alone, so it is judged here as its worker would have.
    """
    trace = store.find_trace(plan.run, held.index, held.attempt)
    if trace is not None:
        commit_result(ledger, plan, grade(plan, trace))
