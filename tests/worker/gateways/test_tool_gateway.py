import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
import pytest
from mcp.client import Client

from worker.gateways.serving import loopback, serving
from worker.gateways.tool_gateway import MCP_PATH, ToolGateway, result_text, result_value
from worker.plugin_server import PluginServer
from worker.storable import MAX_DEPTH

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def face(tools: ToolGateway) -> AsyncIterator[Client]:
    """A client of the gateway's face for a cell."""
    listener = loopback()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{MCP_PATH}"
    async with serving(tools.app(), listener, lifespan="on"), Client(url, cache=None) as client:
        yield client


def gateway(server: PluginServer) -> ToolGateway:
    return ToolGateway(server, time.monotonic())


def untimed(tools: ToolGateway) -> list[dict[str, Any]]:
    """The record without its times, which must be times."""
    assert all(0 <= call.started_s < 5 and 0 <= (call.duration_s or 0) < 5 for call in tools.calls)
    return [call.model_dump(exclude={"started_s", "duration_s", "server", "call_id"}) for call in tools.calls]


def record(name: str, arguments: Any, result: Any = None, error: str | None = None, turn: int = 0) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result, "error": error, "turn": turn}


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("look", {"at": "the shelf"}),
    ("say", {"text": "grüezi"}),
    ("refuse", {"why": "out of stock"}),
    ("steal", {}),
    ("look", {}),
]


@pytest.mark.parametrize("through_http", [False, True], ids=["core", "face"])
async def test_every_call_is_recorded_and_both_faces_give_the_same(open_shop: Any, through_http: bool) -> None:
    async with open_shop() as server:
        tools = gateway(server)
        if through_http:
            async with face(tools) as client:
                results = [await client.call_tool(name, arguments) for name, arguments in ASKED]
        else:
            results = [await tools.call(name, arguments) for name, arguments in ASKED]
    missing = untimed(tools)[-1]["error"]
    assert untimed(tools) == [
        record("look", {"at": "the shelf"}, {"seen": "the shelf"}),
        record("say", {"text": "grüezi"}, "grüezi"),
        record("refuse", {"why": "out of stock"}, error="out of stock"),
        record("steal", {}, error="Unknown tool: 'steal'"),
        record("look", {}, error=missing),
    ]
    assert "at\n  Missing required argument" in missing
    assert [(result.is_error, result_text(result)) for result in results] == [
        (False, '{"seen":"the shelf"}'),
        (False, "grüezi"),
        (True, "out of stock"),
        (True, "Unknown tool: 'steal'"),
        (True, missing),
    ]


async def test_a_call_is_recorded_under_the_turn_that_was_open_when_it_began(open_shop: Any) -> None:
    async with open_shop() as server:
        tools = gateway(server)
        await tools.call("look", {"at": "a"})
        tools.turn = 1
        await tools.call("look", {"at": "b"})
    assert [(call.arguments, call.turn) for call in tools.calls] == [({"at": "a"}, 0), ({"at": "b"}, 1)]
    assert tools.calls[0].started_s <= tools.calls[1].started_s


async def test_the_face_shows_all_that_the_server_shows(open_shop: Any) -> None:
    async with open_shop() as server, face(gateway(server)) as client:
        shown = (await client.list_tools()).tools
        about = client.server_info
        assert about is not None
        assert ([tool.model_dump() for tool in shown], client.instructions, about.name, about.version) == (
            [tool.model_dump() for tool in server.tools],
            "Look before you buy.",
            "Shop",
            "1.2.3",
        )
    look = shown[0]
    assert look.annotations is not None
    assert (look.annotations.read_only_hint, look.output_schema, look.input_schema["required"]) == (
        *(True, {"additionalProperties": True, "type": "object"}, ["at"]),
    )


async def test_calls_at_the_same_time_are_each_recorded(open_shop: Any) -> None:
    async with open_shop() as server:
        tools = gateway(server)
        async with face(tools) as client:
            await asyncio.gather(*(client.call_tool("look", {"at": str(at)}) for at in range(20)))
    assert sorted(int(call["arguments"]["at"]) for call in untimed(tools)) == list(range(20))


async def test_a_server_that_is_gone_is_a_recorded_error(open_shop: Any) -> None:
    async with open_shop() as server:
        tools = gateway(server)
    result = await tools.call("look", {"at": "the shelf"})
    error = "ConnectionError: the MCP server is not connected"
    assert (result.is_error, tools.lost) == (True, True)  # so that it is no fault of the attempt's
    assert untimed(tools) == [record("look", {"at": "the shelf"}, error=error)]


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("thing", "problem"),
    [
        (deep(MAX_DEPTH), f"more than {MAX_DEPTH} levels of nesting"),
        (json.loads('"\\ud83d"'), "half a surrogate pair, which is no text"),
    ],
)
async def test_arguments_that_no_trace_can_hold_are_refused_and_recorded_as_text(
    open_shop: Any, thing: Any, problem: str
) -> None:
    async with open_shop() as server:
        tools = gateway(server)
        result = await tools.call("take", {"thing": thing})
    told = f"the arguments hold {problem}"
    assert result_text(result) == told
    assert untimed(tools) == [record("take", json.dumps({"thing": thing}), error=told)]
    assert all(call.model_validate_json(call.model_dump_json()) == call for call in tools.calls)


async def test_arguments_that_are_nested_just_less_go_through(open_shop: Any) -> None:
    thing = deep(MAX_DEPTH - 2)
    async with open_shop() as server:
        tools = gateway(server)
        result = await tools.call("take", {"thing": thing})
    assert result_value(result) == {"taken": thing}
    assert untimed(tools) == [record("take", {"thing": thing}, {"taken": thing})]


def test_a_result_that_no_trace_can_hold_is_kept_as_text() -> None:
    value = {"thing": deep(MAX_DEPTH)}
    assert result_value(mcp_types.CallToolResult(content=[], structured_content=value)) == json.dumps(value)
