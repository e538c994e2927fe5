"""One command after another over connections that are kept."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from evalfarm.runstate import Client, connect


@pytest.fixture
def ours(redis_url: str) -> Iterator[Client]:
    """A client of a server whose database is empty."""
    with connect(redis_url) as ours:
        ours.flushall()
        yield ours


def test_commands_that_follow_one_another_share_a_connection(ours: Client) -> None:
    assert len({ours.client_id() for _ in range(20)}) == 1


def test_replies_are_what_redis_py_makes_of_them(ours: Client) -> None:
    ours.hset("h", mapping={"a": 1})
    ours.zadd("z", {"m": 1.5})
    told = ours.hgetall("h"), ours.zscore("z", "m"), ours.set("s", "x", nx=True), ours.set("s", "y", nx=True)
    assert told == ({b"a": b"1"}, 1.5, True, None)


def test_a_connection_that_the_server_closed_is_opened_again(ours: Client, client: redis.Redis) -> None:
    own = ours.client_id()
    assert client.client_kill_filter(_id=own) == 1
    ours.set("n", 1)
    assert (ours.get("n"), ours.client_id() != own) == (b"1", True)


def test_a_server_out_of_reach_is_tried_four_times_however_often_it_was_asked_before(
    ours: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.ping()
    slept: list[float] = []

    def out_of_reach(_: object) -> None:
        raise TimeoutError("timed out")

    with monkeypatch.context() as patched:
        patched.setattr(ours.connection_pool.connection_class, "_connect", out_of_reach)
        patched.setattr("redis.retry.sleep", slept.append)
        ours.connection_pool.disconnect()
        with pytest.raises(redis.TimeoutError):
            ours.ping()
    assert (len(slept), ours.ping()) == (3, True)


def test_a_command_that_the_server_refuses_leaves_the_connection_as_it_was(ours: Client) -> None:
    own = ours.client_id()
    ours.set("s", "text")
    with pytest.raises(redis.ResponseError, match="wrong kind of value"):
        ours.lpush("s", 1)
    assert (ours.get("s"), ours.client_id()) == (b"text", own)


def test_a_reply_that_was_not_waited_for_is_nobody_elses(ours: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ours.set("mine", "1")
    ours.set("other", "2")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ours, "parse_response", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ours.get("mine")
    assert ours.get("other") == b"2"


def test_threads_get_their_own_replies(ours: Client) -> None:
    for n in range(8):
        ours.set(f"k{n}", n)
    together = threading.Barrier(8)

    def ask(n: int) -> set[bytes | None]:
        together.wait()
        return {ours.get(f"k{n}") for _ in range(200)}

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [{str(n).encode()} for n in range(8)]


def test_a_forked_process_asks_over_a_connection_of_its_own(ours: Client) -> None:
    own, ours_told = ours.client_id(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ours_told[1], str(ours.client_id()).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (int(os.read(ours_told[0], 100)) != own, ours.client_id()) == (True, own)


def test_closing_it_closes_its_connections(redis_url: str, client: redis.Redis) -> None:
    before = len(client.client_list())
    with connect(redis_url) as ours:
        ours.ping()
    assert len(client.client_list()) == before
