"""What the worker's tests share: a scripted provider, an MCP server in this process, plans, and a worker's station."""

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from starlette.types import Receive, Scope, Send

from evalfarm.contracts.run import NO_MODEL, Arm, Plan, Trial
from evalfarm.contracts.suite import Server, Suite
from evalfarm.settings import load_settings
from evalfarm.store import Store
from worker.gateways.line import Lines
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.serving import loopback, serving
from worker.gateways.tool_gateway import ToolGateway
from worker.gateways.upstreams import Upstream
from worker.harnesses import OpenAttempt
from worker.plugin_server import PluginServer
from worker.station import Prepared, Station

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def sdk_leftovers() -> Iterator[None]:
    """Has what the Codex SDK leaves to the garbage collector collected while the test's filters of warnings hold."""
    yield
    gc.collect()


def command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.fixture
def processes_of() -> Callable[[str], list[int]]:
    """The processes of this machine in whose command line a text stands; those that ended have none."""

    def find(mark: str) -> list[int]:
        numbers = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
        return [process for process in numbers if (line := command_line(process)) and mark.encode() in line]

    return find


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Waits for what the kernel or another process does in its own time, and gives it; at most twenty seconds."""

    async def wait(look: Callable[[], Any]) -> Any:
        for _ in range(1000):
            if found := look():
                return found
            await asyncio.sleep(0.02)
        raise AssertionError("it never came")

    return wait


@dataclass(frozen=True)
class Said:
    """One answer of a provider; `cut`: the connection ends half-way through the body, `held`: it never ends."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    held: bool = False


@dataclass(frozen=True)
class Asked:
    """One request that a provider got."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Provider:
    """A Responses API that gives the answers of its script one after another, and the last one for ever."""

    def __init__(self, *script: Said) -> None:
        self._script = list(script)
        self.asked: list[Asked] = []
        self.was_asked = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append(Asked(scope["path"], headers, body))
        self.was_asked.set()
        said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        raw = [(name.encode(), value.encode()) for name, value in said.headers.items()]
        await send({"type": "http.response.start", "status": said.status, "headers": raw})
        part = said.body[: len(said.body) // 2] if said.cut else said.body
        await send({"type": "http.response.body", "body": part, "more_body": said.cut or said.held})
        if said.held:
            await receive()  # until the client goes away


Providing = Callable[..., AbstractAsyncContextManager[tuple[Upstream, Provider]]]


@pytest.fixture
def said() -> type[Said]:
    return Said


@pytest.fixture
def providing() -> Providing:
    """A provider on loopback that follows a script, and the way to it: with a key, or as a simulated one."""

    @asynccontextmanager
    async def provide(
        *script: Said, key: str = "", simulated: bool = False
    ) -> AsyncIterator[tuple[Upstream, Provider]]:
        provider, listener = Provider(*script), loopback()
        base = httpx2.URL(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with serving(provider, listener), aclosing(Lines(base, 5.0, 5.0)) as lines:
            yield Upstream(lines, headers, simulated), provider

    return provide


def responded(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A response of the provider's that is whole, as JSON."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-x-2026-01-01",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        **more,
    }


@pytest.fixture
def response() -> Callable[..., dict[str, Any]]:
    return responded


@pytest.fixture
def calls() -> Callable[..., Said]:
    """The model asks for calls, each a pair of a tool and arguments (text is sent as it is)."""

    def make(*wanted: tuple[str, Any]) -> Said:
        items = [
            {
                "type": "function_call",
                "id": f"fc_{at}",
                "call_id": f"call_{at}",
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                "status": "completed",
            }
            for at, (name, arguments) in enumerate(wanted)
        ]
        return Said(body=json.dumps(responded(*items)).encode())

    return make


@pytest.fixture
def answers() -> Callable[[str], Said]:
    """The model answers with a text."""

    def make(text: str) -> Said:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        return Said(body=json.dumps(responded(item)).encode())

    return make


def shop() -> FastMCP:
    """A server with instructions and tools of every temper."""
    server: FastMCP = FastMCP("Shop", version="1.2.3", instructions="Look before you buy.")

    @server.tool(annotations={"readOnlyHint": True})
    def look(at: str) -> dict[str, Any]:
        """Look at something."""
        return {"seen": at}

    @server.tool(output_schema=None)
    def say(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    def refuse(why: str) -> dict[str, Any]:
        """Never does what it is asked."""
        raise ToolError(why)

    @server.tool
    def take(thing: Any) -> dict[str, Any]:
        """Take anything."""
        return {"taken": thing}

    @server.tool(name="opening-hours")
    def opening_hours() -> dict[str, Any]:
        """When it is open."""
        return {"open": "always"}

    return server


@asynccontextmanager
async def serving_shop() -> AsyncIterator[str]:
    listener = loopback()
    async with serving(shop().http_app(path="/mcp"), listener, lifespan="on"):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


@pytest.fixture
def shop_at() -> Callable[[], AbstractAsyncContextManager[str]]:
    """The shop, served over HTTP in this process; gives its address."""
    return serving_shop


@pytest.fixture
def open_shop(tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[PluginServer]]:
    """The same with a worker's connection to it."""

    @asynccontextmanager
    async def open_it() -> AsyncIterator[PluginServer]:
        async with serving_shop() as url:
            server = await PluginServer.start(Server(url=url), tmp_path, log=tmp_path / "shop.log", environ={})
            try:
                yield server
            finally:
                await server.stop()

    return open_it


@pytest.fixture
def servers() -> Path:
    """The folder of small MCP servers, each with a temper of its own."""
    return Path(__file__).with_name("fixtures")


def suite_of(**more: Any) -> Suite:
    """A suite over the shop with one case in two forms, and whatever is said otherwise."""
    told: dict[str, Any] = {
        "suite": "shop",
        "version": "1",
        "plugin": {"name": "Shop", "description": "A shop."},
        "server": {"url": "http://127.0.0.1:9/mcp"},
        "simulation": {
            "script": [
                {"when": "shelf", "calls": [{"tool": "look", "arguments": {"at": "shelf"}}], "answer": "It is full."}
            ]
        },
        "cases": [
            {
                "id": "shelf",
                "query": "What is on the shelf?",
                "direct": {"tool": "look", "arguments": {"at": "the shelf"}},
            }
        ],
    }
    return Suite.model_validate(told | more)


@pytest.fixture
def suite() -> Callable[..., Suite]:
    return suite_of


@pytest.fixture
def attempt() -> Callable[..., OpenAttempt]:
    """An open attempt at a suite's first case, its model requests going to `upstream`."""

    def make(
        server: PluginServer,
        upstream: Upstream | None = None,
        *,
        harness: str = "loop",
        model: str = "gpt-x",
        **more: Any,
    ) -> OpenAttempt:
        suite, started = suite_of(**more), time.monotonic()
        arm = Arm.model_validate({"model": model, "harness": harness, "variant": "plain"})
        trial = Trial(index=0, case=suite.cases[0].id, repeat=0, arm=arm, seed=7)
        gateway = ModelGateway(upstream, seed=7, started=started, first_wait_s=0.001) if upstream else None
        return OpenAttempt(suite, suite.cases[0], trial, ToolGateway(server, started), gateway, started)

    return make


@pytest.fixture
def open_station(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Station]]:
    """A worker's station with a home of its own; what is named is set in the worker's environment."""

    @asynccontextmanager
    async def open_it(**environ: str) -> AsyncIterator[Station]:
        settings = load_settings({"EVALFARM_HOME": str(tmp_path / "home"), **environ})
        station = await Station(settings, Store("memory://"), environ).open()
        try:
            yield station
        finally:
            await station.close()

    return open_it


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., tuple[Prepared, Trial]]:
    """A run of one arm over a suite, ready for a station, and its first trial.

    `folder` is where the suite's files lie.
    """

    def make(
        suite: Suite, harness: str = "loop", model: str = "sim-careful", *, folder: Path = tmp_path, **more: Any
    ) -> tuple[Prepared, Trial]:
        arm = Arm.model_validate(
            {
                "model": NO_MODEL if harness == "direct" else model,
                "harness": harness,
                "variant": next(iter(suite.variants)),
            }
        )
        plan = Plan(
            run="r1", suite=suite, arms=(arm,), cases=tuple(case.id for case in suite.cases), **{"repeats": 1, **more}
        )
        return Prepared(plan, folder, "suite"), plan.trial(0)

    return make
