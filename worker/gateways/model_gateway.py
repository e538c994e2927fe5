"""Every model request of an attempt goes through here: key, retries, record, and the proof that tools were shown.

One core, `ModelGateway.forward`, and two faces. `transport()` is for our own loop, in this process. `app()` is
HTTP for what runs in a sealed cell; it refuses WebSockets with 426, which makes Codex use HTTPS at once instead
of after six seconds of trying.

Retries happen here and nowhere above, so both harnesses meet the same weather: a 429, a 5xx or a lost
connection is tried again a bounded number of times, each try is recorded, and the time it took is kept apart
from the model's own latency. So is the time for which the farm's limits hold a request back. What is left after that
is an outage, which the attempt reports as infrastructure.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any

import httpx2
from starlette.types import ASGIApp

from evalfarm.contracts.run import ModelRequest
from worker.gateways.faces import Transport, responses_app
from worker.gateways.gate import NoRoom, estimated_tokens
from worker.gateways.line import Answer
from worker.gateways.reply import Reply, refusal, whole
from worker.gateways.tries import FIRST_WAIT_S, Tries, TryAgain
from worker.gateways.upstreams import SEED_HEADER, Upstream
from worker.gateways.wire import UsageReader, decoded, is_side_call, json_object, retry_after_s, tools_shown

_RETRIED = {408, 429, 500, 502, 503, 504, 529}
_REFUSED = {401: "the key was refused", 403: "the key may not use this model", 404: "the provider knows no such model"}
#: Headers that belong to one hop, or that the gateway sets itself.
_NOT_FORWARDED = {
    *("host", "connection", "content-length", "content-encoding", "transfer-encoding", "accept-encoding"),
    *("authorization", "keep-alive", "upgrade", "te", "trailer", "proxy-authorization", SEED_HEADER),
}


class ModelGateway:
    """The model witness of one attempt."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        seed: int,
        started: float,
        must_show: Mapping[str, tuple[str, ...]] | None = None,
        on_wait: Callable[[float], None] = lambda _: None,
        first_wait_s: float = FIRST_WAIT_S,
    ) -> None:
        """`started`: time.monotonic() at the attempt's start. `must_show`: tools that the first request has to
        show to the model, as name -> ways in which the harness may write it; without them nothing is forwarded.
        `on_wait` is told of every wait for a limit or between two tries, in seconds, before it begins; `first_wait_s`
        is the first between two tries where the provider does not say.
        """
        self._upstream = upstream
        self._on_wait = on_wait
        self._waited_s = 0.0
        self._first_wait_s = first_wait_s
        self._seed = seed
        self._started = started
        self._must_show = dict(must_show or {})
        self.requests: list[ModelRequest] = []
        self.outage: str | None = None  #: why the provider could not be used, once it could not; then none asks again
        self.unseen: tuple[str, ...] = ()  #: tools that the model was not shown

    @property
    def answered(self) -> bool:
        """Whether the provider ever gave something to go by: a response, or a refusal of this request."""
        return any(
            request.status is not None and request.status < 500 and (request.status >= 400 or request.error is None)
            for request in self.requests
        )

    @property
    def simulated(self) -> bool:
        """Whether a simulated model answers."""
        return self._upstream.simulated

    async def forward(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Send one POST on to the provider and record what came of it. Never raises for the provider's faults."""
        try:
            asked = decoded(headers, body)
            request = json_object(asked)
        except ValueError as error:
            return refusal(400, f"the gateway cannot read the request: {error}")
        if path == "/responses" and not self._shows_tools(request):
            return refusal(400, f"the model was not shown the plugin's tools: {', '.join(self.unseen)}")
        if self.outage is not None:
            # Codex would try again and again for minutes; a 400 is what it takes for an answer.
            return refusal(400, self.outage)
        wanted, streamed = self._wanted(headers), bool(request.get("stream"))
        tries = Tries(self._first_wait_s, self._wait, side=is_side_call(path, headers))
        try:
            async for attempt in tries.each():
                with attempt:
                    await self._let_through(asked, tries)
                    return await self._try(path, wanted, asked, tries, streamed)
        except NoRoom as full:
            self.outage = self.outage or str(full)
            if tries.failures:
                self._note(tries, status=None, error=tries.failures.pop())
            return refusal(400, self.outage)
        except TryAgain as last:
            self.outage = self.outage or f"the model's provider stayed unusable: {'; '.join(tries.failures)}"
            self._note(tries, status=last.status, error=tries.failures.pop())
            return last.reply
        except asyncio.CancelledError:
            # What it cost is not known and never will be, but it was asked: the record must say so.
            tries.give_up()
            self._note(tries, status=None, error="the attempt ended before an answer came")
            raise
        raise AssertionError("unreachable: the retry loop returns or raises")

    def _shows_tools(self, request: dict[str, Any]) -> bool:
        """Whether the plugin's tools are in sight of the model; asked until they once were."""
        if self._must_show:
            shown = tools_shown(request)
            self.unseen = tuple(n for n, ways in self._must_show.items() if not any(way in shown for way in ways))
            if not self.unseen:
                self._must_show = {}
        return not self._must_show

    def _wanted(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a request as the provider is to get it."""
        wanted = {name: value for name, value in headers.items() if name.lower() not in _NOT_FORWARDED}
        wanted |= self._upstream.headers
        wanted["accept-encoding"] = "identity"  # what goes by is read, and goes on as it came
        if self._upstream.simulated:
            wanted[SEED_HEADER] = str(self._seed)
        return wanted

    def _wait(self, seconds: float) -> None:
        self._waited_s += seconds
        self._on_wait(seconds)

    async def _let_through(self, body: bytes, tries: Tries) -> None:
        """Wait until the limits and pauses of the model let one more request out. Raises NoRoom where none may."""
        gate = self._upstream.gate
        if gate.throttle is None:
            return
        tries.hold()
        estimate = estimated_tokens(body)
        wait_s = await gate.book(estimate, gate.most_waited_s - self._waited_s)
        while wait_s != 0:
            if wait_s < 0 or wait_s > gate.most_waited_s - self._waited_s:
                told = f"the limits of {gate.model} hold a request back for {abs(wait_s):.0f} s"
                most = f"an attempt waits {gate.most_waited_s:g} s in all at most"
                raise NoRoom(f"{told}, after {self._waited_s:.0f} s of waiting; {most}")
            self._wait(wait_s)
            await asyncio.sleep(wait_s)
            if (wait_s := await gate.paused_s()) > 0:  # its place has passed, and all such would go out together
                await gate.correct(estimate, 0)
                wait_s = await gate.book(estimate, gate.most_waited_s - self._waited_s)
        tries.send()

    async def _try(self, path: str, headers: Mapping[str, str], body: bytes, tries: Tries, streamed: bool) -> Reply:
        gate, estimate = self._upstream.gate, estimated_tokens(body)
        try:
            response = await self._upstream.carrier.post(path, headers, body)
        except httpx2.HTTPError as error:
            what = f"{type(error).__name__}: {error}"
            raise TryAgain(what, None, refusal(502, what)) from error
        kept = {name: value for name, value in response.headers.items() if name.lower() not in _NOT_FORWARDED}
        status = response.status_code
        if status in _RETRIED:
            reply = whole(status, kept, self._without_key(await _read_quietly(response)))
            await gate.correct(estimate, 0)
            again_s = retry_after_s(response.headers, datetime.now(UTC))
            if status == 429:
                await gate.limited(again_s)
            raise TryAgain(f"HTTP {status}", status, reply, again_s)
        usage = UsageReader(streamed and status < 400)
        if streamed and status < 400:
            return Reply(status, kept, self._stream(response, usage, tries, estimate))
        try:
            async with aclosing(response):
                data = await response.aread()
        except httpx2.HTTPError as error:
            what = f"the answer was cut short: {type(error).__name__}"
            raise TryAgain(what, status, refusal(502, what)) from error
        data = self._without_key(data)
        usage.feed(data)
        if status < 400 and path == "/responses" and not usage.is_response:
            what = f"HTTP {status} without a response in it"
            raise TryAgain(what, status, refusal(502, what))
        if status in _REFUSED:
            self.outage = f"{_REFUSED[status]} (HTTP {status})"
        self._note(tries, status=status, error=usage.error, usage=usage)
        await gate.correct(estimate, usage.tokens if status < 400 else 0)
        return whole(status, kept, data)

    async def _stream(self, response: Answer, usage: UsageReader, tries: Tries, estimate: int) -> AsyncGenerator[bytes]:
        error: str | None = None
        try:
            async for received in response.aiter_bytes():
                chunk = self._without_key(received)
                usage.feed(chunk)
                yield chunk
        except httpx2.HTTPError as cut:
            error = f"the stream was cut: {type(cut).__name__}"
            raise
        finally:
            if error is None and not usage.complete:
                error = "the stream ended before the response was complete"
            self._note(tries, status=response.status_code, error=usage.error or error, usage=usage)
            await response.aclose()
            await self._upstream.gate.correct(estimate, usage.tokens)

    def _without_key(self, data: bytes) -> bytes:
        """Providers repeat a key that they refuse; it goes neither into a trace nor into a cell."""
        key = self._upstream.headers.get("authorization", "").removeprefix("Bearer ").encode()
        return data.replace(key, b"[the key]") if key else data

    def _note(self, tries: Tries, *, status: int | None, error: str | None, usage: UsageReader | None = None) -> None:
        if tries.told:  # and cut off after that, while the limits were told what it took
            return
        tries.told, seen = True, usage or UsageReader(False)
        self.requests.append(
            ModelRequest(
                started_s=tries.first_at - self._started,
                latency_s=time.monotonic() - tries.last_at,
                waited_s=tries.waited_s,
                status=status,
                tries=tuple(tries.failures),
                error=error,
                side=tries.side,
                **seen.figures(),
            )
        )

    def transport(self) -> httpx2.AsyncBaseTransport:
        """The face for our own loop."""
        return Transport(self.forward)

    def app(self) -> ASGIApp:
        """The face for a sealed cell: `POST /v1/responses`."""
        return responses_app(self.forward)


async def _read_quietly(response: Answer) -> bytes:
    with suppress(httpx2.HTTPError):
        async with aclosing(response):
            return await response.aread()
    return b""
