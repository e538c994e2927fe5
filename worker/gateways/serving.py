"""An ASGI app on a socket that is already open, up and down in a millisecond.

uvicorn's own `serve` polls ten times a second for a signal to stop, which would cost every attempt in a cell
two tenths of a second; so its parts are driven here directly, and signals are left alone.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import uvicorn
from starlette.types import ASGIApp


def _is_a_fault(record: logging.LogRecord) -> bool:
    """Whether uvicorn has more to say than that a request was cut off because its attempt is over."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


# A refused WebSocket is what the model gateway is for; uvicorn would warn of each.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
logging.getLogger("uvicorn.error").addFilter(_is_a_fault)


def loopback() -> socket.socket:
    """A socket that listens on a free port of this machine's loopback."""
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is: 40 ms a request.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen(128)
    return sock


@asynccontextmanager
async def serving(app: ASGIApp, sock: socket.socket, *, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[None]:
    """Serve `app` on a bound, listening socket until the block ends; then close it and whatever it still serves."""
    config = uvicorn.Config(app, lifespan=lifespan, ws="none", log_config=None, access_log=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    sock.setblocking(False)
    await server.startup(sockets=[sock])
    try:
        yield
    finally:
        for listener in server.servers:
            listener.close()
        sock.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        answering = list(server.server_state.tasks)
        for task in answering:
            task.cancel()
        # What they hold is recorded as they end, and must be before whoever opened this goes on to read it.
        await asyncio.gather(*answering, return_exceptions=True)
        await server.lifespan.shutdown()
