"""The two faces of the model gateway: HTTP for what runs in a sealed cell, a transport for our own loop."""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from worker.gateways.reply import Reply, refusal

#: Path, headers and body of a POST to its answer.
Forward = Callable[[str, Mapping[str, str], bytes], Awaitable[Reply]]

#: Within `/v1/responses`, whatever a provider makes of dots and escapes: the key opens more of it than that.
_OF_RESPONSES = re.compile(r"/v1/responses(/[A-Za-z0-9_-]+)*")


def responses_app(forward: Forward) -> ASGIApp:
    """`POST /v1/responses` over HTTP; a WebSocket is refused with 426, and whatever else with 404."""

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
        elif scope["method"] == "POST" and _OF_RESPONSES.fullmatch(scope["path"]):
            reply = await forward(scope["path"].removeprefix("/v1"), headers, body)
        else:
            reply = refusal(404, f"the gateway forwards POST /v1/responses only, not {scope['method']} {scope['path']}")
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


class Transport(httpx2.AsyncBaseTransport):
    """What a client in this process sends its requests through."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Hand one request on."""
        path = request.url.path.removeprefix("/v1")
        reply = await self._forward(path, dict(request.headers), await request.aread())
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.data or reply.body, request=request)
