"""Every MCP call of an attempt goes through here and is recorded on the server's side.

One core, `ToolGateway.call`, and two faces: harnesses in this process call it, and whatever runs in a sealed
cell reaches it over MCP's streamable HTTP. The face passes the server's tools on untouched (names, descriptions,
schemas, annotations, instructions), so a model sees what it would see without us.
"""

import asyncio
import json
import time
from typing import Any

import mcp_types
from mcp.server.lowlevel import Server as McpServer
from pydantic import JsonValue
from starlette.types import ASGIApp

from evalfarm.contracts.run import ToolCall
from worker.plugin_server import CALL_ERRORS, PluginServer
from worker.storable import why_not

#: The path under which the face speaks MCP.
MCP_PATH = "/mcp"


class ToolGateway:
    """The tool witness of one attempt."""

    def __init__(self, server: PluginServer, started: float) -> None:
        """`started`: time.monotonic() at the attempt's start, from which calls are timed."""
        self._server = server
        self._started = started
        self.turn = 0
        self.calls: list[ToolCall] = []
        self.lost = False  #: the server went away, or gave no answer until the attempt was over

    @property
    def tools(self) -> tuple[mcp_types.Tool, ...]:
        """What the server offers."""
        return self._server.tools

    @property
    def instructions(self) -> str:
        """What the server tells a client to tell the model; empty: nothing."""
        return self._server.instructions

    async def call(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        """Call a tool and record the call, whatever comes of it.

        An error of the protocol or a lost server comes back as a result with `is_error`, as a client of
        MCP would show it to a model; the record says which it was.
        """
        at, turn = time.monotonic(), self.turn
        problem = why_not(arguments)
        try:
            result = _failed(f"the arguments hold {problem}") if problem else await self._server.call(name, arguments)
        except CALL_ERRORS as error:
            self.lost = self.lost or isinstance(error, OSError) or "connection closed" in str(error).lower()
            result = _failed(f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            self.lost = True
            raise
        self.calls.append(
            ToolCall(
                name=name,
                arguments=json.dumps(arguments) if problem else arguments,
                result=None if result.is_error else result_value(result),
                error=result_text(result) if result.is_error else None,
                started_s=at - self._started,
                duration_s=time.monotonic() - at,
                turn=turn,
            )
        )
        return result

    def app(self) -> ASGIApp:
        """The face for a sealed cell: an MCP server over streamable HTTP, to be served with its lifespan."""

        async def list_tools(_context: Any, _params: Any) -> mcp_types.ListToolsResult:
            return mcp_types.ListToolsResult(tools=list(self.tools))

        async def call_tool(_context: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
            return await self.call(params.name, params.arguments or {})

        server: McpServer[Any] = McpServer(
            self._server.name or "plugin",
            version=self._server.version,
            instructions=self.instructions or None,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
        # Stateless with plain JSON: one exchange per call, nothing to keep between them.
        return server.streamable_http_app(streamable_http_path=MCP_PATH, json_response=True, stateless_http=True)


def result_text(result: mcp_types.CallToolResult) -> str:
    """The text of a result's content blocks, one after another."""
    return "\n".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))


def result_value(result: mcp_types.CallToolResult) -> JsonValue:
    """What a grader looks at: the structured content (as text where a trace cannot hold it), else the text."""
    structured: JsonValue = result.structured_content
    if structured is None:
        return result_text(result)
    return json.dumps(structured) if why_not(structured) else structured


def _failed(text: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=text)], is_error=True)
