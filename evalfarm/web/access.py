"""Who may look: a token in the request's header, or nobody but this machine; and how often one may fail."""

import base64
import binascii
import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from evalfarm.web.refusals import Refusal, Told, unauthorized
from evalfarm.web.tokens import Token, Tokens

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HOW = "send `Authorization: Bearer TOKEN`; make a token with `evalfarm token create`"
#: So many wrong tokens from one place, within so many seconds, and the place waits.
MOST_FAILURES = 10
WINDOW_S = 60.0
#: Places that are remembered at a time, so that a flood of addresses cannot fill the memory.
_MOST_PLACES = 10_000
_ALLOWED = "evalfarm.allowed"


class Allowed(NamedTuple):
    """What a request may see."""

    suites: tuple[str, ...] = ()  #: empty: everything


class Failures:
    """Wrong tokens by where they came from. Used by one thread, the event loop's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_place: OrderedDict[str, list[float]] = OrderedDict()

    def wait_s(self, place: str) -> float:
        """For how long nothing from this place is looked at; 0: it is."""
        recent = self._recent(place)
        return recent[0] + WINDOW_S - self._clock() if len(recent) >= MOST_FAILURES else 0.0

    def add(self, place: str) -> None:
        """Count a wrong token."""
        self._by_place[place] = [*self._recent(place), self._clock()]
        self._by_place.move_to_end(place)
        if len(self._by_place) > _MOST_PLACES:
            self._by_place.popitem(last=False)

    def _recent(self, place: str) -> list[float]:
        begin = self._clock() - WINDOW_S
        return [moment for moment in self._by_place.get(place, []) if moment > begin]


class Gate:
    """Lets requests in by their token. `clock`: seconds since the epoch."""

    def __init__(self, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._tokens = tokens
        self._clock = clock
        self._failures = Failures(clock)

    async def admit(self, authorization: str | None, place: str) -> Allowed:
        """What the token in a header may see. Raises Refusal: 401, and 429 after too many wrong ones."""
        if authorization is None:
            raise unauthorized("no_token", "this needs a personal access token", _HOW)
        if (wait_s := self._failures.wait_s(place)) > 0:
            headers = {"Retry-After": f"{wait_s + 1:.0f}"}
            raise Refusal(Told(429, "too_many_failures", "too many wrong tokens came from here", "wait", headers))
        text = credential(authorization)
        token = None if text is None else await run_in_threadpool(self._tokens.find, text)
        if token is None or token.state(self._clock()) != "active":
            self._failures.add(place)
            raise unauthorized("bad_token", _why(token, self._clock()), _HOW)
        await run_in_threadpool(self._tokens.note_use, token, self._clock())
        return Allowed(token.suites)


def _why(token: Token | None, now_s: float) -> str:
    """Only who holds the token is told what became of it."""
    return "this is no token of this store" if token is None else f"this token is {token.state(now_s)}"


def credential(authorization: str) -> str | None:
    """The token in an `Authorization` header: of `Bearer TOKEN`, or the password of `Basic`. None: neither."""
    scheme, _, rest = authorization.strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return rest.strip()
        case "basic":
            try:
                return base64.b64decode(rest.strip(), validate=True).decode("ascii").partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return None
    return None


def place_of(host: str) -> str:
    """Where a request comes from, for counting: an address, of IPv6 the network that one subscriber has."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(ipaddress.ip_network((host, 64), strict=False)) if address.version == 6 else host


def is_own_name(host_header: str, names: Sequence[str] = LOOPBACK_NAMES) -> bool:
    """Whether a `Host` header names this machine to itself. A page elsewhere that has its name lead here does not."""
    name = host_header.rpartition(":")[0] if host_header.rpartition("]")[2].count(":") else host_header
    return name.lower() in names


def allowed(scope: Scope) -> Allowed:
    """What was allowed to a request that came through a `Guarded`."""
    found: Allowed = scope[_ALLOWED]
    return found


class Guarded:
    """An application behind the gate: GET only, and a token unless `open_here`.

    `open_here`: the server listens on this machine's own address, so whoever reaches it is this machine, or a page in
    its browser, which its `Host` gives away. Raises Refusal, which whoever holds this tells.
    """

    def __init__(self, app: ASGIApp, gate: Gate, *, open_here: bool) -> None:
        self._app = app
        self._gate = gate
        self._open_here = open_here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "there are no WebSockets here"})
            return
        headers = Headers(scope=scope)
        if scope["method"] != "GET":
            raise unauthorized("only_get", f"{scope['method']} is not allowed: everything here is read-only", "use GET")
        if not self._open_here:
            host, _ = scope.get("client") or ("", 0)
            scope[_ALLOWED] = await self._gate.admit(headers.get("authorization"), place_of(host))
        elif is_own_name(headers.get("host", "")):
            scope[_ALLOWED] = Allowed()
        else:
            hint = "start it with --require-token to serve under another name"
            raise Refusal(Told(403, "other_host", "this server answers to this machine's own name only", hint))
        await self._app(scope, receive, send)
