"""The plugin's MCP server: started once per worker, or once per attempt when it keeps state.

Whatever way a suite names its server, everything above this file sees the same thing: tools, instructions
and `call`. A server that evalfarm starts runs with a cleared environment and, where namespaces are allowed,
in a PID namespace of its own, so that no child of it outlives the worker, however the worker ends.
"""

import asyncio
import logging
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream
from mcp.client import Client, Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from evalfarm.contracts.suite import Server
from evalfarm.errors import ServerUnavailable

#: Seconds that one tool call may take before it counts as failed. Longer than any sane tool, shorter than an attempt.
CALL_TIMEOUT_S = 60.0

#: What a call may raise when the server is gone, too slow, or answers what it should not.
CALL_ERRORS = (MCPError, OSError, RuntimeError, ValueError, TimeoutError)

#: How much of a dead server's stderr goes into the message.
_TAIL_CHARS = 600


# A line on standard output that is no protocol is skipped; the library would print a traceback for each.
logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)


class PluginServer:
    """A live connection to one MCP server. Open with `start`, close with `stop`."""

    def __init__(self, server: Server, folder: Path, log: Path, containment: tuple[str, ...]) -> None:
        self._server = server
        self._folder = folder
        self._log = log
        self._containment = containment
        self._client: Client | None = None
        self._users = self._most_users = 0
        self._up = asyncio.Event()
        self._leave = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self.tools: tuple[mcp_types.Tool, ...] = ()
        self.instructions: str = ""
        self.name = ""
        self.version = ""

    @classmethod
    async def start(
        cls, server: Server, folder: Path, *, log: Path, environ: Mapping[str, str], containment: tuple[str, ...] = ()
    ) -> "PluginServer":
        """Bring the server up and list its tools.

        `folder` is where the suite's files lie, `log` takes the server's stderr, `environ` provides the
        values that `env_from` names, `containment` is an argv prefix that the server's process runs under.
        Raises ServerUnavailable when it is not up within `startup_timeout_s`, or offers no tool.
        """
        self = cls(server, folder, log, containment)
        self._holder = asyncio.create_task(self._hold(environ))
        ready = asyncio.create_task(self._up.wait())
        try:
            await asyncio.wait((self._holder, ready), timeout=server.startup_timeout_s, return_when="FIRST_COMPLETED")
        except asyncio.CancelledError:
            await self.stop()
            raise
        finally:
            ready.cancel()
        if not self._up.is_set():
            reason = self._why_not_up()
            await self.stop()
            raise ServerUnavailable(
                f"the plugin's MCP server ({describe(server)}) did not come up within "
                f"{server.startup_timeout_s:g} s: {reason}",
                "start it by hand to see why; a Python file must call mcp.run() under `if __name__ == '__main__'`; "
                "a slow server may need a larger startup_timeout_s in the suite",
            )
        if not self.tools:
            await self.stop()
            raise ServerUnavailable(
                f"the plugin's MCP server ({describe(server)}) offers no tools", "check what its tools/list answers"
            )
        return self

    def take(self) -> None:
        """An attempt begins to use it."""
        self._users += 1
        self._most_users = max(self._most_users, self._users)

    def let_go(self) -> None:
        """An attempt is done with it."""
        self._users -= 1
        if not self._users:
            self._most_users = 0

    @property
    def shared(self) -> bool:
        """Whether several attempts used it at once, so that what one does to it happens to the others."""
        return self._most_users > 1

    async def is_up(self) -> bool:
        """Whether a call would reach the server: by its connection where evalfarm started it, else by asking it."""
        if self._client is None or self._leave.is_set():
            return False
        if self._server.url is not None:
            try:
                async with asyncio.timeout(self._server.startup_timeout_s):
                    await self._client.list_tools()
            except CALL_ERRORS:
                return False
        return True

    async def call(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        """Call a tool. Raises CALL_ERRORS as they come: the tool gateway records them."""
        if self._client is None or self._leave.is_set():  # of a server that is gone the library says it was never there
            raise ConnectionError("the MCP server is not connected")
        return await self._client.call_tool(name, arguments, read_timeout_seconds=CALL_TIMEOUT_S)

    async def stop(self) -> None:
        """Close the connection and end the server's process."""
        self._leave.set()
        if self._holder is not None:
            if not self._up.is_set():
                self._holder.cancel()
            await asyncio.wait((self._holder,))
            if not self._holder.cancelled():
                self._holder.exception()  # told where it matters, in `start`; asyncio complains of one nobody asked for

    async def _hold(self, environ: Mapping[str, str]) -> None:
        # One task enters and leaves the client: its task groups are bound to the task that opened them.
        with self._log.open("a", encoding="utf-8") as errlog:
            # The client's own cache is off: a tool list is asked once, and a repeat must never be a cached answer.
            async with Client(self._transport(environ, errlog), cache=None) as client:
                listed = await client.list_tools()
                self.tools = tuple(listed.tools)
                while listed.next_cursor:
                    listed = await client.list_tools(cursor=listed.next_cursor)
                    self.tools += tuple(listed.tools)
                self.instructions = client.instructions or ""
                info = client.server_info
                self.name, self.version = (info.name, info.version) if info else ("", "")
                self._client = client
                self._up.set()
                await self._leave.wait()

    def _transport(self, environ: Mapping[str, str], errlog: TextIO) -> Any:
        if self._server.url is not None:
            return self._server.url
        argv = (*self._containment, *command_of(self._server, self._folder))
        env = dict(self._server.env) | {name: environ[name] for name in self._server.env_from if name in environ}
        # PYTHONUNBUFFERED: a Python server that prints a line of protocol must not sit on it.
        env.setdefault("PYTHONUNBUFFERED", "1")
        started = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=env, cwd=self._folder)
        # A server whose process ends takes the connection with it: the next attempt must not get what is left.
        return _watched(stdio_client(started, errlog), self._leave)

    def _why_not_up(self) -> str:
        told = (
            self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARS:].strip() if self._log.exists() else ""
        )
        if self._holder is not None and self._holder.done() and not self._holder.cancelled():
            error = _root(self._holder.exception())
            return f"{type(error).__name__}: {error}" + (f"; it said: {told}" if told else "")
        return f"it said: {told}" if told else "no answer"


@asynccontextmanager
async def _watched(transport: Transport, ended: asyncio.Event) -> AsyncIterator[Any]:
    """The same transport; `ended` is set when no more can come from the server."""
    async with transport as (incoming, outgoing):
        yield _Watched(incoming, ended), outgoing


class _Watched(ObjectReceiveStream[Any]):
    def __init__(self, incoming: Any, ended: asyncio.Event) -> None:
        self._incoming = incoming
        self._ended = ended

    async def receive(self) -> Any:
        try:
            return await self._incoming.receive()
        except anyio.EndOfStream:
            self._ended.set()
            raise

    async def aclose(self) -> None:
        await self._incoming.aclose()


def command_of(server: Server, folder: Path) -> tuple[str, ...]:
    """The argv that starts a server evalfarm runs itself. `python` stands for the worker's own interpreter."""
    if server.python is not None:
        return (sys.executable, str(folder / server.python))
    if server.command is None:
        raise ValueError("a server reached by url has no command")
    first = sys.executable if server.command[0] in ("python", "python3") else server.command[0]
    if shutil.which(first, path=None) is None and not (folder / first).exists():
        raise ServerUnavailable(
            f"the plugin's MCP server cannot be started: there is no program {first!r} on this worker",
            "install it on every worker, or give its full path in server.command",
        )
    return (first, *server.command[1:])


def describe(server: Server) -> str:
    """How a suite names its server, for messages: never with its environment."""
    return server.python or server.url or " ".join(server.command or ())


def _root(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
