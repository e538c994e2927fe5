"""Every model request of an attempt goes through here: key, retries, record, and the proof that tools were shown.

One core, `ModelGateway.forward`, and two faces. `transport()` is for our own loop, in this process. `app()` is
HTTP for what runs in a sealed cell; it refuses WebSockets with 426, which makes Codex use HTTPS at once instead
of after six seconds of trying.

Retries happen here and nowhere above, so both harnesses meet the same weather: a 429, a 5xx or a lost
connection is tried again a bounded number of times, each try is recorded, and the time it took is kept apart
from the model's own latency. What is left after that is an outage, which the attempt reports as infrastructure.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from evalfarm.contracts.run import ModelRequest
from worker.upstreams import SEED_HEADER, Upstream
from worker.wire import UsageReader, decoded, retry_after_s, tools_shown

#: Tries of one request, the first included.
MAX_TRIES = 5
#: A provider's Retry-After is kept to, up to here; longer means: not within this attempt.
MAX_RETRY_AFTER_S = 60.0

_RETRIED = {408, 429, 500, 502, 503, 504, 529}
_REFUSED = {401: "the key was refused", 403: "the key may not use this model", 404: "the provider knows no such model"}
#: Headers that belong to one hop, or that the gateway sets itself.
_NOT_FORWARDED = {
    *("host", "connection", "content-length", "content-encoding", "transfer-encoding", "accept-encoding"),
    *("authorization", "keep-alive", "upgrade", "te", "trailer", "proxy-authorization", SEED_HEADER),
}


class _TryAgain(Exception):
    """A try that failed in a way that is worth another."""

    def __init__(self, what: str, reply: "Reply", retry_after_s: float | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.reply = reply
        self.retry_after_s = retry_after_s


@dataclass
class Reply:
    """What goes back to the harness: status, headers, and the body as it arrives."""

    status: int
    headers: dict[str, str]
    body: AsyncIterator[bytes]


@dataclass
class _Record:
    first_sent: float = 0.0
    sent: float = 0.0  #: of the latest try
    tries: list[str] = field(default_factory=list)  #: what the earlier ones met


class ModelGateway:
    """The model witness of one attempt."""

    def __init__(
        self, upstream: Upstream, *, seed: int, started: float, must_show: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        """`started`: time.monotonic() at the attempt's start. `must_show`: tools that the first request has to
        show to the model, as name -> ways in which the harness may write it; without them nothing is forwarded.
        """
        self._upstream = upstream
        self._seed = seed
        self._started = started
        self._must_show = dict(must_show or {})
        self.requests: list[ModelRequest] = []
        self.outage: str | None = None  #: why the provider could not be used, once it could not
        self.unseen: tuple[str, ...] = ()  #: tools that the model was not shown

    @property
    def simulated(self) -> bool:
        """Whether a simulated model answers."""
        return self._upstream.simulated

    async def forward(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Send one POST on to the provider and record what came of it. Never raises for the provider's faults."""
        record = _Record()
        try:
            asked = decoded(headers, body)
            request = json.loads(asked)
        except ValueError as error:
            return _error(400, f"the gateway cannot read the request: {error}")
        if self._must_show and path == "/responses":
            shown = tools_shown(request)
            self.unseen = tuple(n for n, ways in self._must_show.items() if not any(way in shown for way in ways))
            if self.unseen:
                return _error(424, f"the model was not shown the plugin's tools: {', '.join(self.unseen)}")
            self._must_show = {}
        streamed = bool(request.get("stream"))
        wanted = {name: value for name, value in headers.items() if name.lower() not in _NOT_FORWARDED}
        wanted |= self._upstream.headers
        wanted["accept-encoding"] = "identity"  # what goes by is read, and goes on as it came
        if self._upstream.simulated:
            wanted[SEED_HEADER] = str(self._seed)
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(_TryAgain), stop=stop_after_attempt(MAX_TRIES), wait=_wait, reraise=True
            ):
                with attempt:
                    return await self._try(path, wanted, asked, record, streamed)
        except _TryAgain as last:
            self.outage = self.outage or f"the model's provider stayed unusable: {'; '.join(record.tries)}"
            self._note(record, status=last.reply.status or None, error=last.what)
            return last.reply
        raise AssertionError("unreachable: the retry loop returns or raises")

    async def _try(self, path: str, headers: Mapping[str, str], body: bytes, record: _Record, streamed: bool) -> Reply:
        record.sent = time.monotonic()
        record.first_sent = record.first_sent or record.sent
        client = self._upstream.client
        try:
            response = await client.send(client.build_request("POST", path, headers=headers, content=body), stream=True)
        except httpx2.HTTPError as error:
            raise _again(record, f"{type(error).__name__}: {error}", _error(502, str(error))) from error
        kept = {name: value for name, value in response.headers.items() if name.lower() not in _NOT_FORWARDED}
        if response.status_code in _RETRIED:
            text = await _read_quietly(response)
            what = f"HTTP {response.status_code}"
            raise _again(record, what, Reply(response.status_code, kept, _once(text)), retry_after_s(response.headers))
        usage = UsageReader(streamed and response.status_code < 400)
        if streamed and response.status_code < 400:
            return Reply(response.status_code, kept, self._stream(response, usage, record))
        try:
            data = await response.aread()
        except httpx2.HTTPError as error:
            raise _again(
                record, f"cut short: {type(error).__name__}", _error(502, "the answer was cut short")
            ) from error
        usage.feed(data)
        if response.status_code in _REFUSED:
            self.outage = f"{_REFUSED[response.status_code]} (HTTP {response.status_code})"
        self._note(record, status=response.status_code, error=usage.error, usage=usage)
        return Reply(response.status_code, kept, _once(data))

    async def _stream(self, response: httpx2.Response, usage: UsageReader, record: _Record) -> AsyncIterator[bytes]:
        error: str | None = None
        try:
            async for chunk in response.aiter_bytes():
                usage.feed(chunk)
                yield chunk
        except httpx2.HTTPError as cut:
            error = f"the stream was cut: {type(cut).__name__}"
            raise
        finally:
            await response.aclose()
            if error is None and not usage.complete:
                error = "the stream ended before the response was complete"
            self._note(record, status=response.status_code, error=usage.error or error, usage=usage)

    def _note(
        self, record: _Record, *, status: int | None, error: str | None, usage: UsageReader | None = None
    ) -> None:
        seen = usage or UsageReader(False)
        self.requests.append(
            ModelRequest(
                started_s=record.first_sent - self._started,
                latency_s=time.monotonic() - record.sent,
                waited_s=record.sent - record.first_sent,
                status=status,
                tries=tuple(record.tries),
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
                reply = _error(426, "this gateway speaks HTTPS, not WebSockets")
            elif scope["method"] == "POST" and scope["path"].startswith("/v1/responses"):
                reply = await self.forward(scope["path"].removeprefix("/v1"), headers, body)
            else:
                reply = _error(
                    404, f"the gateway forwards POST /v1/responses only, not {scope['method']} {scope['path']}"
                )
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
            await send({"type": "http.response.start", "status": reply.status, "headers": raw})
            try:
                async for chunk in reply.body:
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


def _again(record: _Record, what: str, reply: Reply, retry_after_s: float | None = None) -> _TryAgain:
    record.tries.append(what)
    return _TryAgain(what, reply, retry_after_s)


_backoff: Callable[[RetryCallState], float] = wait_exponential_jitter(initial=0.25, max=8.0, jitter=0.25)


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, _TryAgain) else None
    return min(asked, MAX_RETRY_AFTER_S) if asked is not None else _backoff(state)


async def _read_quietly(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except httpx2.HTTPError:
        return b""


def _error(status: int, message: str) -> Reply:
    data = json.dumps({"error": {"message": message, "type": "gateway_error", "code": None, "param": None}}).encode()
    return Reply(status, {"content-type": "application/json"}, _once(data))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
