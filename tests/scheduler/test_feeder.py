import base64
import json
import math

import pytest
import redis

from evalfarm.broker import QUEUES, App, queue_depth
from evalfarm.contracts.run import Arm, Plan
from evalfarm.runstate import Ledger, Shape, beat
from scheduler.feeder import CHUNK, DISPATCH_S, LAST_CHUNK, SET_UP_S, WAITED_LONG_S, bite, feed, messages_for
from scheduler.shares import DEPTH_PER_SLOT

LOOP = Arm(model="m", harness="loop", variant="plain")
CODEX = Arm(model="m", harness="codex", variant="plain")
DIRECT = Arm(model="none", harness="direct", variant="plain")


def of(plan: Plan, *arms: Arm, repeats: int = 2) -> Plan:
    return plan.model_copy(update={"arms": arms, "repeats": repeats})


def opened(client: redis.Redis, plan: Plan) -> Ledger:
    ledger = Ledger(client, plan.run)
    ledger.create(plan.size, "digest")
    return ledger


def fed(app: App, client: redis.Redis, ledger: Ledger, plan: Plan, *, slots: int) -> int:
    """Feeds a farm of so many slots."""
    if slots:
        beat(client, "worker", slots, 60.0)
    return feed(app, client, ledger, plan, "interactive")


def queued(client: redis.Redis) -> list[list[int]]:
    """The trials of each waiting message, the next one to be run first."""
    bodies = [
        json.loads(base64.b64decode(json.loads(raw)["body"])) for raw in client.lrange(QUEUES["interactive"], 0, -1)
    ]
    return [indices for (_run, indices), _, _ in reversed(bodies)]


def test_each_codex_trial_is_a_message_and_the_others_share_one_for_each_level(plan: Plan) -> None:
    mixed = of(plan, DIRECT, LOOP, CODEX)
    of_level: dict[str, list[int]] = {"direct": [], "loop": [], "codex": []}
    for index in range(mixed.size):
        of_level[mixed.trial(index).arm.harness].append(index)
    sent = list(messages_for(mixed, range(mixed.size)))
    expected = [(index,) for index in of_level["codex"]] + [tuple(of_level["direct"]), tuple(of_level["loop"])]
    assert sorted(sent) == sorted(expected)


def test_trials_that_may_have_killed_their_worker_travel_alone(plan: Plan) -> None:
    several = of(plan, LOOP)
    sent = list(messages_for(several, range(4), alone={1, 3}))
    assert sorted(sent) == [(0, 2), (1,), (3,)]


def test_nothing_makes_no_message(plan: Plan) -> None:
    assert list(messages_for(plan, [])) == []


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_the_queue_is_a_quarter_deeper_than_the_slots_and_no_more(
    app: App, client: redis.Redis, plan: Plan, slots: int
) -> None:
    many = of(plan, CODEX, LOOP, repeats=40)
    published = fed(app, client, opened(client, many), many, slots=slots)
    assert queue_depth(app) <= math.ceil(DEPTH_PER_SLOT * slots)
    assert published == sum(map(len, queued(client)))


def test_codex_trials_fill_the_queue_to_its_depth(app: App, client: redis.Redis, plan: Plan) -> None:
    codex = of(plan, CODEX, repeats=40)
    assert fed(app, client, opened(client, codex), codex, slots=4) == 5
    assert queued(client) == [[0], [1], [2], [3], [4]]


def test_a_full_queue_is_left_alone_and_room_in_it_is_filled(app: App, client: redis.Redis, plan: Plan) -> None:
    codex = of(plan, CODEX, repeats=40)
    ledger = opened(client, codex)
    fed(app, client, ledger, codex, slots=4)
    assert fed(app, client, ledger, codex, slots=4) == 0
    client.rpop(QUEUES["interactive"], 2)
    assert fed(app, client, ledger, codex, slots=4) == 2
    assert queued(client) == [[2], [3], [4], [5], [6]]


def test_without_a_worker_nothing_is_published(app: App, client: redis.Redis, plan: Plan) -> None:
    assert fed(app, client, opened(client, plan), plan, slots=0) == 0
    assert queued(client) == []


def test_each_trial_is_published_once(app: App, client: redis.Redis, plan: Plan) -> None:
    ledger = opened(client, plan)
    sent: list[int] = []
    while fed(app, client, ledger, plan, slots=1):
        sent += [index for indices in queued(client) for index in indices]
        client.delete(QUEUES["interactive"])
    assert sorted(sent) == list(range(plan.size))


def test_a_cancelled_run_is_fed_no_more(app: App, client: redis.Redis, plan: Plan) -> None:
    ledger = opened(client, plan)
    ledger.cancel()
    assert fed(app, client, ledger, plan, slots=8) == 0


def test_a_message_carries_the_time_after_which_its_worker_is_stuck(app: App, client: redis.Redis, plan: Plan) -> None:
    hasty = plan.model_copy(update={"suite": plan.suite.model_copy(update={"attempt_timeout_s": 7.0})})
    fed(app, client, opened(client, hasty), hasty, slots=1)
    assert json.loads(client.lindex(QUEUES["interactive"], 0) or b"")["headers"]["timelimit"] == [7.0 + SET_UP_S, None]


@pytest.mark.parametrize(
    ("arms", "repeats", "left", "slots", "room", "taken"),
    [
        ((LOOP,), 1000, 3000, 2, 3, CHUNK),  # a long plan: full messages
        ((LOOP,), 1000, 1000, 2, 3, 250),  # towards its end: two for each slot
        ((LOOP,), 1000, 20, 2, 3, LAST_CHUNK),
        ((LOOP,), 90_000, 270_000, 200, 250, 100),  # many slots: their messages are kept in memory
        ((LOOP,), 90_000, 270_000, 400, 500, LAST_CHUNK),
        ((LOOP,), 4, 12, 2, 3, 3),  # 12 trials for 2 slots: four messages, so that both have work to the end
        ((LOOP,), 4, 3, 2, 3, 3),
        ((LOOP,), 1, 3, 8, 10, 1),
        ((CODEX, LOOP), 100, 600, 2, 3, 3),  # every one might be a message
        ((CODEX,), 100, 300, 64, 80, 2),
    ],
)
def test_a_message_is_as_large_as_leaves_no_slot_idle(
    plan: Plan, arms: tuple[Arm, ...], repeats: int, left: int, slots: int, room: int, taken: int
) -> None:
    assert bite(of(plan, *arms, repeats=repeats), left, slots=slots, room=room) == taken


def age_of_hand_outs(client: redis.Redis, plan: Plan, seconds: float) -> None:
    """As if everything had been handed out so many seconds earlier."""
    key = f"f:{{{plan.run}}}:sent"
    for index in client.zrange(key, 0, -1):
        client.zincrby(key, -1000 * seconds, index)


def test_a_hand_out_that_nobody_claims_is_sent_again_once_no_message_waits(
    app: App, client: redis.Redis, plan: Plan
) -> None:
    codex = of(plan, CODEX, repeats=1)
    ledger = opened(client, codex)
    assert fed(app, client, ledger, codex, slots=2) == 3
    age_of_hand_outs(client, codex, DISPATCH_S + 1)
    assert fed(app, client, ledger, codex, slots=2) == 0  # they wait, and so are not lost
    client.delete(QUEUES["interactive"])
    assert fed(app, client, ledger, codex, slots=2) == 3
    assert ledger.progress().redispatched == 3
    assert fed(app, client, ledger, codex, slots=2) == 0


def test_after_an_hour_it_is_sent_again_though_others_wait(app: App, client: redis.Redis, plan: Plan) -> None:
    codex = of(plan, CODEX, repeats=1)
    ledger = opened(client, codex)
    fed(app, client, ledger, codex, slots=2)
    age_of_hand_outs(client, codex, WAITED_LONG_S + 1)
    fed(app, client, ledger, codex, slots=8)
    assert ledger.progress().redispatched == 3
    assert sorted(queued(client)) == [[0], [0], [1], [1], [2], [2]]


def test_a_run_of_the_nightly_queue_is_fed_into_it(app: App, client: redis.Redis, plan: Plan) -> None:
    nightly = of(plan, CODEX, repeats=40)
    ledger = Ledger(client, plan.run)
    ledger.create(nightly.size, "digest", Shape(queue="nightly"))
    beat(client, "worker", 4, 60.0)
    assert feed(app, client, ledger, nightly, "nightly") == 3  # a slot stays free for whoever comes
    assert (queue_depth(app, "nightly"), queue_depth(app)) == (3, 0)
