import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.contracts.budget import Budget
from evalfarm.contracts.verdict import Verdict
from evalfarm.runstate import Ended, Ledger, Money, Shape, Spent, Terms

RUN = "night-1"
TWO_ARMS = (0, 1)


def opened(client: redis.Redis, usd: float | None = None, guesses: tuple[float, ...] = (1.0, 0.25)) -> Ledger:
    ledger = Ledger(client, RUN)
    budget = None if usd is None else Budget(max_cost_usd=usd, trial_usd=guesses)
    ledger.create(20, "sha256:plan", Shape(arms=TWO_ARMS, budget=budget))
    ledger.take(20, 60)
    return ledger


def claim(ledger: Ledger, index: int) -> str:
    return ledger.claim(index, f"t{index}", 60, Terms(index % 2)).status


def end(
    ledger: Ledger, index: int, usd: float | None, *, attempt: int = 1, verdict: Verdict = "passed", most: int = 3
) -> str:
    return ledger.end(
        Ended(
            index,
            attempt,
            verdict=verdict,
            row=b"{}",
            final=verdict != "infra_failed",
            backoff_s=0,
            max_attempts=most,
            spent=Spent(index % 2, usd),
        )
    )


def lose(client: redis.Redis, ledger: Ledger, index: int) -> None:
    client.zadd(f"f:{{{RUN}}}:fl", {str(index): 0}, xx=True)
    ledger.reap(ledger.overdue(9, 0), max_attempts=3, backoff_s=0)


def seen(client: redis.Redis) -> Money:
    return Ledger(client, RUN).money(2)


def told(
    spent: float, reserved: float, *arms: float | None, budget: float | None = None, exhausted: bool = False
) -> Money:
    return Money(budget, spent, reserved, exhausted, arms)


def test_without_a_budget_the_cost_is_kept_and_nothing_is_reserved(client: redis.Redis) -> None:
    ledger = opened(client)
    claim(ledger, 0)
    end(ledger, 0, 0.5)
    claim(ledger, 1)
    assert seen(client) == told(0.5, 0, 0.5, 0.0)


def test_a_trial_reserves_the_guess_of_its_arm_and_settles_what_it_cost(client: redis.Redis) -> None:
    ledger = opened(client, 10)
    claim(ledger, 0)
    claim(ledger, 1)
    assert seen(client) == told(0, 1.25, 0, 0, budget=10)
    end(ledger, 0, 0.75)
    assert seen(client) == told(0.75, 0.25, 0.75, 0, budget=10)


def test_once_a_trial_of_an_arm_has_ended_the_dearest_one_is_what_the_next_reserves(client: redis.Redis) -> None:
    ledger = opened(client, 10)
    for index, usd in ((0, 2.0), (2, 0.5)):
        claim(ledger, index)
        end(ledger, index, usd)
    claim(ledger, 4)
    assert seen(client) == told(2.5, 2.0, 2.5, 0, budget=10)


def test_a_trial_that_is_not_covered_waits_while_others_are_at_work(client: redis.Redis) -> None:
    ledger = opened(client, 1.5)
    assert [claim(ledger, 0), claim(ledger, 2)] == ["ok", "deferred"]
    end(ledger, 0, 0.25)
    client.zadd(f"f:{{{RUN}}}:rq", {"2": 0})
    ledger.take(1, 60)
    assert claim(ledger, 2) == "ok"


def test_when_nothing_is_at_work_and_one_more_is_not_covered_the_run_is_stopped(client: redis.Redis) -> None:
    ledger = opened(client, 1.5)
    claim(ledger, 0)
    end(ledger, 0, 1.0)
    assert claim(ledger, 2) == "cancelled"
    assert seen(client) == told(1.0, 0, 1.0, 0, budget=1.5, exhausted=True)
    progress = ledger.progress()
    assert (progress.cancelled, progress.in_flight, progress.closed, ledger.take(9, 60)) == (True, 0, 1, [])


@pytest.mark.parametrize("verdict", ["passed", "infra_failed"])
def test_every_attempt_is_paid_for_however_it_ends(client: redis.Redis, verdict: Verdict) -> None:
    ledger = opened(client, 10)
    claim(ledger, 0)
    lose(client, ledger, 0)
    ledger.take(9, 60)
    claim(ledger, 0)
    assert end(ledger, 0, 0.5, attempt=2, verdict=verdict) == ("counted" if verdict == "passed" else "retry")
    assert end(ledger, 0, 0.25) == ("late" if verdict == "passed" else "superseded")
    assert seen(client) == told(0.75, 0, 0.75, 0, budget=10)


def test_a_call_that_is_repeated_pays_once(client: redis.Redis) -> None:
    ledger = opened(client, 10)
    claim(ledger, 0)
    claim(ledger, 2)
    lose(client, ledger, 2)
    for _ in range(3):
        end(ledger, 0, 0.5)
        end(ledger, 2, 0.25, verdict="infra_failed")
    assert seen(client) == told(0.75, 0, 0.75, 0, budget=10)


def test_a_lost_attempt_keeps_its_reservation_because_it_may_have_spent_it(client: redis.Redis) -> None:
    ledger = opened(client, 10)
    claim(ledger, 0)
    lose(client, ledger, 0)
    assert seen(client) == told(0, 1.0, 0, 0, budget=10)


def test_an_attempt_of_unknown_cost_spends_what_was_reserved_and_leaves_its_arm_unknown(client: redis.Redis) -> None:
    ledger = opened(client, 10)
    claim(ledger, 0)
    end(ledger, 0, None)
    assert seen(client) == told(1.0, 0, None, 0, budget=10)


def test_amounts_too_large_for_a_plain_lua_number_are_written_out(client: redis.Redis) -> None:
    ledger = opened(client, 2e9, (1e9, 1e9))
    claim(ledger, 0)
    end(ledger, 0, 1.5e9)
    assert seen(client) == told(1.5e9, 0, 1.5e9, 0, budget=2e9)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    costs=st.lists(st.integers(0, 300).map(lambda cents: cents / 100), min_size=20, max_size=20),
    order=st.lists(st.integers(0, 19), max_size=60),
    budget=st.integers(30, 900).map(lambda cents: cents / 100),
)
def test_a_budget_is_never_overshot_by_more_than_what_was_in_flight(
    client: redis.Redis, costs: list[float], order: list[int], budget: float
) -> None:
    client.flushall()
    ledger, at_work, most = opened(client, budget, (0.3, 0.3)), set[int](), budget
    for index in order:
        if index in at_work:
            end(ledger, index, costs[index])
            at_work.discard(index)
            continue
        if claim(ledger, index) == "ok":
            at_work.add(index)
            now = seen(client)
            assert now.spent_usd + now.reserved_usd <= budget + 1e-9
            most = budget + sum(costs[other] for other in at_work)
    for index in at_work:
        end(ledger, index, costs[index])
    now = seen(client)
    assert (now.spent_usd <= most + 1e-9, now.reserved_usd) == (True, 0)
