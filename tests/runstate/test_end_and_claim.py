"""To end and claim in one call comes to the same as to end, then to claim, whatever holds a trial back."""

from dataclasses import dataclass
from typing import Any

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.contracts.budget import Budget
from evalfarm.contracts.verdict import Verdict
from evalfarm.runstate import Claim, Ended, Ending, Ledger, Limits, Shape, Spent, Terms, Throttle

SIZE = 6
LEASE_S = 3600.0
MODEL = "gpt-x"
TIMES = (b"paused", b"tended", b"created")
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "inconclusive", "infra_failed")


@dataclass(frozen=True)
class Step:
    """What befalls a run; the last of its trials that was claimed is the one that ends."""

    index: int  #: the trial that is claimed
    attempt: int = 1  #: of the one that ends: also one that is not at work
    verdict: Verdict = "passed"
    usd: float | None = None
    before: str = ""  #: what happens before: `cancel`, `pause`, `lose` the one at work, `forget` the run
    times: int = 1  #: how often the call is made: its answer may be lost


steps = st.builds(
    Step,
    index=st.integers(0, SIZE - 1),
    attempt=st.sampled_from((1, 1, 1, 2)),
    verdict=st.sampled_from(VERDICTS),
    usd=st.sampled_from((None, 0.0, 0.5, 2.0)),
    before=st.sampled_from(("", "", "", "", "cancel", "pause", "lose", "forget")),
    times=st.sampled_from((1, 1, 2, 3)),
)


def play(client: redis.Redis, told: list[Step], cap: int | None, usd: float | None, together: bool) -> list[Any]:
    """Every answer, and all that Redis holds in the end."""
    client.flushall()
    ledger, throttle = Ledger(client, "r"), Throttle(client, Limits())
    budget = None if usd is None else Budget(max_cost_usd=usd, trial_usd=(0.5,))
    ledger.create(SIZE, "sha256:plan", Shape(arms=(0,), budget=budget))
    ledger.take(SIZE, LEASE_S)
    terms, at_work, answers = Terms(0, MODEL, cap), 0, list[tuple[Ending, Claim]]()
    ledger.claim(at_work, "t", LEASE_S, terms)
    for step in told:
        match step.before:
            case "cancel":
                ledger.cancel()
            case "pause":
                throttle.pause(MODEL, 600)
            case "lose":
                client.zadd("f:{r}:fl", {str(at_work): 0}, xx=True)
                ledger.reap(ledger.overdue(SIZE, LEASE_S), max_attempts=3, backoff_s=LEASE_S)
            case "forget":
                client.flushall()
        ended = Ended(
            at_work,
            step.attempt,
            verdict=step.verdict,
            row=b"{}",
            final=step.verdict != "infra_failed",
            backoff_s=LEASE_S,
            max_attempts=3,
            spent=Spent(0, step.usd),
        )
        for _ in range(step.times):
            if together:
                answers.append(ledger.end_and_claim(ended, step.index, "t", LEASE_S, terms))
            else:
                answers.append((ledger.end(ended), ledger.claim(step.index, "t", LEASE_S, terms)))
        at_work = step.index if answers[-1][1].status == "ok" else at_work
    return [*answers, held(client)]


def held(client: redis.Redis) -> dict[str, Any]:
    """All that is no time: of sorted sets the members, of the stream what it tells, and nothing of the pace."""
    found: dict[str, Any] = {}
    for key in sorted(client.keys()):
        match client.type(key):
            case b"hash" if not key.endswith(b":pace"):
                found[key.decode()] = {name: value for name, value in client.hgetall(key).items() if name not in TIMES}
            case b"zset":
                found[key.decode()] = set(client.zrange(key, 0, -1))
            case b"stream":
                found[key.decode()] = [fields for _, fields in client.xrange(key)]
            case b"string":
                found[key.decode()] = client.get(key)
    return found


@given(
    told=st.lists(steps, min_size=1, max_size=8), cap=st.sampled_from((None, 1, 2)), usd=st.sampled_from((None, 2.0))
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_two_in_one_call_come_to_the_same_as_one_after_the_other(
    client: redis.Redis, told: list[Step], cap: int | None, usd: float | None
) -> None:
    assert play(client, told, cap, usd, together=True) == play(client, told, cap, usd, together=False)


@given(
    told=st.lists(steps, min_size=1, max_size=8), cap=st.sampled_from((None, 1, 2)), usd=st.sampled_from((None, 2.0))
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_made_again_the_call_ends_nothing_and_begins_nothing_a_second_time(
    client: redis.Redis, told: list[Step], cap: int | None, usd: float | None
) -> None:
    once = [Step(one.index, one.attempt, one.verdict, one.usd, one.before) for one in told]
    again = [Step(one.index, one.attempt, one.verdict, one.usd, one.before, times=3) for one in told]
    held_once, held_again = (play(client, steps, cap, usd, together=True)[-1] for steps in (once, again))
    assert held_again == held_once
