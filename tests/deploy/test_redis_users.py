"""A run against a real server with the users that a farm is deployed with: each may do its work, and no more."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from evalfarm.broker import SCHEDULES, TEND_SCHEDULES, make_app
from evalfarm.embedded import find_server
from evalfarm.runstate import check_server, connect, open_runs

pytestmark = pytest.mark.slow
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Server:
    """A server of this test's, and the secrets that it was made with."""

    secrets: Path
    admin: redis.Redis

    def url(self, user: str) -> str:
        return (self.secrets / f"REDIS_URL_{user}").read_text(encoding="utf-8")

    def refused(self) -> list[tuple[str, str]]:
        """What was refused to whom."""
        return [(entry["username"], entry["object"]) for entry in self.admin.acl_log()]


@pytest.fixture
def server(tmp_path: Path, root: Path) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = [sys.executable, "deploy/make_secrets.py", str(tmp_path / "secrets")]
    subprocess.run([*made, "--redis", f"redis://{{login}}@127.0.0.1:{port}/0"], cwd=root, check=True)
    acl = tmp_path / "users.acl"
    # Somebody must be able to read what was refused.
    acl.write_text((tmp_path / "secrets/users.acl").read_text() + "user admin on >admin ~* &* +@all\n")
    options = {"port": str(port), "bind": "127.0.0.1", "aclfile": str(acl), "dir": str(tmp_path), "save": ""}
    argv = [find_server(), *(word for name, value in options.items() for word in (f"--{name}", value))]
    argv += ["--maxmemory-policy", "noeviction"]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        with redis.Redis(port=port, username="admin", password="admin", decode_responses=True) as admin:
            until(lambda: answers(admin))
            yield Server(tmp_path / "secrets", admin)
    finally:
        process.terminate()
        process.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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
    port = server.admin.connection_pool.connection_kwargs["port"]
    with redis.Redis(port=port) as nobody, pytest.raises(redis.exceptions.AuthenticationError):
        nobody.ping()
    with redis.Redis(port=port, username="health", password="any") as health:
        assert health.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            health.get("f:open")
