import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from evalfarm.contracts.answer import Criterion, Rubric
from evalfarm.contracts.judging import JudgingItem, JudgingPlan, Opinion, TrialOpinions
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.judgings import Judgings
from evalfarm.runstate import Handed, JudgingProgress, JudgingQueue
from evalfarm.store import Store
from graders.bench import Bench, judge_trace, judging_seed
from graders.judge.ask import Heard

HOLD_S = 60.0


@dataclass
class Provider:
    """An asker whose judge passes everything, or is out of reach for the first so many requests."""

    down_for: int = 0
    seeds: list[int] = field(default_factory=list)

    async def __call__(self, request: dict[str, Any], seed: int) -> Heard:
        self.seeds.append(seed)
        if len(self.seeds) <= self.down_for:
            return Heard(None, "HTTP 503", (), 0.0)
        label = {"criterion": "right", "quote": "Yes", "reason": "So.", "label": "PASS"}
        part = {"type": "output_text", "text": json.dumps({"labels": [label]})}
        return Heard({"status": "completed", "output": [{"content": [part]}]}, None, (), 0.5)


@pytest.fixture
def plan() -> Plan:
    case = Case(id="a", turns=("Q?",), rubric="desk")
    rubric = Rubric(id="desk", version="1", criteria=(Criterion(id="right", text="It is right."),))
    suite = Suite(
        suite="s", version="1", plugin=Plugin(name="P"), server=Server(python="s.py"), rubrics=(rubric,), cases=(case,)
    )
    arm = Arm(model="m", harness="loop", variant="plain")
    return Plan(run="s-1", suite=suite, arms=(arm,), cases=("a",), repeats=2, judges=("j", "k"))


def traced(plan: Plan, index: int, answer: str = "Yes.", *, complete: bool = True) -> Trace:
    return Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        turns=(Turn(query="Q?", answer=answer),),
        served_calls=(ToolCall(name="t", arguments={}, result={"ok": True}),),
        telemetry=Telemetry(complete=complete, gaps=() if complete else ("a call is missing",)),
        started_at=0.0,
        duration_s=1.0,
    )


@pytest.fixture
def store(plan: Plan) -> Store:
    store = Store("memory://")
    store.put_plan(plan)
    for index in range(plan.size):
        store.put_trace(traced(plan, index))
    items = tuple(JudgingItem(index=index, attempt=1) for index in range(plan.size))
    Judgings(store.objects).fix_plan(JudgingPlan(run=plan.run, items=items))
    return store


@pytest.fixture
def queue(client: redis.Redis, plan: Plan) -> JudgingQueue:
    queue = JudgingQueue(client, plan.run)
    queue.open(plan.size)
    return queue


@pytest.fixture
def work(store: Store, client: redis.Redis, plan: Plan) -> Callable[..., None]:
    """Has a bench work on what was handed out, with a provider."""

    def run(provider: Provider, handed: list[Handed]) -> None:
        async def open_ask(_: Plan) -> Provider:
            return provider

        asyncio.run(Bench(store, client, open_ask).run(plan.run, handed))

    return run


def values(attempts: tuple[TrialOpinions, ...]) -> list[list[str]]:
    return [[opinion.value for opinion in one.opinions] for one in attempts]


def test_every_judge_is_asked_and_what_they_say_is_stored_before_the_item_ends(
    store: Store, queue: JudgingQueue, work: Callable[..., None]
) -> None:
    work(provider := Provider(), queue.take(8, HOLD_S))
    assert [values(Judgings(store.objects).opinions("s-1", index)) for index in (0, 1)] == [[["PASS", "PASS"]]] * 2
    assert queue.progress() == JudgingProgress(items=2, left=0, spent_usd=2.0, unpriced=0)
    assert len(provider.seeds) == 4
    assert len(set(provider.seeds)) == 2  # two trials draw apart, two judges of one trial do not


def test_a_message_that_comes_twice_is_worked_on_once(
    store: Store, queue: JudgingQueue, work: Callable[..., None]
) -> None:
    handed = queue.take(1, HOLD_S)
    work(provider := Provider(), [*handed, *handed])
    work(provider, handed)
    assert len(provider.seeds) == 2
    assert len(Judgings(store.objects).opinions("s-1", 0)) == 1


def test_an_outage_is_kept_and_the_answer_waits_for_another_attempt(
    store: Store, queue: JudgingQueue, work: Callable[..., None]
) -> None:
    work(Provider(down_for=1), queue.take(1, HOLD_S))
    (attempt,) = Judgings(store.objects).opinions("s-1", 0)
    assert (attempt.outage, sorted(values((attempt,))[0])) == (True, ["INCONCLUSIVE", "PASS"])
    assert queue.progress().left == 2


def test_an_end_that_redis_was_never_told_is_told_with_the_next_attempt(
    store: Store, queue: JudgingQueue, client: redis.Redis, work: Callable[..., None]
) -> None:
    (lost,) = queue.take(1, HOLD_S)
    assert queue.claim(lost, 0.0)  # its worker stores what the judges said, and dies before it says so
    opinion = Opinion(judge="j", failure="HTTP 503", outage=True, cost_usd=0.25)
    Judgings(store.objects).put_opinions(
        TrialOpinions(run="s-1", index=0, judged=1, attempt=1, opinions=(opinion,)),
    )
    work(Provider(), queue.take(2, HOLD_S))
    assert values(Judgings(store.objects).opinions("s-1", 0)) == [["INCONCLUSIVE"], ["PASS", "PASS"]]
    assert queue.progress() == JudgingProgress(items=2, left=0, spent_usd=2.25, unpriced=0)


def test_a_judge_that_takes_longer_than_its_hold_is_renewed(
    store: Store, queue: JudgingQueue, client: redis.Redis, plan: Plan
) -> None:
    hold_s = 0.3

    class Slow(Provider):
        async def __call__(self, request: dict[str, Any], seed: int) -> Heard:
            for _ in range(3):
                asked_at = client.zscore("f:{s-1}:due", "0")
                while client.zscore("f:{s-1}:due", "0") == asked_at:  # noqa: ASYNC110 - Redis tells nobody
                    await asyncio.sleep(0.01)
            return await super().__call__(request, seed)

    async def open_ask(_: Plan) -> Provider:
        return Slow()

    asyncio.run(Bench(store, client, open_ask, hold_s=hold_s).run(plan.run, queue.take(1, HOLD_S)))
    assert queue.progress() == JudgingProgress(items=2, left=1, spent_usd=1.0, unpriced=0)


def test_another_attempt_at_judging_draws_anew() -> None:
    assert len({judging_seed(seed, number) for seed in (1, 2) for number in (1, 2, 3)}) == 6
    assert 0 <= judging_seed(1, 1) == judging_seed(1, 1) < 2**63


def test_what_is_stored_is_not_paid_for_again_after_the_queue_was_lost(
    store: Store, queue: JudgingQueue, client: redis.Redis, work: Callable[..., None]
) -> None:
    work(Provider(), queue.take(1, HOLD_S))
    client.flushall()
    queue.open(2)
    work(provider := Provider(), queue.take(8, HOLD_S))
    assert len(provider.seeds) == 2  # of the other trial
    assert len(Judgings(store.objects).opinions("s-1", 0)) == 1
    assert queue.progress().left == 0


def test_an_attempt_after_the_queue_was_lost_overwrites_no_earlier_one(
    store: Store, queue: JudgingQueue, client: redis.Redis, work: Callable[..., None]
) -> None:
    work(Provider(down_for=2), queue.take(1, HOLD_S))
    client.flushall()
    queue.open(2)
    work(Provider(), queue.take(1, HOLD_S))
    assert values(Judgings(store.objects).opinions("s-1", 0)) == [["INCONCLUSIVE", "INCONCLUSIVE"], ["PASS", "PASS"]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"complete": False}, "it was not asked: a call is missing"),
        ({"answer": "  "}, "it was not asked: there is no answer"),
    ],
)
def test_no_judge_is_asked_about_a_trace_that_proves_nothing(change: dict[str, Any], why: str, plan: Plan) -> None:
    opinions = asyncio.run(judge_trace(plan, traced(plan, 0, **change), provider := Provider(), 1))
    assert [(one.judge, one.value, one.failure, one.outage, one.cost_usd) for one in opinions] == [
        (judge, "INCONCLUSIVE", why, False, 0.0) for judge in ("j", "k")
    ]
    assert provider.seeds == []
