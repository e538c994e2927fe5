"""Bytes over one connection, read as they are wanted: asyncio's own, without what its streams add to each read."""

import asyncio
from typing import cast

#: Bytes that wait to be read, beyond which the other side is made to wait.
_MOST_WAITING = 256 * 1024


class Stream(asyncio.Protocol):
    """A connection to send to and receive from; one reader at a time."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._over = False
        self._broken: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._paused = False

    def send(self, data: bytes) -> None:
        """Send bytes; those that do not go out at once go out in time."""
        assert self._transport is not None
        self._transport.write(data)

    async def receive(self) -> bytes:
        """What has come since, as soon as something has; nothing: the other side is done. Raises OSError."""
        if not self._received and not self._over:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        received = bytes(self._received)
        self._received.clear()
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        if not received and self._broken is not None:
            raise ConnectionError(str(self._broken)) from self._broken
        return received

    def is_quiet(self) -> bool:
        """Whether it is open, and nothing has come that nobody asked for."""
        return not self._over and not self._received

    def cut(self) -> None:
        """Close it now."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As asyncio calls it."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """As asyncio calls it."""
        self._received += data
        if len(self._received) > _MOST_WAITING and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """As asyncio calls it; it closes the connection next."""
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """As asyncio calls it."""
        self._over, self._broken = True, exc
        self._wake()
        if not self.closed.done():
            self.closed.set_result(None)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
