"""The console and the API as one application."""

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evalfarm.errors import EvalFarmError
from evalfarm.store import Store
from evalfarm.web.access import Gate, Guarded
from evalfarm.web.api import Api
from evalfarm.web.console import Console
from evalfarm.web.desk import Desk
from evalfarm.web.holdings import Holdings
from evalfarm.web.pages import POLICY, refused
from evalfarm.web.refusals import Refusal, told_of
from evalfarm.web.tokens import Tokens

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}


def make_app(store: Store, holdings: Holdings, folder: Path, *, clock: Callable[[], float], open_here: bool) -> ASGIApp:
    """The application. `folder`: for files that live as long as a request; `clock`: seconds since the epoch.

    `open_here`: the console, and it alone, needs no token; for a server that listens on this machine's own address.
    """
    desk, gate = Desk(store, holdings, clock, folder), Gate(Tokens(store.objects), clock)
    api = Api(desk)
    routes = [
        Mount("/api/v1", Guarded(api.router(), gate, open_here=False)),
        Mount("/api", Guarded(_nothing, gate, open_here=False)),
        Mount("/", Guarded(Console(desk, api).router(), gate, open_here=open_here)),
    ]
    handlers = {kind: _refuse for kind in (Refusal, EvalFarmError, HTTPException, Exception)}
    return _WithHeaders(Starlette(routes=routes, exception_handlers=handlers))


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HTTPException(404)


async def _refuse(request: Request, error: Exception) -> Response:
    told = told_of(error)
    return told.as_json() if request.url.path.startswith("/api") else refused(told)


class _WithHeaders:
    """Adds to every answer what keeps a browser from doing more with it than showing it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, add)
