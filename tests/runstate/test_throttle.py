import math

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.runstate import Ended, Ledger, Limits, ModelLimits, Terms, Throttle, room
from evalfarm.runstate.throttle import LONGEST_PAUSE_S, MINUTE_MS, request_pace, token_pace

MODEL = "gpt-x"
CTL, SEM = "f:m:gpt-x:ctl", "f:m:gpt-x:sem"
CAPPED = Terms(0, MODEL, 2)


def limits(**of: float) -> Limits:
    return Limits(models={MODEL: ModelLimits.model_validate(of)})


def throttle(client: redis.Redis, **of: float) -> Throttle:
    return Throttle(client, limits(**of))


def opened(client: redis.Redis, run: str = "night-1", size: int = 9) -> Ledger:
    ledger = Ledger(client, run)
    ledger.create(size, "sha256:plan")
    ledger.take(size, 60)
    return ledger


def claims(ledger: Ledger, *indices: int, terms: Terms = CAPPED, lease_s: float = 60) -> list[str]:
    return [ledger.claim(index, f"t{index}", lease_s, terms).status for index in indices]


def end(ledger: Ledger, index: int, attempt: int = 1, verdict: str = "passed") -> str:
    return ledger.end(
        Ended(
            index,
            attempt,
            verdict=verdict,  # type: ignore[arg-type]
            row=b"{}",
            final=verdict != "infra_failed",
            backoff_s=60,
            max_attempts=3,
        )
    )


def let_pause_pass(client: redis.Redis) -> None:
    client.hset(CTL, "paused", 1)


def cap_of(client: redis.Redis) -> int | None:
    cap = client.hget(CTL, "cap")
    return None if cap is None else int(cap)


# Concurrency: the lease is the place.


def test_a_model_has_no_more_trials_in_flight_than_its_cap_over_all_runs(client: redis.Redis) -> None:
    one, other = opened(client), opened(client, "night-2")
    assert claims(one, 0) + claims(other, 0) + claims(one, 1) == ["ok", "ok", "deferred"]
    assert end(other, 0) == "counted"
    client.zadd("f:{night-1}:rq", {"1": 0})
    one.take(1, 60)
    assert claims(one, 1) == ["ok"]


def test_a_deferred_trial_waits_without_an_attempt_spent(client: redis.Redis) -> None:
    ledger = opened(client)
    claims(ledger, 0, 1, 2)
    progress = ledger.progress()
    assert (progress.attempts, progress.waiting, client.hget("f:{night-1}:cnt", "deferred")) == (2, 1, b"1")


def test_a_model_without_a_cap_and_a_trial_without_a_model_are_never_deferred(client: redis.Redis) -> None:
    ledger = opened(client)
    claims(ledger, 0, 1)
    assert claims(ledger, 2, terms=Terms(0, "other")) + claims(ledger, 3, terms=Terms()) == ["ok", "ok"]


def test_a_worker_that_dies_leaves_its_place_when_its_lease_runs_out(client: redis.Redis) -> None:
    ledger = opened(client)
    claims(ledger, 0, 1)
    client.zadd(SEM, {"night-1/0:1": 1})
    assert claims(ledger, 2) == ["ok"]


def test_a_place_is_kept_as_long_as_the_lease_is_renewed(client: redis.Redis) -> None:
    ledger = opened(client)
    claims(ledger, 0, 1)
    before = client.zscore(SEM, "night-1/0:1")
    assert ledger.renew(0, 1, "t0", 600)
    after = client.zscore(SEM, "night-1/0:1")
    assert before is not None
    assert after is not None
    assert after == client.zscore("f:{night-1}:fl", "0")
    assert after > before + 500_000


@pytest.mark.parametrize("verdict", ["passed", "infra_failed"])
def test_however_an_attempt_ends_its_place_is_free(client: redis.Redis, verdict: str) -> None:
    ledger = opened(client)
    claims(ledger, 0, 1)
    end(ledger, 0, verdict=verdict)
    assert client.zrange(SEM, 0, -1) == [b"night-1/1:1"]
    assert client.hgetall("f:{night-1}:hold") == {b"1:1": b"0:0:2:gpt-x"}


def test_a_zombie_gives_up_its_own_place_and_not_its_successors(client: redis.Redis) -> None:
    ledger = opened(client)
    claims(ledger, 0)
    client.zadd("f:{night-1}:fl", {"0": 0})
    ledger.reap([held for held in ledger.overdue(9, 0)], max_attempts=3, backoff_s=0)
    ledger.take(9, 60)
    claims(ledger, 0)
    end(ledger, 0, 1)
    assert client.zrange(SEM, 0, -1) == [b"night-1/0:2"]


def test_what_the_feeder_may_hand_out_follows_caps_and_pauses(client: redis.Redis) -> None:
    ledger, known = opened(client), limits(concurrency=2)
    assert room(client, known, [MODEL, "other"]) == {MODEL: 2, "other": math.inf}
    claims(ledger, 0)
    assert room(client, known, [MODEL]) == {MODEL: 1}
    Throttle(client, known).pause(MODEL, 30)
    assert room(client, known, [MODEL]) == {MODEL: 0}
    let_pause_pass(client)
    assert room(client, known, [MODEL]) == {MODEL: 0}  # the cap is 1 now


# 429: everybody pauses, and comes back slowly.


def test_after_a_429_no_trial_of_the_model_starts_before_the_time_is_up(client: redis.Redis) -> None:
    ledger = opened(client)
    throttle(client).pause(MODEL, 30)
    assert claims(ledger, 0) + claims(ledger, 1, terms=Terms(0, "other")) == ["deferred", "ok"]
    seconds, _ = client.time()
    waits_until = client.zscore("f:{night-1}:rq", "0")
    assert waits_until is not None
    assert 28 < waits_until / 1000 - seconds <= 31


def test_a_pause_is_never_shortened_and_never_longer_than_a_quarter_of_an_hour(client: redis.Redis) -> None:
    limited = throttle(client)
    limited.pause(MODEL, 30)
    limited.pause(MODEL, None)
    assert 28 < limited.paused_s(MODEL) <= 30
    limited.pause(MODEL, 86400)
    assert LONGEST_PAUSE_S - 2 < limited.paused_s(MODEL) <= LONGEST_PAUSE_S


def test_another_process_learns_of_a_pause_within_a_moment(client: redis.Redis) -> None:
    now = [100.0]
    other = Throttle(client, Limits(), clock=lambda: now[0])
    assert other.paused_s(MODEL) == 0
    throttle(client).pause(MODEL, 30)
    assert (other.paused_s(MODEL), other.must_ask(MODEL)) == (0, False)
    now[0] += 0.3
    assert (other.must_ask(MODEL), 28 < other.paused_s(MODEL) <= 30) == (True, True)
    assert (other.must_ask(MODEL), other.book(MODEL, 1, 60) > 28, other.book(MODEL, 1, 5) < 0) == (False, True, True)


def test_a_429_halves_the_cap_once_a_pause_and_never_below_one(client: redis.Redis) -> None:
    limited, caps = throttle(client, concurrency=9), []
    for _ in range(5):
        limited.pause(MODEL, 60)
        limited.pause(MODEL, 60)  # met by another request at work
        caps.append(cap_of(client))
        let_pause_pass(client)
    assert caps == [4, 2, 1, 1, 1]


def test_without_a_cap_there_is_none_to_halve(client: redis.Redis) -> None:
    throttle(client).pause(MODEL, 1)
    assert cap_of(client) is None


def test_twenty_attempts_that_end_well_give_one_step_back_up_to_the_configured_cap(client: redis.Redis) -> None:
    ledger, terms = opened(client, size=100), Terms(0, MODEL, 4)
    throttle(client, concurrency=4).pause(MODEL, 1)
    let_pause_pass(client)
    caps = []
    for index in range(60):
        assert claims(ledger, index, terms=terms) == ["ok"]
        end(ledger, index, verdict="infra_failed" if index % 3 == 2 else "passed")
        caps.append(cap_of(client))
    assert caps == [2] * 28 + [3] * 30 + [None] * 2
    assert claims(ledger, 60, 61, 62, 63, 64, terms=terms) == ["ok"] * 4 + ["deferred"]


# Requests and tokens a minute: GCRA.


def test_requests_come_in_a_small_burst_and_then_at_their_pace(client: redis.Redis) -> None:
    limited = throttle(client, requests_per_minute=10)  # 2 at once, then one every 60/9 s
    waits = [limited.book(MODEL, 1, 600) for _ in range(5)]
    assert waits[:2] == [0.0, 0.0]
    assert waits[2:] == [pytest.approx(60 / 9 * at, abs=3) for at in (1, 2, 3)]


def test_a_request_that_would_wait_too_long_takes_no_place(client: redis.Redis) -> None:
    limited = throttle(client, requests_per_minute=1)
    assert limited.book(MODEL, 1, 600) == 0
    before = client.hgetall(CTL)
    assert [limited.book(MODEL, 1, 30) < -50, client.hgetall(CTL) == before] == [True, True]
    assert 50 < limited.book(MODEL, 1, 60) <= 60


def test_tokens_beyond_the_estimate_are_waited_for_by_those_who_come_later(client: redis.Redis) -> None:
    limited = throttle(client, tokens_per_minute=60_000)  # 6,000 at once, then 900 a second
    assert limited.book(MODEL, 6_000, 600) == 0
    assert limited.book(MODEL, 36_000, 600) == 0
    assert 30 < limited.book(MODEL, 0, 600) <= 40
    limited.correct(MODEL, 9_000)
    assert 40 < limited.book(MODEL, 0, 600) <= 50
    limited.correct(MODEL, -45_000)
    assert limited.book(MODEL, 0, 600) == 0


def test_a_model_with_a_long_queue_of_requests_starts_no_further_trial(client: redis.Redis) -> None:
    limited, ledger = throttle(client, requests_per_minute=10), opened(client)
    while limited.book(MODEL, 1, 600) < 31:
        pass
    assert claims(ledger, 0, terms=Terms(0, MODEL)) == ["deferred"]


def test_the_pace_is_kept_by_the_servers_clock_through_a_pause(client: redis.Redis) -> None:
    limited = throttle(client, requests_per_minute=600)
    limited.pause(MODEL, 20)
    assert 18 < limited.book(MODEL, 1, 600) <= 20
    assert limited.book(MODEL, 1, 5) < 0


def test_requests_that_come_in_a_pause_keep_their_pace_after_it(client: redis.Redis) -> None:
    limited = throttle(client, requests_per_minute=60)  # 7 at once, then one every 60/54 s
    limited.pause(MODEL, 300)
    waits = [limited.book(MODEL, 1, 600) for _ in range(60)]
    assert (waits[0] <= 300, 330 < waits[-1] <= 300 + 53 * 60 / 54) == (True, True)


@given(rate=st.floats(0.1, 100_000))
def test_no_minute_sees_more_requests_than_the_limit(rate: float) -> None:
    step_ms, early_ms = request_pace(ModelLimits(requests_per_minute=rate))
    at_once = 1 + round(early_ms / step_ms)
    in_a_minute = at_once - 1 + math.ceil(MINUTE_MS / step_ms - 1e-6)
    assert in_a_minute <= math.ceil(rate)


@given(rate=st.floats(1, 1e9))
def test_no_minute_sees_more_tokens_than_the_limit_and_one_request(rate: float) -> None:
    step_ms, early_ms = token_pace(ModelLimits(tokens_per_minute=rate))
    assert (early_ms + MINUTE_MS) / step_ms == pytest.approx(rate)


def test_what_is_kept_of_a_model_is_forgotten_when_nobody_asks_for_it(client: redis.Redis) -> None:
    ledger = opened(client)
    throttle(client, concurrency=2, requests_per_minute=5).book(MODEL, 1, 60)
    claims(ledger, 0)
    assert [0 < client.ttl(key) <= 86_400 for key in (CTL, SEM)] == [True, True]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.sampled_from(["take", "end", "fail", "die", "zombie", "limit"]), st.integers(0, 7))),
    cap=st.integers(1, 4),
)
def test_whatever_happens_no_more_trials_hold_a_lease_than_the_cap(
    client: redis.Redis, steps: list[tuple[str, int]], cap: int
) -> None:
    client.flushall()
    ledger, terms, at_work = opened(client, size=8), Terms(0, MODEL, cap), dict[int, int]()
    gone: list[tuple[int, int]] = []
    for what, index in steps:
        match what:
            case "take":
                for waiting in map(int, client.zrange("f:{night-1}:rq", 0, -1)):
                    client.zadd("f:{night-1}:rq", {str(waiting): 0})
                ledger.take(9, 60)
                claim = ledger.claim(index, f"{index}", 60, terms)
                if claim.status == "ok":
                    at_work[index] = claim.attempt
            case "end" | "fail" if index in at_work:
                end(ledger, index, at_work.pop(index), "passed" if what == "end" else "infra_failed")
            case "die" if index in at_work:
                gone.append((index, at_work.pop(index)))
                client.zadd("f:{night-1}:fl", {str(index): 0}, xx=True)
                client.zadd(SEM, {f"night-1/{index}:{gone[-1][1]}": 0}, xx=True)
                ledger.reap(ledger.overdue(9, 0), max_attempts=200, backoff_s=0)
            case "zombie" if gone:
                end(ledger, *gone.pop(0))
            case "limit":
                throttle(client, concurrency=cap).pause(MODEL, 1)
                let_pause_pass(client)
        seconds, _ = client.time()
        assert len(at_work) <= client.zcount(SEM, seconds * 1000, "+inf") <= cap
