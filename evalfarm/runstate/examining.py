"""What a server that a farm stands on is like, beyond what every command makes sure of."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Literal, cast

import redis

from evalfarm.contracts.base import Contract
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import address, answered

_CLOCK_LOOKS = 5


class Line(Contract):
    """How a connection reaches its server."""

    kind: Literal["tls", "tls unchecked", "machine", "plain"]
    address: str  #: without user and password


def line_to(client: Client) -> Line:
    """How this connection reaches its server; nothing is asked of it."""
    pool = client.connection_pool
    host = str(pool.connection_kwargs.get("host", "localhost"))
    kind: Literal["tls", "tls unchecked", "machine", "plain"]
    if issubclass(pool.connection_class, redis.SSLConnection):
        checked = pool.connection_kwargs.get("ssl_cert_reqs", "required") == "required"
        kind = "tls" if checked else "tls unchecked"
    elif "path" in pool.connection_kwargs or _is_here(host):
        kind = "machine"
    else:
        kind = "plain"
    return Line(kind=kind, address=address(client))


def check_persistence(client: Client) -> str:
    """Makes sure that what was counted outlives a restart: an append-only file that is being written.

    Returns what it is. Raises BrokerUnavailable with what to do.
    """
    with answered(client):
        found = client.info("persistence")
    if not found.get("aof_enabled"):
        raise BrokerUnavailable(
            f"Redis at {address(client)} keeps no append-only file: a restart forgets what was counted",
            hint="set `appendonly yes` in its configuration",
        )
    if bad := [name for name in ("aof_last_write_status", "aof_last_bgrewrite_status") if found.get(name) != "ok"]:
        raise BrokerUnavailable(
            f"Redis at {address(client)} cannot write its append-only file: {bad[0]} is {found.get(bad[0])}",
            hint="look at the space and the permissions of its data folder; its log says why",
        )
    return "append-only file, being written"


def clock_offset_s(client: Client, clock: Callable[[], float]) -> float:
    """How far `clock` is ahead of the server's, in seconds, by the quickest of five answers. Raises BrokerUnavailable.

    Half of that answer's time is the error at most.
    """
    looks = []
    with answered(client):
        for _ in range(_CLOCK_LOOKS):
            before_s = clock()
            seconds, micros = client.time()
            after_s = clock()
            looks.append((after_s - before_s, (before_s + after_s) / 2 - seconds - micros / 1e6))
    return min(looks)[1]


def waiting_messages(client: Client, queue: str, most: int) -> list[bytes]:
    """The newest messages of a queue as they lie in Redis, at most so many. Raises BrokerUnavailable."""
    with answered(client):
        return cast(list[bytes], client.lrange(queue, 0, most - 1))


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
