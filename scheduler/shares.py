"""Who may have how many of the farm's slots: interactive runs before nightly ones, and a share for each. Pure.

A slot is counted as taken by a message that waits or is run. Trials that travel together are counted as full
messages; a plan whose `codex` trials travel alone is counted by trials.
"""

import math
from collections.abc import Mapping, Sequence

from evalfarm.contracts.run import QueueName
from evalfarm.runstate import Load

#: Messages that wait for every slot that takes them: a slot that gets free finds one, and few can be lost.
DEPTH_PER_SLOT = 1.25
#: Slots that nightly runs leave free, for whoever comes: nothing takes a slot back from a trial of twenty minutes.
RESERVED_SHARE = 0.1
#: Of every five slots, where runs of both queues wait for them.
NIGHTLY_IN_FIVE = 1


def reserved(slots: int) -> int:
    """The slots that nightly runs never take; the only slot of a farm is nobody's alone."""
    return math.ceil(slots * RESERVED_SHARE) if slots > 1 else 0


def fair_room(run: str, loads: Sequence[Load], waiting: Mapping[QueueName, int], slots: int) -> int:
    """How many messages of a run may be published now.

    `waiting` is the depth of each queue. Runs of one queue that have trials to hand out share its room evenly.
    """
    mine = next((load for load in loads if load.run == run), None)
    if mine is None or not slots:
        return 0
    peers = [load for load in loads if load.queue == mine.queue]
    others_wait = any(load.open for load in loads if load.queue != mine.queue)
    free = math.ceil(DEPTH_PER_SLOT * slots) - waiting[mine.queue]
    if mine.queue == "nightly" or others_wait:
        taken = waiting[mine.queue] + sum(math.ceil(load.at_work / load.together) for load in peers)
        free = min(free, _share(mine.queue, slots, others_wait=others_wait) - taken)
    wanting = sum(1 for load in peers if load.open)
    return max(0, math.ceil(free / max(1, wanting)))


def _share(queue: QueueName, slots: int, *, others_wait: bool) -> int:
    nightly = max(1, slots * NIGHTLY_IN_FIVE // 5) if others_wait else slots
    nightly = min(nightly, slots - reserved(slots)) if slots > 1 else slots
    return nightly if queue == "nightly" else max(1, slots - nightly)
