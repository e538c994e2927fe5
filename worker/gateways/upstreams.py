"""Where model requests go: a provider on the network, with its key, or the simulated model in this process."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import lru_cache, partial

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
    connect: Callable[[], httpx2.AsyncClient] | None = None  #: makes another client like this one

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> httpx2.Response:
        """Send a request and give the answer, whose body is yet to be read. Raises httpx2.HTTPError.

        Nothing is added to the headers that a client adds by itself, such as the cookies of earlier answers.
        """
        url, timeout = _address(self.client.base_url, path), self.client.timeout.as_dict()
        asked = httpx2.Request("POST", url, headers=headers, content=body, extensions={"timeout": timeout})
        return await self.client.send(asked, stream=True)

    async def another(self, stack: AsyncExitStack) -> "Upstream":
        """The same, with a client of its own until `stack` closes.

        With every request a client's pool looks at each connection that it keeps: with sixteen attempts at work on one
        client that took a sixth of a trial's CPU time.
        """
        if self.connect is None:
            return self
        return replace(self, client=await stack.enter_async_context(self.connect()))


@lru_cache(maxsize=64)
def _address(base: httpx2.URL, path: str) -> httpx2.URL:
    """The URL of a path under a provider's base; to parse one takes as long as a hash of a long text."""
    return httpx2.URL(str(base).rstrip("/") + path)


async def provider(settings: Settings, stack: AsyncExitStack) -> Upstream:
    """The provider that the settings name, connected until `stack` closes. Raises ModelUnavailable without a key."""
    if settings.openai_api_key is None:
        raise ModelUnavailable(
            "no key for a real model: OPENAI_API_KEY is not set where this worker runs",
            "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: sim-careful",
        )
    connect = partial(
        httpx2.AsyncClient,
        base_url=settings.openai_base_url,
        timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        verify=httpx2.create_ssl_context(),  # once for all clients: it reads every root certificate
    )
    return Upstream(
        client=await stack.enter_async_context(connect()),
        headers={"authorization": f"Bearer {settings.openai_api_key.get_secret_value()}"},
        simulated=False,
        connect=connect,
    )


async def simulated(policies: Mapping[str, Policy], stack: AsyncExitStack) -> Upstream:
    """The simulated model, served on a loopback port of this process until `stack` closes: real HTTP all the way."""
    listener = loopback()
    port = listener.getsockname()[1]
    await stack.enter_async_context(serving(simulated_app(policies), listener))
    base_url = f"http://127.0.0.1:{port}/v1"
    connect = partial(httpx2.AsyncClient, base_url=base_url, timeout=READ_TIMEOUT_S, trust_env=False, verify=False)
    client = await stack.enter_async_context(connect())
    return Upstream(client=client, headers={}, simulated=True, connect=connect)


__all__ = ["SEED_HEADER", "Upstream", "is_simulated", "provider", "simulated"]
