"""A TCP proxy that does to a connection what networks do: refuse, reset, swallow, delay, cut in mid-reply."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Way = Literal["up", "down"]

#: Closing with this lingering sends RST instead of FIN.
_RESET = struct.pack("ii", 1, 0)


@dataclass
class Trap:
    """Holds the first command that contains a pattern, or the reply to it: then the command has taken effect."""

    pattern: bytes
    holds_reply: bool
    skipped: int  #: commands of the pattern that pass before
    sprung: threading.Event = field(default_factory=threading.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    drops: bool = False  #: what is held never arrives, and the connection is reset
    port: int = 0  #: the client's end of the connection that is held
    words: list[bytes] = field(default_factory=list)  #: the command that is held

    def catches(self, data: bytes, link: "_Link") -> bool:
        if self.pattern not in data or self.port or self.released.is_set():
            return False
        self.skipped -= 1
        if self.skipped >= 0:
            return False
        self.port = link.client.get_extra_info("peername")[1]
        self.words = data.split(b"\r\n")[2::2]  # RESP: *3 $3 SET $1 a $1 b
        return True

    def wait(self, timeout_s: float = 60.0) -> None:
        """Wait until something is held."""
        assert self.sprung.wait(timeout_s), f"nothing with {self.pattern!r} came by in {timeout_s:g} s"


@dataclass(eq=False)
class _Link:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    trap: Trap | None = None  #: whose command has gone up, and whose reply is to be held

    def reset(self) -> None:
        for writer in (self.client, self.server):
            with suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class Proxy:
    """Listens on a port of its own before a server's. Its methods are for the thread of the test."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        self._links: set[_Link] = set()
        self._traps: list[Trap] = []
        self._open: dict[Way, asyncio.Event] = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._refusing = False
        self._delay_s = 0.0
        self._reply_bytes: int | None = None  #: of the next reply; then the connection is reset
        self._server = self._do(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.heal()

    # ---- what a test does to the network

    def heal(self) -> None:
        """Let everything pass, also what was swallowed so far: TCP sends it again."""

        def heal() -> None:
            self._refusing, self._delay_s, self._reply_bytes = False, 0.0, None
            for way in self._open.values():
                way.set()

        self._call(heal)

    def reset(self, *, refuse: bool = False) -> None:
        """Reset every connection; with `refuse`, every new one too, until healed."""

        def reset() -> None:
            self._refusing = refuse
            for link in tuple(self._links):
                link.reset()

        self._call(reset)

    def swallow(self, *ways: Way) -> None:
        """Be a black hole for these ways, without a word to either side."""

        def swallow() -> None:
            for way in ways:
                self._open[way].clear()

        self._call(swallow)

    def delay(self, seconds: float) -> None:
        """Hold everything up for so long."""
        self._call(lambda: setattr(self, "_delay_s", seconds))

    def cut_next_reply(self, after: int) -> None:
        """Reset the connection in the middle of the next reply, after so many bytes of it."""
        self._call(lambda: setattr(self, "_reply_bytes", after))

    def trap(self, pattern: bytes, *, holds_reply: bool = False, skipped: int = 0) -> Trap:
        """Hold the first command with this pattern; with `holds_reply` let it take effect and hold the reply."""
        trap = Trap(pattern, holds_reply, skipped)
        self._call(lambda: self._traps.append(trap))
        return trap

    def release(self, trap: Trap, *, drop: bool = False) -> None:
        """Let go of what a trap holds; with `drop`, it never arrives."""

        def release() -> None:
            trap.drops = drop
            trap.released.set()

        self._call(release)

    def close(self) -> None:
        """Reset everything and end."""
        self.heal()

        async def close() -> None:
            self._server.close()
            for trap in self._traps:
                trap.drops = True
                trap.released.set()
            for link in tuple(self._links):
                link.reset()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._do(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ---- in the loop

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            if self._refusing:
                raise ConnectionRefusedError
            up_reader, server = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            _Link(client, client).reset()
            return
        link = _Link(client, server)
        self._links.add(link)
        with suppress(asyncio.CancelledError):  # the proxy closes
            await asyncio.gather(self._pump("up", reader, link), self._pump("down", up_reader, link))
        self._links.discard(link)
        link.reset()

    async def _pump(self, way: Way, reader: asyncio.StreamReader, link: _Link) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open[way].wait()
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                if not await (self._going_up(data, link) if way == "up" else self._coming_down(data, link)):
                    break
        link.reset()

    async def _going_up(self, data: bytes, link: _Link) -> bool:
        trap = next((trap for trap in self._traps if trap.catches(data, link)), None)
        if trap is not None and trap.holds_reply:
            link.trap = trap
        elif trap is not None:
            trap.sprung.set()
            await trap.released.wait()
            if trap.drops:
                return False
        link.server.write(data)
        await link.server.drain()
        return True

    async def _coming_down(self, data: bytes, link: _Link) -> bool:
        if (trap := link.trap) is not None:
            trap.sprung.set()
            await trap.released.wait()
            link.trap = None
            if trap.drops:
                return False
        if (limit := self._reply_bytes) is not None:
            self._reply_bytes = None
            link.client.write(data[:limit])
            await link.client.drain()
            await asyncio.sleep(0.01)  # or the reset overtakes the bytes
            return False
        link.client.write(data)
        await link.client.drain()
        return True

    def _call(self, function: Callable[[], object]) -> None:
        async def call() -> None:
            function()

        self._do(call())

    def _do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)


@contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """A proxy to a local port while the block lasts."""
    proxy = Proxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
