import math

import pytest

from evalfarm.contracts.run import NO_MODEL, Arm, Plan
from evalfarm.runstate import Limits, ModelLimits
from scheduler.pacing import Places, models_of, most_waited_s

SLOW, FAST = (Arm(model=model, harness="loop", variant="plain") for model in ("slow", "fast"))
DIRECT = Arm(model=NO_MODEL, harness="direct", variant="plain")


def of(plan: Plan, *arms: Arm) -> Plan:
    return plan.model_copy(update={"arms": arms, "repeats": 4})


def split(plan: Plan, places: Places) -> tuple[list[str], list[str]]:
    """The models of the trials that may go now, and of those that may not."""
    now, later = places.share(range(plan.size))
    return [plan.trial(at).arm.model for at in now], [plan.trial(at).arm.model for at in later]


def test_with_one_model_those_on_their_way_take_places_too(plan: Plan) -> None:
    places = Places(of(plan, SLOW), {"slow": 5}, handed_out=3)
    assert places.left == 2
    now, later = places.share([0, 1, 2])
    assert (now, later, places.left) == ([0, 1], [2], 0)


def test_with_several_models_each_has_its_own_places(plan: Plan) -> None:
    both = of(plan, SLOW, FAST)
    now, later = split(both, Places(both, {"slow": 2, "fast": math.inf}, handed_out=7))
    assert (now.count("slow"), now.count("fast"), later) == (2, 12, ["slow"] * 10)


def test_trials_without_a_model_always_have_a_place(plan: Plan) -> None:
    mixed = of(plan, DIRECT, SLOW)
    places = Places(mixed, {"slow": 0, NO_MODEL: math.inf}, handed_out=0)
    assert places.left == math.inf
    now, later = split(mixed, places)
    assert (now, later) == ([NO_MODEL] * 12, ["slow"] * 12)


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, 0.0),
        ({"slow": ModelLimits(concurrency=2)}, 0.0),
        ({"slow": ModelLimits(requests_per_minute=5)}, 600.0),
        ({"other": ModelLimits(tokens_per_minute=5)}, 0.0),
    ],
)
def test_a_worker_is_given_time_to_wait_where_requests_are_metered(
    plan: Plan, limits: dict[str, ModelLimits], seconds: float
) -> None:
    assert most_waited_s(of(plan, SLOW, FAST), Limits(models=limits)) == seconds


def test_models_are_told_once(plan: Plan) -> None:
    assert models_of(of(plan, DIRECT, SLOW, FAST, SLOW)) == (NO_MODEL, "slow", "fast")
