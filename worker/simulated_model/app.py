"""The server of the simulated model: policies behind a Responses API, over HTTP, streaming and not."""

import asyncio
import hashlib
import itertools
import json
import random
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cases.policies import Answer, Calls, Fault, Move, Policy, Seen
from worker.simulated_model.request import Request, decode, parse
from worker.simulated_model.response import error_body, event_stream, fault_body, response_body

SEED_HEADER = "x-evalfarm-seed"
"""The trial's seed, an integer in decimal; 0 where it is absent."""

REQUESTS_REMEMBERED = 4096
"""Failed requests whose tries are counted; older ones start from nothing. A failed one is sent again at once."""

_BEGUN = Answer("Let me look that up for you, it will only take a moment, and then I can tell you what the")
"""What a stream that is cut half-way was about to say."""


Billed = Callable[[str, Mapping[str, Any]], None]
"""Told of each response that is sent whole, as a provider bills it: the model, and the response's `usage`."""


def simulated_app(
    policies: Mapping[str, Policy],
    *,
    clock: Callable[[], float] = time.time,
    instance: str | None = None,
    billed: Billed = lambda _model, _usage: None,
) -> Starlette:
    """An app that answers `POST /v1/responses` with the policy of the request's model, and `GET /v1/models`.

    What is drawn follows from the seed in `x-evalfarm-seed` and the conversation's questions alone, and for faults
    from the number of the try too. An unknown model is a 404, a request that cannot be read a 400, each in
    OpenAI's words; a WebSocket handshake is refused with 426, on which Codex uses HTTPS at once (served with
    `ws="none"`, as `worker.gateways.serving` does, a handshake is a plain GET).
    `instance` (none: drawn) is in every response's ID, so that servers that share a seed share no ID. What faults
    there are goes by the policies; none of them is `billed`.
    """
    server = _Server(policies, clock, instance or secrets.token_hex(4), billed)
    return Starlette(
        routes=[
            Route("/v1/responses", server.respond, methods=["POST"]),
            Route("/v1/responses", _refuse_upgrade, methods=["GET"]),
            Route("/v1/models", server.models, methods=["GET"]),
        ]
    )


def turn_draw(seed: int, seen: Seen) -> random.Random:
    """The draw of a turn: the same for every request of it, whatever harness sends them, and whatever was answered."""
    questions = [turn.question for turn in seen.turns]
    return random.Random(hashlib.sha256(json.dumps([seed, questions]).encode()).digest())


class _Tries:
    """Counts how often a request was sent without an answer, for the last `REQUESTS_REMEMBERED` of them."""

    def __init__(self) -> None:
        self._failed: OrderedDict[tuple[int, str], int] = OrderedDict()

    def of(self, key: tuple[int, str]) -> int:
        return self._failed.get(key, 0)

    def note(self, key: tuple[int, str], move: Move) -> None:
        """Count a fault; forget an answered request, so that a later attempt at the same trial meets the same."""
        tries = self._failed.pop(key, 0)
        if isinstance(move, Fault):
            self._failed[key] = tries + 1
        while len(self._failed) > REQUESTS_REMEMBERED:
            self._failed.popitem(last=False)


class _Server:
    def __init__(
        self, policies: Mapping[str, Policy], clock: Callable[[], float], instance: str, billed: Billed
    ) -> None:
        self._policies = dict(policies)
        self._billed = billed
        self._clock = clock
        self._instance = instance
        self._number = itertools.count(1)
        self._tries = _Tries()

    async def models(self, _request: HttpRequest) -> Response:
        """The models that have a policy, in the form of OpenAI's list."""
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "evalfarm"} for name in self._policies]
        return JSONResponse({"object": "list", "data": data})

    async def respond(self, http: HttpRequest) -> Response:
        """Read, let the policy move, and send its move."""
        try:
            seed = int(http.headers.get(SEED_HEADER, "0"))
            request = parse(decode(await http.body(), http.headers.get("content-encoding", "")))
        except ValueError as error:
            return JSONResponse(error_body(f"Invalid request: {error}", "invalid_request_error"), 400)
        model = request.seen.model
        if model not in self._policies:
            message = f"The model '{model}' does not exist or you do not have access to it."
            return JSONResponse(error_body(message, "invalid_request_error", "model_not_found"), 404)
        key = (seed, request.fingerprint)
        seen = replace(request.seen, tries=self._tries.of(key))
        move = self._policies[model].move(seen, turn_draw(seed, seen))
        self._tries.note(key, move)
        await asyncio.sleep(move.delay_s)
        return self._sent(move, request, seed)

    def _sent(self, move: Move, request: Request, seed: int) -> Response:
        response_id = f"resp_{seed:x}_{self._instance}_{next(self._number):x}"
        match move:
            case Fault(cut=True):
                return _CutResponse(response_body(_BEGUN, request, response_id, self._clock()), request.streamed)
            case Fault():
                headers = {} if move.retry_after_s is None else {"retry-after": f"{move.retry_after_s:g}"}
                return JSONResponse(fault_body(move), move.status, headers)
            case Calls() | Answer():
                body = response_body(move, request, response_id, self._clock())
                self._billed(request.seen.model, body["usage"])
                if request.streamed:
                    return StreamingResponse(_each(event_stream(body)), media_type="text/event-stream")
                return JSONResponse(body)
            case _:
                assert_never(move)


async def _each(frames: list[bytes]) -> AsyncIterator[bytes]:
    for frame in frames:
        yield frame


class _CutResponse(Response):
    """Announces the whole body, sends half of it, and ends: the server then drops the connection."""

    def __init__(self, body: dict[str, Any], streamed: bool) -> None:
        frames = event_stream(body)
        whole = b"".join(frames) if streamed else json.dumps(body).encode()
        super().__init__(whole, media_type="text/event-stream" if streamed else "application/json")
        self._part = b"".join(frames[: len(frames) // 2]) if streamed else whole[: len(whole) // 2]

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the first half and no end."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self._part, "more_body": True})


async def _refuse_upgrade(_request: HttpRequest) -> Response:
    return JSONResponse(error_body("This server speaks HTTP, not WebSockets.", "invalid_request_error"), 426)
