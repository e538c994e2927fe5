"""A run against a real server with the users that a farm is deployed with: each may do its work, and no more."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from evalfarm.broker import SCHEDULES, TEND_SCHEDULES, make_app
from evalfarm.runstate import check_server, connect, open_runs
from tests.deploy.redis_servers import PATIENCE_S, Server, server_with_users

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with server_with_users(tmp_path) as server:
        yield server


def environment(server: Server, user: str, tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "EVALFARM_HOME": str(tmp_path / f"home-{user}"),
        "EVALFARM_STORE_URL": f"file://{tmp_path}/store",
        "EVALFARM_REDIS_URL": server.url(user),
    }


def test_a_run_needs_no_more_than_the_users_may(server: Server, tmp_path: Path) -> None:
    evalfarm = [sys.executable, "-m", "evalfarm"]
    with subprocess.Popen([*evalfarm, "worker", "--slots", "1"], env=environment(server, "worker", tmp_path)) as worker:
        run = [*evalfarm, "run", "bls", "--model", "sim-careful", "--harness", "loop"]
        env = environment(server, "scheduler", tmp_path)
        ended = subprocess.run(run, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        worker.terminate()
    assert server.refused() == [], ended.stderr
    assert ended.returncode == 0, ended.stderr


def test_beat_may_fill_its_queue_and_a_worker_may_not(server: Server) -> None:
    make_app(server.url("scheduler")).send_task(TEND_SCHEDULES, queue=SCHEDULES)
    assert server.refused() == []
    with connect(server.url("worker")) as worker, pytest.raises(redis.exceptions.NoPermissionError):
        worker.lpush(SCHEDULES, "x")


def test_the_exporter_reads_and_writes_nothing(server: Server) -> None:
    with connect(server.url("exporter")) as client:
        check_server(client)
        assert open_runs(client) == []
        assert server.refused() == []
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.sadd("f:open", "x")


@pytest.mark.parametrize("user", ["worker", "scheduler", "exporter"])
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("ACL", "LIST"),
        ("KEYS", "*"),
        ("SHUTDOWN",),
        ("GET", "secret"),
        ("REPLICAOF", "NO", "ONE"),
    ],
)
def test_nobody_may_wipe_look_around_or_reconfigure(server: Server, user: str, command: tuple[str, ...]) -> None:
    with connect(server.url(user)) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*command)


def test_whoever_has_no_name_may_do_nothing(server: Server) -> None:
    once = Retry(NoBackoff(), 0)
    with redis.Redis(port=server.port, retry=once) as nobody, pytest.raises(redis.exceptions.AuthenticationError):
        nobody.ping()
    with redis.Redis(port=server.port, username="health", password="any") as health:
        assert health.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            health.get("f:open")
