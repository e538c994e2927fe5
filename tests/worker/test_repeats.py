from typing import Any

import pytest
import redis

from evalfarm.contracts.run import ModelRequest, Plan, Telemetry, Trace
from evalfarm.runstate import Ledger, connect
from worker.repeats import checked


@pytest.fixture
def plan(planned: Any, suite: Any, client: redis.Redis) -> Plan:
    plan: Plan = planned(suite(), repeats=3)[0].plan
    Ledger(client, plan.run).create(plan.size, "sha256:plan")
    return plan


def trace(plan: Plan, index: int, *ids: str | None, attempt: int = 1) -> Trace:
    return Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=attempt,
        outcome="finished",
        requests=tuple(ModelRequest(started_s=0, latency_s=1, status=200, response_id=at) for at in ids),
        telemetry=Telemetry(complete=True),
        started_at=0,
        duration_s=1,
    )


def test_answers_of_their_own_are_left_as_they_are(client: redis.Redis, plan: Plan) -> None:
    seen = [trace(plan, 0, "a", "b"), trace(plan, 1, "c"), trace(plan, 2, None), trace(plan, 2)]
    assert [checked(client, plan, one) for one in seen] == seen


def test_a_repeat_that_got_anothers_response_is_an_infrastructure_failure_that_names_both(
    client: redis.Redis, plan: Plan
) -> None:
    checked(client, plan, trace(plan, 0, "resp_1", "resp_2"))
    again = trace(plan, 2, "resp_3", "resp_2", attempt=2)
    failure = (
        "no repeat: trial 2 (case shelf, repeat 2, attempt 2) was given the response 'resp_2', which trial 0 "
        "(case shelf, repeat 0, attempt 1) had been given before; turn off whatever caches answers between here and "
        "the model"
    )
    told = {"outcome": "infra_failed", "failure": failure, "failure_kind": "model"}
    assert checked(client, plan, again) == again.model_copy(update=told)


def test_out_of_reach_of_redis_it_passes_unchecked(plan: Plan, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    with connect(f"unix://{tmp_path}/nobody.sock") as nobody:
        seen = trace(plan, 0, "a")
        assert checked(nobody, plan, seen) is seen
    assert "cannot tell whether trial 0 was answered out of a cache" in caplog.text
