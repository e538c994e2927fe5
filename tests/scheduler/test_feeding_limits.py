"""The feeder looks at the models' limits and pauses before it hands anything out."""

import math

import pytest
import redis

from evalfarm.broker import QUEUES, App
from evalfarm.contracts.run import NO_MODEL, Arm, Plan
from evalfarm.runstate import Ledger, Limits, ModelLimits, Terms, Throttle, beat, terms_of
from scheduler.feeder import feed
from scheduler.pacing import MOST_PUT_OFF

SLOW, FAST = (Arm(model=model, harness="codex", variant="plain") for model in ("slow", "fast"))
DIRECT = Arm(model=NO_MODEL, harness="direct", variant="plain")
LIMITS = Limits(models={"slow": ModelLimits(concurrency=3)})


def opened(client: redis.Redis, plan: Plan) -> Ledger:
    ledger = Ledger(client, plan.run)
    ledger.create(plan.size, "digest")
    beat(client, "workers", 40, 60.0)
    return ledger


def of(plan: Plan, *arms: Arm, repeats: int = 20) -> Plan:
    return plan.model_copy(update={"arms": arms, "repeats": repeats})


def fed(app: App, client: redis.Redis, ledger: Ledger, plan: Plan) -> int:
    return feed(app, client, ledger, plan, "interactive", limits=LIMITS)


def deferred(client: redis.Redis, plan: Plan) -> int:
    return int(client.hget(f"f:{{{plan.run}}}:cnt", "deferred") or 0)


def test_no_more_is_handed_out_than_may_start(app: App, client: redis.Redis, plan: Plan) -> None:
    slow = of(plan, SLOW)
    ledger = opened(client, slow)
    assert [fed(app, client, ledger, slow), fed(app, client, ledger, slow)] == [3, 0]
    for index in range(3):
        assert ledger.claim(index, "t", 60, terms_of(slow, slow.trial(index), LIMITS)).status == "ok"
    assert fed(app, client, ledger, slow) == 0
    client.zrem("f:m:slow:sem", f"{slow.run}/0:1")
    assert fed(app, client, ledger, slow) == 1


def test_of_a_paused_model_nothing_is_handed_out(app: App, client: redis.Redis, plan: Plan) -> None:
    fast = of(plan, FAST)
    ledger = opened(client, fast)
    Throttle(client, LIMITS).pause("fast", 60)
    assert fed(app, client, ledger, fast) == 0
    assert ledger.progress().waiting == 0


def test_what_has_no_model_and_models_with_room_go_on_beside_a_full_one(
    app: App, client: redis.Redis, plan: Plan
) -> None:
    mixed = of(plan, SLOW, FAST, DIRECT, repeats=5)
    ledger = opened(client, mixed)
    fed(app, client, ledger, mixed)
    bodies = client.llen(QUEUES["interactive"])
    assert bodies > 0
    progress = ledger.progress()
    models = [mixed.trial(index).arm.model for index in range(mixed.size)]
    handed_out = [models[int(index)] for index in client.zrange(f"f:{{{mixed.run}}}:sent", 0, -1)]
    assert (handed_out.count("slow"), handed_out.count("fast"), handed_out.count(NO_MODEL)) == (3, 15, 15)
    assert progress.waiting == 12


def test_a_run_keeps_step_with_its_slowest_model(app: App, client: redis.Redis, plan: Plan) -> None:
    mixed = of(plan, SLOW, FAST, repeats=2000)
    ledger = opened(client, mixed)
    Throttle(client, LIMITS).pause("slow", 60)
    for _ in range(200):
        fed(app, client, ledger, mixed)
        client.delete(QUEUES["interactive"])
        for index in map(int, client.zrange(f"f:{{{mixed.run}}}:sent", 0, -1)):
            ledger.claim(index, "t", 60, Terms(1, "fast"))
            client.zrem(f"f:{{{mixed.run}}}:fl", index)
            client.hdel(f"f:{{{mixed.run}}}:own", str(index))
    assert MOST_PUT_OFF < ledger.progress().waiting < MOST_PUT_OFF + 50
    assert deferred(client, mixed) == 0


@pytest.mark.parametrize("limits", [Limits(), Limits(models={"fast": ModelLimits(requests_per_minute=9)})])
def test_a_model_without_a_cap_is_fed_as_the_slots_allow(
    app: App, client: redis.Redis, plan: Plan, limits: Limits
) -> None:
    fast = of(plan, FAST)
    assert feed(app, client, opened(client, fast), fast, "interactive", limits=limits) == math.ceil(1.25 * 40)
