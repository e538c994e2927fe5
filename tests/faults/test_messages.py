"""What may happen to a message on its way. It is a hint: a trial is never more or less than one for it."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from evalfarm.broker import QUEUES
from evalfarm.runstate import beat, connect
from tests.faults.farm import DISPATCH_S, Farm, plan_of
from tests.faults.invariants import hold
from tests.faults.machine import until

pytestmark = [pytest.mark.slow, pytest.mark.faults]

QUEUE = QUEUES["interactive"]


def published(farm: Farm) -> list[bytes]:
    """Have the feeder fill the queue for a worker that does not exist; the messages, the next one last."""
    tender = farm.tend()
    with connect(farm.broker.url) as client:
        beat(client, "nobody", 4, 1.0)
        until(lambda: client.llen(QUEUE) > 0, "that messages wait")
        until(lambda: not client.exists("f:w:nobody"), "that its beat is over")
        tender.stop()
        return [bytes(message) for message in client.lrange(QUEUE, 0, -1)]


def replaced(farm: Farm, messages: list[bytes]) -> None:
    with connect(farm.broker.url) as client, client.pipeline() as pipe:
        pipe.delete(QUEUE)
        if messages:
            pipe.rpush(QUEUE, *messages)
        pipe.execute()


def drained(client: redis.Redis) -> bool:
    return not client.exists(QUEUE)


def forged(message: bytes, *, args: Any = None, **changes: Any) -> bytes:
    """A message like a real one but for these parts: `task`, `body`, `content_type`, or the arguments."""
    envelope = json.loads(message)
    if args is not None:
        changes["body"] = base64.b64encode(json.dumps([args, {}, {}]).encode()).decode()
    if "task" in changes:
        envelope["headers"]["task"] = changes["task"]
    envelope["body"] = changes.get("body", envelope["body"])
    envelope["content-type"] = changes.get("content_type", envelope["content-type"])
    return json.dumps(envelope).encode()


FATES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "dropped": lambda _messages: [],
    "tripled": lambda messages: [*messages, *messages, *messages],
    "turned round": lambda messages: messages[::-1],
    "half of them dropped, the others doubled": lambda messages: messages[::2] * 2,
}


@pytest.mark.parametrize("fate", FATES)
def test_messages_that_were_tampered_with_cost_no_attempt(start_farm: Callable[..., Farm], fate: str) -> None:
    farm = start_farm()
    messages = published(farm)
    replaced(farm, FATES[fate](messages))
    for _ in range(2):
        farm.work()
    farm.tend()
    assert hold(farm).started == [1] * farm.plan.size


def test_messages_that_wait_for_longer_than_a_hand_out_lasts_are_not_sent_again(
    start_farm: Callable[..., Farm],
) -> None:
    farm = start_farm(plan_of(20))
    messages = published(farm)
    farm.tend()
    with connect(farm.broker.url) as client:
        beat(client, "nobody", 4, 60.0)
        began = time.monotonic()
        until(lambda: time.monotonic() - began > 4 * DISPATCH_S, "that four times as long has passed")
        assert client.llen(QUEUE) == len(messages)
        assert farm.progress().redispatched == 0
        client.delete("f:w:nobody")
    for _ in range(2):
        farm.work()
    assert hold(farm).started == [1] * farm.plan.size


def test_messages_that_come_when_all_is_over_start_nothing(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    late = published(farm)
    replaced(farm, [])
    worker = farm.work()
    farm.tend()
    farm.sealed()
    charges = len(farm.provider.charges)
    replaced(farm, late)
    with connect(farm.broker.url) as client:
        until(lambda: drained(client), "that the late messages are taken")
    books = hold(farm)
    assert books.started == [1] * farm.plan.size
    assert len(books.charges) == charges
    assert worker.process.returncode == 0


GARBAGE: dict[str, Callable[[bytes], bytes]] = {
    "bytes that are no text": lambda _: b"\xff\x00\xfe",
    "text that is no JSON": lambda _: b"not a message",
    "an empty object": lambda _: b"{}",
    "a list": lambda _: b"[1]",
    "a body that is no base64": lambda real: forged(real, body="%%%"),
    "a body that is no JSON": lambda real: forged(real, body=base64.b64encode(b"{{{").decode()),
    "a pickle": lambda real: forged(real, body="gASVBQAAAAAAAABLAS4=", content_type="application/x-python-serialize"),
    "an unknown task": lambda real: forged(real, task="os.system", args=["true"]),
    "no arguments": lambda real: forged(real, args=[]),
    "too many arguments": lambda real: forged(real, args=["faults-1", [0], "more"]),
    "a run that is a path": lambda real: forged(real, args=["../../etc/passwd", [0]]),
    "a run that is none": lambda real: forged(real, args=["another-run", [0, 1]]),
    "trials that are none": lambda real: forged(real, args=["faults-1", [-1, 99, 10**12]]),
    "trials that are no numbers": lambda real: forged(real, args=["faults-1", ["0", None, {"a": 1}, [0]]]),
    "trials that are no list": lambda real: forged(real, args=["faults-1", {"0": 1}]),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_dropped_and_the_worker_goes_on(start_farm: Callable[..., Farm], kind: str) -> None:
    farm = start_farm()
    messages = published(farm)
    replaced(farm, [*messages, GARBAGE[kind](messages[-1])])
    worker = farm.work()
    farm.tend()
    farm.sealed()
    assert worker.process.poll() is None
    assert hold(farm).started == [1] * farm.plan.size
