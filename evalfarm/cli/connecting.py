"""The Redis that commands work with: the one that the environment names, or the embedded one."""

from collections.abc import Iterator
from contextlib import contextmanager

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import Client, check_server, connect
from evalfarm.settings import Settings


@contextmanager
def open_redis(settings: Settings) -> Iterator[tuple[str, Client]]:
    """The Redis that the environment names, else the embedded Valkey while the block lasts: its URL and a client.

    Raises BrokerUnavailable.
    """
    if settings.redis_url is not None:
        yield settings.redis_url, _checked(settings.redis_url)
        return
    with embedded_redis(settings.home) as url:
        yield url, _checked(url)


def _checked(url: str) -> Client:
    client = connect(url)
    check_server(client)
    return client
