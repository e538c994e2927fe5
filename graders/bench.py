"""A judge's bench: take an item of a run's judging through claim, judges, store and commit.

What a judge does never touches the trial: its trace and its other labels are stored before it is asked, and a judge
that fails leaves the trial INCONCLUSIVE.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

from evalfarm.contracts.answer import Rubric
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.judging import Exhibit, JudgingItem, JudgingPlan, Opinion, TrialOpinions
from evalfarm.contracts.run import Plan, Trace
from evalfarm.errors import BrokerUnavailable
from evalfarm.judgings import Judgings
from evalfarm.runstate import Client, Handed, JudgingQueue, Limits
from evalfarm.store import Store
from graders.evidence import gaps
from graders.judge.ask import Ask, Judge, judge_answer
from graders.judge.exhibits import exhibit_of, rubric_of
from graders.judge.panel import counted

#: Seconds for which a worker that judges is believed to be there, renewed three times as often.
HOLD_S = 60.0
#: Seconds that one judge may take for one answer, replies that cannot be used and waits included.
LIMIT_S = 600.0

NO_LIMITS = Limits()

OpenAsk = Callable[[Plan], Awaitable[Ask]]
"""The way to a run's judges, handed in: who judges knows nothing of networks and keys."""


@dataclass
class Bench:
    """One worker process at judging."""

    store: Store
    redis: Client
    open_ask: OpenAsk
    limits: Limits = NO_LIMITS
    hold_s: float = HOLD_S
    resources: AsyncExitStack = field(default_factory=AsyncExitStack)  #: what is let go when the process ends
    _open: dict[str, tuple[Plan, JudgingPlan, Ask]] = field(default_factory=dict)  #: runs whose judging was begun here

    async def run(self, run: str, handed: Sequence[Handed]) -> None:
        """Judge the items of one message, side by side: all that they do is wait for the judges."""
        plan, judging, ask = await self._opened(run)
        queue = JudgingQueue(self.redis, run, {model: self.limits.of(model).concurrency for model in plan.judges})
        items = [(one, judging.items[one.item]) for one in handed]
        await asyncio.gather(*(self._item(plan, queue, ask, one, item) for one, item in items))

    async def _item(self, plan: Plan, queue: JudgingQueue, ask: Ask, handed: Handed, item: JudgingItem) -> None:
        if not await asyncio.to_thread(queue.claim, handed, self.hold_s):
            return
        renewing = asyncio.create_task(self._renew(queue, handed))
        try:
            cost_usd, again = await self._judge(plan, queue, ask, handed, item)
        finally:
            renewing.cancel()
        await asyncio.to_thread(queue.end, handed, cost_usd=cost_usd, again=again)

    async def _judge(
        self, plan: Plan, queue: JudgingQueue, ask: Ask, handed: Handed, item: JudgingItem
    ) -> tuple[float | None, bool]:
        """Have an item judged and keep what came of it: what that cost, and whether another attempt is worth it."""
        kept = Judgings(self.store.objects)
        earlier = await asyncio.to_thread(kept.opinions, plan.run, item.index)
        # Ends that Redis was never told, or has forgotten. Told twice, they count once.
        for one in earlier:
            if one.attempt != handed.attempt:
                told = Handed(handed.item, one.attempt)
                await asyncio.to_thread(queue.end, told, cost_usd=one.cost_usd, again=False)
        untold = [one.cost_usd for one in earlier if one.attempt == handed.attempt]
        if counted(earlier) is not None:  # what was paid for is not paid for again
            return _sum(untold), False
        trace = await asyncio.to_thread(self.store.get_trace, plan.run, item.index, item.attempt)
        number = max(handed.attempt, 1 + max((one.attempt for one in earlier), default=0))
        opinions = TrialOpinions(
            run=plan.run,
            index=item.index,
            judged=item.attempt,
            attempt=number,
            opinions=await judge_trace(plan, trace, ask, number),
        )
        while not await asyncio.to_thread(kept.put_opinions, opinions):  # a number that Redis gave away twice
            opinions = opinions.model_copy(update={"attempt": opinions.attempt + 1})
        return _sum([*untold, opinions.cost_usd]), opinions.outage

    async def _renew(self, queue: JudgingQueue, handed: Handed) -> None:
        while True:
            await asyncio.sleep(self.hold_s / 3)
            with suppress(BrokerUnavailable):  # the judges go on: what they say is stored, and counts
                await asyncio.to_thread(queue.renew, handed, self.hold_s)

    async def _opened(self, run: str) -> tuple[Plan, JudgingPlan, Ask]:
        if run not in self._open:
            plan = await asyncio.to_thread(self.store.get_plan, run)
            judging = await asyncio.to_thread(Judgings(self.store.objects).plan, run)
            self._open[run] = (plan, judging or JudgingPlan(run=run, items=()), await self.open_ask(plan))
        return self._open[run]


def _sum(costs: Sequence[float | None]) -> float | None:
    return None if None in costs else sum(cost for cost in costs if cost is not None)


async def judge_trace(plan: Plan, trace: Trace, ask: Ask, number: int) -> tuple[Opinion, ...]:
    """The opinion of each of a plan's judges on a trace; `number` is that of the attempt at judging it.

    No judge is asked about a trace that is not whole, or that holds no answer: there is nothing to hold an answer
    against, and nothing to judge. Raises ValueError for a case without a rubric.
    """
    exhibit, rubric = exhibit_of(trace), rubric_of(plan.suite, plan.suite.case(trace.trial.case))
    if rubric is None:
        raise ValueError(f"case {trace.trial.case!r} has no rubric, so its answers go to no judge")
    missing = "; ".join(gaps(trace)) or ("" if exhibit is not None else "there is no answer")
    if missing or exhibit is None:
        failure = f"it was not asked: {missing}"
        return tuple(Opinion(judge=model, failure=failure, replies=0, cost_usd=0.0) for model in plan.judges)
    seed = judging_seed(trace.trial.seed, number)
    judges = [Judge(model, ask) for model in plan.judges]
    return tuple(await asyncio.gather(*(_in_time(judge, rubric, exhibit, seed) for judge in judges)))


def judging_seed(seed: int, number: int) -> int:
    """63 bits from a trial's seed and the number of a judging: judged again, a simulated judge draws again."""
    return int(digest_bytes(f"{seed}/judging/{number}".encode()).removeprefix("sha256:")[:16], 16) >> 1


async def _in_time(judge: Judge, rubric: Rubric, exhibit: Exhibit, seed: int) -> Opinion:
    try:
        async with asyncio.timeout(LIMIT_S):
            return await judge_answer(judge, rubric, exhibit, seed)
    except TimeoutError:
        return Opinion(judge=judge.model, failure=f"no answer within {LIMIT_S:g} s", outage=True)
