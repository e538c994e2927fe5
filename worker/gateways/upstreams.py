"""Where model requests go: a provider on the network, with its key, or the simulated model in this process."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx2

from cases.policies import Policy, is_simulated
from evalfarm.errors import ModelUnavailable
from evalfarm.settings import Settings
from worker.gateways.gate import OPEN, Gate
from worker.gateways.serving import loopback, serving
from worker.simulated_model import SEED_HEADER, simulated_app

#: Seconds without a byte from the provider after which a try has failed. Reasoning models think for minutes.
READ_TIMEOUT_S = 600.0
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Upstream:
    """A Responses API that the gateway forwards to."""

    client: httpx2.AsyncClient  #: its base URL ends where `/responses` begins
    headers: Mapping[str, str]  #: added to every request: the key, never anything that was sent from a cell
    simulated: bool
    gate: Gate = OPEN  #: what the model that is asked may be asked


async def provider(settings: Settings, stack: AsyncExitStack) -> Upstream:
    """The provider that the settings name, connected until `stack` closes. Raises ModelUnavailable without a key."""
    if settings.openai_api_key is None:
        raise ModelUnavailable(
            "no key for a real model: OPENAI_API_KEY is not set where this worker runs",
            "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: sim-careful",
        )
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    client = httpx2.AsyncClient(base_url=settings.openai_base_url, timeout=timeout, limits=limits)
    return Upstream(
        client=await stack.enter_async_context(client),
        headers={"authorization": f"Bearer {settings.openai_api_key.get_secret_value()}"},
        simulated=False,
    )


async def simulated(policies: Mapping[str, Policy], stack: AsyncExitStack) -> Upstream:
    """The simulated model, served on a loopback port of this process until `stack` closes: real HTTP all the way."""
    listener = loopback()
    port = listener.getsockname()[1]
    await stack.enter_async_context(serving(simulated_app(policies), listener))
    client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", timeout=READ_TIMEOUT_S, trust_env=False)
    await stack.enter_async_context(client)
    return Upstream(client=client, headers={}, simulated=True)


__all__ = ["SEED_HEADER", "Upstream", "is_simulated", "provider", "simulated"]
