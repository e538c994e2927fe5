"""Keeps the queue a little deeper than the live slots, and no more: a message waiting is a message that can be lost."""

import math
from collections.abc import Iterable, Iterator

from evalfarm.broker import App, queue_depth, send_trials
from evalfarm.contracts.run import Plan
from evalfarm.runstate import Ledger

#: Messages in the queue for every slot that takes them.
DEPTH_PER_SLOT = 1.25
#: Trials in one message where one process can run many: `loop` waits on a network, `direct` is over at once.
CHUNK = 16
#: Seconds that a worker may take beyond an attempt's own limit, for servers, homes and storage. Then it is killed.
SET_UP_S = 120.0
#: Seconds after which a trial that nobody claimed is sent again: a message may die with the worker that took it. One
#: that only waited behind long trials is dropped when its turn comes, and its trial published anew: a tick is lost.
DISPATCH_S = 30.0


def feed(app: App, ledger: Ledger, plan: Plan, *, slots: int) -> int:
    """Publish what the queue has room for, and return how many trials that was."""
    published = 0
    room = math.ceil(DEPTH_PER_SLOT * slots) - queue_depth(app)
    while room > 0 and (indices := ledger.take(bite(plan, slots=slots, room=room), DISPATCH_S)):
        messages = tuple(messages_for(plan, indices))
        send_trials(app, plan.run, messages, time_limit_s=plan.suite.attempt_timeout_s + SET_UP_S)
        published += len(indices)
        room -= len(messages)
    return published


def bite(plan: Plan, *, slots: int, room: int) -> int:
    """How many trials to take at once: as many as fill one message, fewer where that would leave slots idle.

    Each `codex` trial is a message of its own, so with those in the plan there are no more than there is room for.
    """
    size = min(CHUNK, max(1, plan.size // max(1, 2 * slots)))
    return min(size, room) if any(arm.harness == "codex" for arm in plan.arms) else size


def messages_for(plan: Plan, indices: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """One message for each `codex` trial, one for all of `direct` and one for all of `loop`."""
    together: dict[str, list[int]] = {}
    for index in indices:
        harness = plan.trial(index).arm.harness
        if harness == "codex":
            yield (index,)
        else:
            together.setdefault(harness, []).append(index)
    yield from map(tuple, together.values())
