"""Where model requests go: a provider on the network, with its key, or the simulated model in this process."""

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.request import getproxies

import httpx2

from cases.policies import Policy, is_simulated
from evalfarm.errors import ModelUnavailable
from evalfarm.settings import Settings, public_url
from worker.gateways.gate import OPEN, Gate
from worker.gateways.line import Answer, Lines, target
from worker.gateways.serving import loopback, serving
from worker.simulated_model import SEED_HEADER, simulated_app

#: Seconds without a byte from the provider after which a try has failed. Reasoning models think for minutes.
READ_TIMEOUT_S = 600.0
CONNECT_TIMEOUT_S = 10.0


class Carrier(Protocol):
    """What carries requests to one provider: `Lines`, or `Proxied` where a proxy stands in between."""

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request and give the answer, whose body is yet to be read. Raises httpx2.HTTPError."""
        ...


@dataclass(frozen=True)
class Upstream:
    """A Responses API that the gateway forwards to."""

    carrier: Carrier
    headers: Mapping[str, str]  #: added to every request: the key, never anything that was sent from a cell
    simulated: bool
    gate: Gate = OPEN  #: what the model that is asked may be asked


@dataclass(frozen=True)
class Proxied:
    """The way through a proxy that the environment names, or past it where NO_PROXY says so: httpx2 knows how."""

    client: httpx2.AsyncClient
    base: httpx2.URL  #: its path ends where `/responses` begins

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request and give the answer. Raises httpx2.HTTPError.

        Nothing is added to the headers that a client adds by itself, such as the cookies of earlier answers.
        """
        url, timeout = self.base.copy_with(raw_path=target(self.base, path)), self.client.timeout.as_dict()
        asked = httpx2.Request("POST", url, headers=headers, content=body, extensions={"timeout": timeout})
        return cast(Answer, await self.client.send(asked, stream=True))


async def provider(settings: Settings, stack: AsyncExitStack) -> Upstream:
    """The provider that the settings name, connected until `stack` closes.

    Raises ModelUnavailable without a key, or with one or an address that no request can be sent with.
    """
    if settings.openai_api_key is None:
        raise ModelUnavailable(
            "no key for a real model: OPENAI_API_KEY is not set where this worker runs",
            "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: sim-careful",
        )
    key = settings.openai_api_key.get_secret_value()
    if not (key.isascii() and key.isprintable()):
        raise ModelUnavailable(
            "OPENAI_API_KEY cannot be sent: it holds a line break, or a character that is no ASCII",
            "set it to the key and nothing else; a file that it is taken from may hold more than one line",
        )
    try:
        base = httpx2.URL(settings.openai_base_url)
    except httpx2.InvalidURL as error:
        raise ModelUnavailable(
            f"OPENAI_BASE_URL is no address: {public_url(settings.openai_base_url)!r}",
            "expected is an address such as https://api.openai.com/v1",
        ) from error
    carrier = await _carrier(base.copy_with(userinfo=b""), getproxies(), stack)  # the key alone says who asks
    return Upstream(carrier, headers={"authorization": f"Bearer {key}"}, simulated=False)


async def _carrier(base: httpx2.URL, proxies: Collection[str], stack: AsyncExitStack) -> Carrier:
    """The way to a provider, given for which schemes (`https`, `all`, …) the environment names proxies."""
    tls = httpx2.create_ssl_context()
    if base.scheme in proxies or "all" in proxies:
        timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        client = httpx2.AsyncClient(timeout=timeout, limits=limits, verify=tls)
        return Proxied(await stack.enter_async_context(client), base)
    lines = Lines(base, READ_TIMEOUT_S, CONNECT_TIMEOUT_S, tls)
    stack.push_async_callback(lines.aclose)
    return lines


async def simulated(policies: Mapping[str, Policy], stack: AsyncExitStack) -> Upstream:
    """The simulated model, served on a loopback port of this process until `stack` closes: real HTTP all the way."""
    listener = loopback()
    port = listener.getsockname()[1]
    await stack.enter_async_context(serving(simulated_app(policies), listener))
    lines = Lines(httpx2.URL(f"http://127.0.0.1:{port}/v1"), READ_TIMEOUT_S, CONNECT_TIMEOUT_S)
    stack.push_async_callback(lines.aclose)
    return Upstream(lines, headers={}, simulated=True)


__all__ = ["SEED_HEADER", "Proxied", "Upstream", "is_simulated", "provider", "simulated"]
