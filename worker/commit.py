"""Payload first, commit second: what the ledger counts is always there to be read.

Between the two a worker may die, and the store or Redis may be away. The lease is renewed meanwhile, so nobody runs the
trial again; and a payload that was stored and never committed is committed by whoever finds its lease run out.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from evalfarm.contracts.run import Trace
from evalfarm.errors import BrokerUnavailable, StoreUnavailable
from evalfarm.runstate import Claim, Ended, Ending, Ledger, Terms
from evalfarm.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds for which a store that refuses a trace is asked again. An attempt is only worth what is kept of it.
STORE_PATIENCE_S = 60.0


async def keep(store: Store, trace: Trace, *, patience_s: float = STORE_PATIENCE_S) -> Trace:
    """Store a trace, and return the one that is stored under its attempt's number.

    That is another's where Redis forgot an attempt and gave its number away again: what is stored first counts, and
    this one is kept under the next number that is free. Raises StoreUnavailable when its patience is over.
    """
    return await _patiently(lambda: keep_now(store, trace), StoreUnavailable, patience_s)


async def commit(ledger: Ledger, ended: Ended, *, lease_s: float) -> None:
    """Tell the ledger how an attempt ended, for as long as it does not answer, at most two leases.

    Then the attempt is left to be adopted: its payload is stored.
    """
    try:
        await _patiently(lambda: commit_now(ledger, ended), BrokerUnavailable, 2 * lease_s)
    except BrokerUnavailable as error:
        told = "trial %d attempt %d is stored and not committed; it is left to be adopted: %s"
        log.warning(told, ended.index, ended.attempt, error.message)


def commit_now(ledger: Ledger, ended: Ended) -> None:
    """Tell the ledger once. Raises BrokerUnavailable; may be called again."""
    _check(ledger, ledger.end(ended))


def commit_and_claim(ledger: Ledger, ended: Ended, wanted: tuple[int, str, float, Terms]) -> Claim:
    """Tell the ledger once, and claim with it what `Ledger.claim` would. Raises BrokerUnavailable; may be called again.

    A busy worker waits for one round trip instead of two.
    """
    ending, claim = ledger.end_and_claim(ended, *wanted)
    _check(ledger, ending)
    return claim


def _check(ledger: Ledger, ending: Ending) -> None:
    if ending == "unknown":
        raise BrokerUnavailable(f"Redis knows nothing of run {ledger.run!r}", f"`evalfarm resume {ledger.run}`")


def keep_now(store: Store, trace: Trace) -> Trace:
    """Store a trace as `keep` does, asking once. Raises StoreUnavailable; may be called again."""
    if store.put_trace(trace):
        return trace
    stored = store.get_trace(trace.run, trace.trial.index, trace.attempt)
    if stored.started_at == trace.started_at:
        return stored  # our own, from a try whose answer was lost
    for number in count(trace.attempt + 1):
        if store.put_trace(trace.model_copy(update={"attempt": number})):
            break
    return stored


async def _patiently(act: Callable[[], T], error: type[Exception], patience_s: float) -> T:
    tries = AsyncRetrying(
        retry=retry_if_exception_type(error),
        wait=wait_exponential_jitter(multiplier=0.1, max=5.0),
        stop=stop_after_delay(patience_s),
        reraise=True,
    )
    return await tries(asyncio.to_thread, act)
