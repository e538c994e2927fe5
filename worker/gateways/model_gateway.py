"""Every model request of an attempt goes through here: key, retries, record, and the proof that tools were shown.

One core, `ModelGateway.forward`, and two faces. `transport()` is for our own loop, in this process. `app()` is
HTTP for what runs in a sealed cell; it refuses WebSockets with 426, which makes Codex use HTTPS at once instead
of after six seconds of trying.

Retries happen here and nowhere above, so both harnesses meet the same weather: a 429, a 5xx or a lost
connection is tried again a bounded number of times, each try is recorded, and the time it took is kept apart
from the model's own latency. What is left after that is an outage, which the attempt reports as infrastructure.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from evalfarm.contracts.run import ModelRequest
from worker.gateways.reply import Reply, refusal, whole
from worker.gateways.tries import FIRST_WAIT_S, Tries, TryAgain
from worker.gateways.upstreams import SEED_HEADER, Upstream
from worker.gateways.wire import UsageReader, decoded, json_object, retry_after_s, tools_shown

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
        `on_wait` is told of every wait between two tries, in seconds, before it begins; `first_wait_s` is the
        first one where the provider does not say.
        """
        self._upstream = upstream
        self._on_wait = on_wait
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
        tries = Tries(self._first_wait_s, self._on_wait)
        try:
            async for attempt in tries.each():
                with attempt:
                    return await self._try(path, wanted, asked, tries, streamed)
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

    async def _try(self, path: str, headers: Mapping[str, str], body: bytes, tries: Tries, streamed: bool) -> Reply:
        client = self._upstream.client
        try:
            response = await client.send(client.build_request("POST", path, headers=headers, content=body), stream=True)
        except httpx2.HTTPError as error:
            what = f"{type(error).__name__}: {error}"
            raise TryAgain(what, None, refusal(502, what)) from error
        kept = {name: value for name, value in response.headers.items() if name.lower() not in _NOT_FORWARDED}
        status = response.status_code
        if status in _RETRIED:
            reply = whole(status, kept, self._without_key(await _read_quietly(response)))
            raise TryAgain(f"HTTP {status}", status, reply, retry_after_s(response.headers))
        usage = UsageReader(streamed and status < 400)
        if streamed and status < 400:
            return Reply(status, kept, self._stream(response, usage, tries))
        try:
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
        return whole(status, kept, data)

    async def _stream(self, response: httpx2.Response, usage: UsageReader, tries: Tries) -> AsyncGenerator[bytes]:
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

    def _without_key(self, data: bytes) -> bytes:
        """Providers repeat a key that they refuse; it goes neither into a trace nor into a cell."""
        key = self._upstream.headers.get("authorization", "").removeprefix("Bearer ").encode()
        return data.replace(key, b"[the key]") if key else data

    def _note(self, tries: Tries, *, status: int | None, error: str | None, usage: UsageReader | None = None) -> None:
        seen = usage or UsageReader(False)
        self.requests.append(
            ModelRequest(
                started_s=tries.first_at - self._started,
                latency_s=time.monotonic() - tries.last_at,
                waited_s=tries.waited_s,
                status=status,
                tries=tuple(tries.failures),
                error=error,
                **seen.figures(),
            )
        )

    def transport(self) -> httpx2.AsyncBaseTransport:
        """The face for our own loop."""
        return _Transport(self)

    def app(self) -> ASGIApp:
        """The face for a sealed cell: `POST /v1/responses`."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            body = b""
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            if "upgrade" in headers:
                reply = refusal(426, "this gateway speaks HTTPS, not WebSockets")
            elif scope["method"] == "POST" and scope["path"].startswith("/v1/responses"):
                reply = await self.forward(scope["path"].removeprefix("/v1"), headers, body)
            else:
                reply = refusal(
                    404, f"the gateway forwards POST /v1/responses only, not {scope['method']} {scope['path']}"
                )
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
            await send({"type": "http.response.start", "status": reply.status, "headers": raw})
            try:
                async with aclosing(reply.body) as chunks:  # a request that is cut off is recorded now, not in time
                    async for chunk in chunks:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            except httpx2.HTTPError:
                return  # headers are out: ending without the last chunk is how the harness learns of the cut
            await send({"type": "http.response.body", "body": b""})

        return serve


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(self, gateway: ModelGateway) -> None:
        self._gateway = gateway

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.removeprefix("/v1")
        reply = await self._gateway.forward(path, dict(request.headers), await request.aread())
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body, request=request)


async def _read_quietly(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except httpx2.HTTPError:
        return b""
