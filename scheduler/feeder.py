"""Keeps the queues a little deeper than the live slots, and no more: a message waiting is one that can be lost."""

from collections.abc import Iterable, Iterator, Set

from evalfarm.broker import QUEUES, SIDE_BY_SIDE, App, queue_depth, send_trials
from evalfarm.contracts.run import Plan, QueueName
from evalfarm.runstate import Client, Ledger, Limits, live_slots, loads, room
from scheduler.pacing import MOST_PUT_OFF, PUT_OFF_S, Places, models_of, most_waited_s
from scheduler.shares import fair_room

#: Trials in one message, at most, where one process can run many: `loop` waits on a network, `direct` is over at once.
#: Between two messages a worker loses a trial's time and a half, for the last ones to end and the next ones to begin.
#: What it does not begin in time goes back, so that many cost nobody anything.
CHUNK = 32 * SIDE_BY_SIDE
#: Trials in one message towards the end of a run, where a worker that holds many has others wait for it.
LAST_CHUNK = 4 * SIDE_BY_SIDE
#: Trials that wait in messages for many slots, about, each of which takes 86 bytes of Redis.
_MOST_WAITING = 40_000
#: Messages published in one go; what is more waits for the next look.
BATCH = 500
#: Seconds that a worker may take beyond an attempt's own limit, for servers, homes and storage. Then it is killed.
SET_UP_S = 120.0
#: Seconds after which a trial that nobody claimed is sent again, if no message waits: one may die with the worker that
#: took it.
DISPATCH_S = 30.0
#: Seconds after which it is sent again though messages wait, its own perhaps: nobody can search a queue for it.
WAITED_LONG_S = 3600.0
#: Trials looked at in one go.
_RESEND_LIMIT = 500

NO_LIMITS = Limits()


def feed(app: App, redis: Client, ledger: Ledger, plan: Plan, queue: QueueName, *, limits: Limits = NO_LIMITS) -> int:
    """Publish what the queue and the models' limits have room for, and return how many trials that was."""
    depths: dict[QueueName, int] = {name: queue_depth(app, name) for name in QUEUES}
    slots = live_slots(redis)
    ledger.resend(_RESEND_LIMIT, WAITED_LONG_S - DISPATCH_S if depths[queue] else 0.0)
    known = loads(redis)
    free = min(BATCH, fair_room(plan.run, known, depths, slots))
    mine = next((load for load in known if load.run == plan.run), None)
    handed_out, left = (0, 0) if mine is None else (mine.handed_out, mine.open)
    places = Places(plan, room(redis, limits, models_of(plan)) if free else {}, handed_out)
    messages: list[tuple[int, ...]] = []
    while len(messages) < free and places.left >= 1:
        if places.some_full and ledger.progress().waiting > MOST_PUT_OFF:
            break
        wanted = min(bite(plan, left, slots=slots, room=free - len(messages)), places.left)
        indices = ledger.take(int(wanted), DISPATCH_S)
        if not indices:
            break
        left -= len(indices)
        now, later = places.share(indices)
        messages += messages_for(plan, now, alone=ledger.lost_before(now))
        if later:
            ledger.give_back(later, PUT_OFF_S)
    limit_s = plan.suite.attempt_timeout_s + SET_UP_S + most_waited_s(plan, limits)
    send_trials(app, plan.run, messages, time_limit_s=limit_s, queue=queue)
    return sum(map(len, messages))


def together(plan: Plan) -> int:
    """How many trials of a plan travel in one message, at most."""
    return 1 if any(arm.harness == "codex" for arm in plan.arms) else CHUNK


def bite(plan: Plan, left: int, *, slots: int, room: int) -> int:
    """How many trials to take at once, of those that are left: as many as leave each slot another message.

    So messages get smaller towards a run's end, and where the plan is small or the slots are many. Each `codex` trial
    is a message of its own: with those in the plan there are no more than there is room for.
    """
    messages = max(1, 2 * slots)
    least = min(LAST_CHUNK, max(1, plan.size // messages))
    size = min(CHUNK, max(least, min(left, _MOST_WAITING) // messages))
    return min(size, room) if together(plan) == 1 else size


def messages_for(plan: Plan, indices: Iterable[int], *, alone: Set[int] = frozenset()) -> Iterator[tuple[int, ...]]:
    """One message for each `codex` trial, one for all of `direct` and one for all of `loop`.

    Those that travel `alone` may have killed the process that ran them: another time, they take no others with them.
    """
    several: dict[str, list[int]] = {}
    for index in indices:
        harness = plan.trial(index).arm.harness
        if harness == "codex" or index in alone:
            yield (index,)
        else:
            several.setdefault(harness, []).append(index)
    yield from map(tuple, several.values())
