"""Every test starts from nothing: no settings of the machine's, its own home, its own working folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import settings

from evalfarm.embedded import embedded_redis
from evalfarm.runstate import connect

# Laws hold on a loaded machine too: how long an example takes there says nothing of the code.
settings.register_profile("laws", deadline=None)
settings.load_profile("laws")

_OURS = ("EVALFARM_", "OPENAI_")


@pytest.fixture(autouse=True)
def _clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EVALFARM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server for the tests of this process."""
    with embedded_redis(tmp_path_factory.mktemp("home")) as url:
        yield url


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of it, its database empty."""
    with connect(redis_url) as client:
        client.flushall()
        yield client
