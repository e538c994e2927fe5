import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import celery
import pytest
import redis

import evalfarm
from evalfarm.broker import ALL_QUEUES, QUEUES, RUN_TRIALS, kombu_url, make_app, queue_depth, send_trials
from evalfarm.contracts.run import QueueName
from evalfarm.errors import BrokerUnavailable
from tests.faults.machine import Broker
from tests.faults.proxy import proxy_to


@pytest.fixture
def app(redis_url: str, client: redis.Redis) -> celery.Celery:
    return make_app(redis_url)


def waiting(client: redis.Redis, queue: QueueName = "interactive") -> list[dict[str, object]]:
    """The queue's messages, the next one to be run first."""
    found = []
    for raw in reversed(client.lrange(QUEUES[queue], 0, -1)):
        message = json.loads(raw)
        args, _, _ = json.loads(base64.b64decode(message["body"]))
        assert message["content-type"] == "application/json"
        found.append({"task": message["headers"]["task"], "limit": message["headers"]["timelimit"], "args": args})
    return found


def test_a_message_names_a_run_and_its_trials_and_nothing_else(app: celery.Celery, client: redis.Redis) -> None:
    send_trials(app, "night-1", [(0, 1, 2), (3,)], time_limit_s=90)
    assert waiting(client) == [
        {"task": RUN_TRIALS, "limit": [90, None], "args": ["night-1", [0, 1, 2]]},
        {"task": RUN_TRIALS, "limit": [90, None], "args": ["night-1", [3]]},
    ]


def test_more_messages_than_a_batch_keep_their_order(app: celery.Celery, client: redis.Redis) -> None:
    send_trials(app, "night-1", ((index,) for index in range(1101)), time_limit_s=90)
    assert queue_depth(app) == 1101
    assert [message["args"] for message in waiting(client)] == [["night-1", [index]] for index in range(1101)]


def test_an_empty_queue_has_no_depth(app: celery.Celery) -> None:
    send_trials(app, "night-1", [], time_limit_s=90)
    assert queue_depth(app) == 0


def test_sending_leaves_no_trace_of_results(app: celery.Celery, client: redis.Redis) -> None:
    send_trials(app, "night-1", [(0,)], time_limit_s=90)
    assert client.keys("celery-task-meta-*") == []
    assert client.pubsub_channels() == []


def test_a_queue_out_of_reach_is_named_without_its_password(tmp_path: Path) -> None:
    app = make_app(f"unix://me:secret@{tmp_path}/none.sock")
    for act in (lambda: send_trials(app, "night-1", [(0,)], time_limit_s=90), lambda: queue_depth(app)):
        with pytest.raises(BrokerUnavailable) as raised:
            act()
        assert str(raised.value) == (
            f"cannot reach the queue at unix://{tmp_path}/none.sock: "
            f"Error 2 connecting to {tmp_path}/none.sock. No such file or directory.\n\n"
            "hint: is Redis running, and is EVALFARM_REDIS_URL right? Unset it to use the embedded server"
        )


def test_a_connection_that_breaks_in_the_middle_of_a_reply_is_told_as_one_that_cannot_be_made(tmp_path: Path) -> None:
    server = Broker(tmp_path)
    server.start()
    try:
        with proxy_to(server.port) as proxy:
            app = make_app(f"redis://127.0.0.1:{proxy.port}/0")
            assert queue_depth(app) == 0
            proxy.cut_next_reply(0)
            with pytest.raises(BrokerUnavailable, match=f"cannot reach the queue at redis://127.0.0.1:{proxy.port}/0"):
                queue_depth(app)
            assert queue_depth(app) == 0
    finally:
        server.stop()


def test_a_full_server_is_an_infrastructure_failure(app: celery.Celery, client: redis.Redis) -> None:
    client.config_set("maxmemory", "1")
    try:
        with pytest.raises(BrokerUnavailable, match=r"cannot reach the queue at unix:///.*used memory > 'maxmemory'"):
            send_trials(app, "night-1", [(0,)], time_limit_s=90)
    finally:
        client.config_set("maxmemory", "0")


@pytest.mark.parametrize(
    ("redis_url", "expected"),
    [
        ("redis://host:6380/2", "redis://host:6380/2"),
        ("redis://:p%40ss@host?db=3", "redis://:p%40ss@host/3"),
        ("rediss://me:pw@host/0", "rediss://me:pw@host/0?ssl_cert_reqs=required"),
        ("rediss://host/0?ssl_cert_reqs=none", "rediss://host/0?ssl_cert_reqs=none"),
        ("unix:///a%20b/redis.sock", "redis+socket:///a%20b/redis.sock?virtual_host=0"),
        ("unix://me:p%40@/a/redis.sock?db=4", "redis+socket://me:p%40@/a/redis.sock?virtual_host=4"),
        ("unix:///a/redis.sock?password=p@", "redis+socket://:p%40@/a/redis.sock?virtual_host=0"),
    ],
)
def test_a_redis_url_becomes_kombu_s(redis_url: str, expected: str) -> None:
    assert kombu_url(redis_url) == expected


def test_a_database_chosen_in_the_url_is_the_one_used(redis_url: str, client: redis.Redis) -> None:
    app = make_app(f"{redis_url}?db=5")
    send_trials(app, "night-1", [(0,)], time_limit_s=90)
    assert (queue_depth(app), client.llen(QUEUES["interactive"])) == (1, 0)


WORKER = """
import os
from evalfarm.broker import RUN_TRIALS, make_app
from evalfarm.runstate import connect

app = make_app(os.environ["URL"])

@app.task(name=RUN_TRIALS)
def run_trials(run, indices):
    client = connect(os.environ["URL"])
    waiting = client.llen("trials.interactive")
    client.rpush("seen", f"{run} {indices} unacked={client.zcard('unacked_index')} waiting={waiting}")
    client.blpop("go on")
"""


def seen_by_a_worker(client: redis.Redis, redis_url: str, folder: Path, messages: int) -> list[str]:
    """What a worker with one process says of each message as it takes it."""
    (folder / "farm.py").write_text(WORKER)
    path = os.pathsep.join([str(folder), str(Path(evalfarm.__file__).parents[1])])
    options = ["-c", "1", "--queues", ",".join(ALL_QUEUES), "--without-gossip", "--without-mingle"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "farm", "worker", *options],
        env={**os.environ, "URL": redis_url, "PYTHONPATH": path, "C_FORCE_ROOT": "1"},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    seen: list[str] = []
    try:
        for _ in range(messages):
            # Time and again: a reply may take ten seconds at most, and on a busy machine a worker longer to start.
            told = next(filter(None, (client.blpop(["seen"], timeout=9) for _ in range(10))))
            seen.append(told[1].decode())
            client.rpush("go on", "1")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=20)
    return seen


@pytest.mark.slow
def test_a_worker_takes_one_message_at_a_time_and_acknowledges_it_before_it_runs(
    app: celery.Celery, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    send_trials(app, "night-1", [(0, 1), (2,), (3,)], time_limit_s=90)
    assert seen_by_a_worker(client, redis_url, tmp_path, 3) == [
        "night-1 [0, 1] unacked=0 waiting=2",
        "night-1 [2] unacked=0 waiting=1",
        "night-1 [3] unacked=0 waiting=0",
    ]


@pytest.mark.slow
def test_a_worker_takes_interactive_trials_before_nightly_ones(
    app: celery.Celery, client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    send_trials(app, "night-1", [(0,), (1,)], time_limit_s=90, queue="nightly")
    send_trials(app, "day-1", [(0,), (1,), (2,)], time_limit_s=90)
    assert [told.partition(" unacked")[0] for told in seen_by_a_worker(client, redis_url, tmp_path, 5)] == [
        "day-1 [0]",
        "day-1 [1]",
        "day-1 [2]",
        "night-1 [0]",
        "night-1 [1]",
    ]
