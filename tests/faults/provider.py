"""A provider of models that keeps its own bill, can be held up in mid-answer, and knows which process asks it."""

import asyncio
import json
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.faults.machine import owner_of

MODEL = "gpt-5-mini"
KEY = "a-key-of-the-provider"
#: USD per token of that model, as the provider charges them: the farm is to come to the same by its own table.
INPUT_USD, OUTPUT_USD = 0.25e-6, 2.00e-6


@dataclass(frozen=True)
class Charge:
    """One answer on the bill."""

    response_id: str
    case: str
    usd: float


@dataclass
class Hold:
    """Keeps the requests of a case waiting. Several may arrive: one for each attempt."""

    case: str
    times: int
    kills: bool
    arrivals: list[int] = field(default_factory=list)  #: the processes that asked
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def wait(self, timeout_s: float = 60.0) -> int:
        """The process that runs the trial, once its request is here."""
        assert self.arrived.acquire(timeout=timeout_s), f"no request of {self.case} came in {timeout_s:g} s"
        return self.arrivals[-1]


class Provider:
    """The Responses API at `url`. Every case is asked two things: for a tool call, then for the answer."""

    def __init__(self, latency_s: float = 0.05) -> None:
        self.latency_s = latency_s
        self.charges: list[Charge] = []
        self.most_at_once = 0
        self.url = ""
        self.floods: set[str] = set()  #: cases that are answered without end, for nothing
        self.refusals: dict[
            str, list[int]
        ] = {}  #: case -> statuses that its next requests are refused with, for nothing
        self._at_once = 0
        self._holds: list[Hold] = []
        self._numbers = count(1)
        self._loop: asyncio.AbstractEventLoop | None = None

    def hold(self, case: str, *, times: int = 1, kills: bool = False) -> Hold:
        """Keep the next `times` requests of a case waiting; with `kills`, kill the process that asks, each time."""
        hold = Hold(case, times, kills)
        self._holds.append(hold)
        return hold

    def release(self, hold: Hold) -> None:
        """Answer what is held, and what would be."""
        if self._loop is None:
            hold.released.set()
        else:
            self._loop.call_soon_threadsafe(hold.released.set)

    def release_all(self) -> None:
        """Answer whatever is held."""
        for hold in self._holds:
            self.release(hold)

    @property
    def bill_usd(self) -> float:
        return sum(charge.usd for charge in self.charges)

    async def respond(self, request: Request) -> Response:
        """One answer of the model."""
        self._loop = asyncio.get_running_loop()
        asked = json.loads(await request.body())
        case = re.findall(r"case-\w+", json.dumps(asked["input"]))[-1]
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self.latency_s)
            await self._held(request, case)
        finally:
            self._at_once -= 1
        if refusals := self.refusals.get(case):
            return JSONResponse({"error": {"message": "not now"}}, refusals.pop(0))
        if case in self.floods:
            return StreamingResponse(_flood(), media_type="application/json")
        answer = self._answer(asked, case)
        usage = answer["usage"]
        usd = usage["input_tokens"] * INPUT_USD + usage["output_tokens"] * OUTPUT_USD
        self.charges.append(Charge(answer["id"], case, usd))  # whoever has gone meanwhile pays as well
        return JSONResponse(answer)

    async def _held(self, request: Request, case: str) -> None:
        hold = next((hold for hold in self._holds if hold.case == case and len(hold.arrivals) < hold.times), None)
        if hold is None or request.client is None:
            return
        process = owner_of(request.client.port, request.scope["server"][1])
        hold.arrivals.append(process)
        if hold.kills:
            os.kill(process, signal.SIGKILL)
        hold.arrived.release()
        gone = asyncio.create_task(_disconnected(request))
        released = asyncio.create_task(hold.released.wait())
        await asyncio.wait((gone, released), return_when=asyncio.FIRST_COMPLETED)
        for task in (gone, released):
            task.cancel()

    def _answer(self, asked: dict[str, Any], case: str) -> dict[str, Any]:
        number = next(self._numbers)
        called = any(item.get("type") == "function_call_output" for item in asked["input"])
        call = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": "look_up",
            "arguments": json.dumps({"case": case}),
            "status": "completed",
        }
        part = {"type": "output_text", "text": f"It is {case}.", "annotations": [], "logprobs": []}
        message = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        # Every answer has its own price, so that a charge which is lost or doubled shows in the sum.
        used, written = 100 + number, 20 + number % 7
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": time.time(),
            "status": "completed",
            "error": None,
            "model": MODEL,
            "output": [message if called else call],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": used,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": used + written,
            },
        }


async def _flood() -> AsyncIterator[bytes]:
    yield b'{"output": "'
    for _ in range(4_096):
        yield b"x" * (1 << 20)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider on a free local port while the block lasts."""
    here = Provider()
    app = Starlette(routes=[Route("/v1/responses", here.respond, methods=["POST"])])
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    here.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    try:
        yield here
    finally:
        here.release_all()
        server.should_exit = True
        thread.join()
