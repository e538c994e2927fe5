from typing import Any

from evalfarm.contracts.tally import ArmTally, AttemptCounts, RunTally, TokenCounts
from evalfarm.outcomes import Outcomes
from evalfarm.runstate import BACKOFF_S, MAX_ATTEMPTS, Ended
from evalfarm.runstate.budget import Spent
from scheduler.sealer import seal


def end(opened: Any, index: int, verdict: str, *, arm: int, kind: str | None = None, **figures: Any) -> str:
    """Claims a trial that was handed out and ends it: what became of the attempt."""
    result = opened.worker.decided(index, verdict, opened.worker.claim(index))
    result = result.model_copy(update={"failure_kind": kind, **figures})
    ending: str = opened.ledger.end(
        Ended(
            index,
            result.attempt,
            verdict=verdict,
            row=result.model_dump_json().encode(),
            final=verdict != "infra_failed",
            backoff_s=BACKOFF_S,
            max_attempts=MAX_ATTEMPTS,
            spent=Spent(arm, figures.get("cost_usd")),
        )
    )
    return ending


def test_a_sealed_run_leaves_what_it_took_arm_by_arm(opened: Any) -> None:
    plan = opened.plan
    places = [plan.arms.index(plan.trial(index).arm) for index in range(plan.size)]
    first, second = places.index(0), places.index(1)
    tokens = {"input_tokens": 100, "cached_tokens": 30, "output_tokens": 20, "reasoning_tokens": 5}
    opened.hand_out(12)
    assert end(opened, first, "passed", arm=0, cost_usd=0.5, **tokens) == "counted"
    assert end(opened, second, "infra_failed", arm=1, kind="model", cost_usd=0.25) == "retry"
    for index in set(range(plan.size)) - {first, second}:
        assert end(opened, index, "failed", arm=places[index], cost_usd=0.0) == "counted"
    opened.ledger.cancel()
    seal(opened.ledger, opened.store, plan)
    names = [arm.model_dump() for arm in plan.arms]
    assert Outcomes(opened.store.objects).tally(plan.run) == RunTally(
        run=plan.run,
        attempts=AttemptCounts(started=12, lost=0, returned=0, late=0, superseded=0, redispatched=0),
        arms=(
            ArmTally(
                **names[0],
                closed={"passed": 1, "failed": 5},
                failures={},
                known_usd=0.5,
                tokens=TokenCounts(input=70, cached=30, output=15, reasoning=5),
            ),
            ArmTally(
                **names[1],
                closed={"failed": 5},
                failures={"model": 1},
                known_usd=0.25,
                tokens=TokenCounts(input=0, cached=0, output=0, reasoning=0),
            ),
        ),
    )


def test_a_run_whose_place_in_redis_is_gone_has_no_view(opened: Any) -> None:
    assert opened.ledger.view() is not None
    opened.ledger.delete()
    assert opened.ledger.view() is None
