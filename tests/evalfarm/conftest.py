"""A real server for the rooms that stand on Redis: one per session, emptied before every test."""

from collections.abc import Iterator

import pytest
import redis

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import connect


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded_redis(tmp_path_factory.mktemp("home")) as url:
        yield url


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with connect(redis_url) as client:
        client.flushall()
        yield client
