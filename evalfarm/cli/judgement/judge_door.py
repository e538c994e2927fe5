"""The way to judges: the model gateway's own record, retries and limits, with no trial behind it."""

import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cases.policies import is_simulated
from cases.policies.judges import load_reader, simulated_judges
from evalfarm.cli.judgement.judges import check_judges, reader_file
from evalfarm.contracts.suite import Suite
from evalfarm.model_client import APIConnectionError, APIStatusError, create_response
from evalfarm.prices import Prices, cost_usd, load_prices
from evalfarm.runstate import Client, Throttle, load_limits
from evalfarm.settings import Settings
from graders.judge.ask import Heard
from worker.gateways.gate import Gate
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.tries import FIRST_WAIT_S
from worker.gateways.upstreams import Upstream, provider, simulated

#: Before the second try at a simulated judge: its outages are drawn, and waiting mends none.
_SIMULATED_WAIT_S = 0.002


@dataclass(frozen=True)
class JudgeDoor:
    """Sends judges' requests, each through a gateway of its own: what a request took is known for each apart."""

    upstreams: dict[str, Upstream]  #: by the judge's model
    prices: Prices

    async def __call__(self, request: dict[str, Any], seed: int) -> Heard:
        """Send one request. Never raises for the provider's faults."""
        model = str(request["model"])
        upstream = self.upstreams[model]
        wait_s = _SIMULATED_WAIT_S if upstream.simulated else FIRST_WAIT_S
        gateway = ModelGateway(upstream, seed=seed, started=time.monotonic(), first_wait_s=wait_s)
        response, failure = None, None
        try:
            response = await create_response(gateway.transport(), request)
        except (APIStatusError, APIConnectionError) as error:
            failure = gateway.outage or str(error)
        requests = tuple(gateway.requests)
        return Heard(response, failure, requests, cost_usd(self.prices, model, requests))


async def open_door(
    settings: Settings, suite: Suite, folder: Path, models: Iterable[str], stack: AsyncExitStack, redis: Client | None
) -> JudgeDoor:
    """The way to these judges on a suite whose files are in `folder`, open until `stack` closes.

    With `redis`, the farm's limits of each model hold for its judges too. Raises as `check_judges` does.
    """
    check_judges(settings, suite, models)
    throttle = None if redis is None else Throttle(redis, load_limits(settings.limits))
    upstreams: dict[str, Upstream] = {}
    for model in dict.fromkeys(models):
        shared = next((one for one in upstreams.values() if one.simulated == is_simulated(model)), None)
        if shared is None and is_simulated(model):
            shared = await simulated(simulated_judges(load_reader(folder / reader_file(suite))), stack)
        elif shared is None:
            shared = await provider(settings, stack)
        upstreams[model] = replace(shared, gate=Gate(model, throttle))
    return JudgeDoor(upstreams, load_prices(settings.prices))
