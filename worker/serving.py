"""An ASGI app on a socket that is already open, up and down in a millisecond.

uvicorn's own `serve` polls ten times a second for a signal to stop, which would cost every attempt in a cell
two tenths of a second; so its parts are driven here directly, and signals are left alone.
"""

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

# A refused WebSocket is what the model gateway is for; uvicorn would warn of each.
logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


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
        for task in list(server.server_state.tasks):
            task.cancel()
        await server.lifespan.shutdown()
