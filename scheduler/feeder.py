"""Keeps the queue a little deeper than the live slots, and no more: a message waiting is a message that can be lost."""

import math
from collections.abc import Iterable, Iterator

from evalfarm.broker import App, queue_depth, send_trials
from evalfarm.contracts.run import Plan
from evalfarm.runstate import Ledger

#: Messages in the queue for every slot that takes them.
DEPTH_PER_SLOT = 1.25
#: Trials in one message where they wait on a network rather than on a core: one process runs them side by side.
CHUNK = 16
#: Seconds that a worker may take beyond an attempt's own limit, for servers, homes and storage. Then it is killed.
SET_UP_S = 120.0
#: Seconds after which a trial that nobody claimed is sent again. Longer than any queue of this depth takes.
DISPATCH_S = 120.0


def feed(app: App, ledger: Ledger, plan: Plan, *, slots: int) -> int:
    """Publish what the queue has room for, and return how many trials that was."""
    published = 0
    room = math.ceil(DEPTH_PER_SLOT * slots) - queue_depth(app)
    bite = min(CHUNK, max(1, plan.size // max(1, 2 * slots)))
    while room > 0 and (indices := ledger.take(bite, DISPATCH_S)):
        messages = tuple(messages_for(plan, indices))
        send_trials(app, plan.run, messages, time_limit_s=plan.suite.attempt_timeout_s + SET_UP_S)
        published += len(indices)
        room -= len(messages)
    return published


def messages_for(plan: Plan, indices: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """One message for each `codex` trial, one for all others together, which run side by side in one process."""
    together = []
    for index in indices:
        if plan.trial(index).arm.harness == "codex":
            yield (index,)
        else:
            together.append(index)
    if together:
        yield tuple(together)
