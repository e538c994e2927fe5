"""What a worker process judges with."""

from contextlib import AsyncExitStack

from evalfarm.cli.judgement.judge_door import JudgeDoor, open_door
from evalfarm.contracts.run import Plan
from evalfarm.runstate import connect, load_limits
from evalfarm.settings import Settings, environment
from evalfarm.store import Store
from graders.bench import Bench
from worker.station import Station


async def open_bench(settings: Settings, redis_url: str) -> Bench:
    """What a worker process judges with, for as long as it lives."""
    store, redis, stack = Store(settings.store_url), connect(redis_url), AsyncExitStack()
    station = await Station(settings, store, environment()).open()
    stack.push_async_callback(station.close)

    async def open_ask(plan: Plan) -> JudgeDoor:
        prepared = await station.prepare(plan.run)
        return await open_door(settings, plan.suite, prepared.folder, plan.judges, stack, redis)

    return Bench(store, redis, open_ask, load_limits(settings.limits), settings.lease_s, stack)
