"""The connection to Redis or Valkey: one way to make it, one check of the server, one error when it fails."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from evalfarm.errors import BrokerUnavailable, UsageError
from evalfarm.runstate.client import Client

OLDEST_SERVER = (6, 2)
"""ZRANGE BYSCORE REV, ZADD GT (kombu) and XTRIM MINID, exclusive XRANGE (ours) came with Redis 6.2."""

_REACH_HINT = "is it running, and is EVALFARM_REDIS_URL right? Unset it to use the embedded server"


class _UnixConnection(redis.UnixDomainSocketConnection):
    """With the port that redis-py 8.1 asks for when it gives up: without one it raises AttributeError instead."""

    port = 0


def connect(url: str) -> Client:
    """A client for `redis://`, `rediss://` or `unix:///path` addresses; connects at first use, replies in bytes.

    Raises UsageError when the URL is none of these.
    """
    # Everything is explicit: redis-py 8 gives a client from a URL no retry at all, and one from
    # arguments ten. A retry may run a command twice, which every script of ours allows for.
    options: dict[str, object] = {
        "protocol": 2,  # one shape of replies on every server, and no pushed maintenance notices
        "retry": Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries=3),
        "socket_timeout": 10.0,
        "socket_connect_timeout": 5.0,
        "health_check_interval": 25,
    }
    if url.startswith("unix:"):
        options["connection_class"] = _UnixConnection
    else:
        options["socket_keepalive"] = True
    try:
        client = cast(Client, Client.from_url(url, **options))
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # opens nothing, and refuses an option that there is not
    except (ValueError, TypeError, redis.RedisError) as error:
        shown = re.sub(r"//.*@", "//", url.partition("?")[0])
        raise UsageError(
            f"{shown!r} is no address of a Redis server: {error}",
            hint="EVALFARM_REDIS_URL is redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH",
        ) from error
    return client


def address(client: Client) -> str:
    """Where a client connects to, as a URL without user or password."""
    where = client.connection_pool.connection_kwargs
    if "path" in where:
        return f"unix://{where['path']}"
    scheme = "rediss" if client.connection_pool.connection_class is redis.SSLConnection else "redis"
    return f"{scheme}://{where.get('host', 'localhost')}:{where.get('port', 6379)}/{where.get('db', 0)}"


@contextmanager
def answered(client: Client) -> Iterator[None]:
    """Turns whatever redis-py raises inside into BrokerUnavailable: no other room may know its errors."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise BrokerUnavailable(f"cannot reach Redis at {address(client)}: {error}", hint=_REACH_HINT) from error
    except redis.RedisError as error:
        raise BrokerUnavailable(
            f"Redis at {address(client)} refused a command: {error}",
            hint="`evalfarm doctor` checks the server's memory, version and permissions",
        ) from error


def check_server(client: Client) -> str:
    """Makes sure that the server can be trusted with the ledger: reachable, Redis ≥ 6.2 or Valkey, never evicting.

    Returns what it is, as in `Valkey 8.1.3, noeviction`. Raises BrokerUnavailable with what to do.
    """
    with answered(client):
        about = client.info("server")
        policy = client.info("memory").get("maxmemory_policy")
    version = str(about["redis_version"])  # Valkey answers with the Redis version that it is compatible with
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
        raise BrokerUnavailable(
            f"Redis at {address(client)} is version {version}; evalfarm needs 6.2 or later",
            hint="install Redis 6.2 or later, or any Valkey",
        )
    if policy != "noeviction":
        # An evicted key is a run without its ledger, or a queue without its binding.
        raise BrokerUnavailable(
            f"Redis at {address(client)} may evict run state: its maxmemory-policy is {policy}",
            hint="set `maxmemory-policy noeviction` in its configuration, or `CONFIG SET maxmemory-policy noeviction`",
        )
    return f"Valkey {about['valkey_version']}, {policy}" if "valkey_version" in about else f"Redis {version}, {policy}"
