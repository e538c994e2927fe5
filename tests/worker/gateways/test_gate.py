"""The model gateway under the farm's limits, on a real Redis."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from evalfarm.runstate import Limits, ModelLimits, Throttle, connect
from worker.gateways.gate import OUTPUT_TOKENS, Gate, estimated_tokens
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.upstreams import Upstream

pytestmark = pytest.mark.anyio

MODEL = "gpt-x"
ASKED = json.dumps({"model": MODEL, "input": "What is x?"}).encode()
STREAMED = json.dumps({"model": MODEL, "input": "What is x?", "stream": True}).encode()
CTL = "f:m:gpt-x:ctl"


@pytest.fixture
def whole(said: Any, response: Callable[..., dict[str, Any]]) -> Any:
    return said(body=json.dumps(response()).encode())


@pytest.fixture
def stream(said: Any, response: Callable[..., dict[str, Any]]) -> Any:
    event = {"type": "response.completed", "response": response()}
    return said(body=f"data: {json.dumps(event)}\n\n".encode(), headers={"content-type": "text/event-stream"})


def gated(upstream: Upstream, client: redis.Redis, **limits: float) -> Upstream:
    throttle = Throttle(client, Limits(models={MODEL: ModelLimits.model_validate(limits)}))
    return replace(upstream, gate=Gate(MODEL, throttle))


def gateway(upstream: Upstream, **more: Any) -> ModelGateway:
    return ModelGateway(upstream, seed=7, started=time.monotonic(), first_wait_s=0.001, **more)


async def forward(model: ModelGateway, body: bytes = ASKED) -> tuple[int, bytes]:
    reply = await model.forward("/responses", {}, body)
    return reply.status, b"".join([chunk async for chunk in reply.body])


async def test_what_a_limit_holds_back_waits_outside_the_models_latency(
    providing: Any, whole: Any, client: redis.Redis
) -> None:
    waits: list[float] = []
    async with providing(whole) as (upstream, provider):
        model = gateway(gated(upstream, client, requests_per_minute=30), on_wait=waits.append)
        for _ in range(5):  # 4 at once
            await forward(model)
    last = model.requests[-1]
    assert len(provider.asked) == 5
    assert [request.waited_s < 1 for request in model.requests[:4]] == [True] * 4
    assert len(waits) == 1
    assert waits[0] <= last.waited_s
    assert (0 < waits[0] <= 2.23, last.latency_s < 1) == (True, True)


async def test_a_request_that_would_wait_too_long_ends_the_attempt_as_an_outage_and_is_not_sent(
    providing: Any, whole: Any, client: redis.Redis
) -> None:
    async with providing(whole) as (upstream, provider):
        model = gateway(gated(upstream, client, requests_per_minute=0.05))
        assert (await forward(model))[0] == 200
        status, told = await forward(model)
    held = "the limits of gpt-x hold a request back for 1200 s, after 0 s of waiting"
    message = f"{held}; an attempt waits 600 s in all at most"
    assert (status, json.loads(told)["error"]["message"], model.outage) == (400, message, message)
    assert (len(provider.asked), len(model.requests)) == (1, 1)


async def test_a_429_pauses_the_model_for_everyone_and_its_own_tries_wait_as_long(
    providing: Any, whole: Any, said: Any, client: redis.Redis
) -> None:
    waits: list[float] = []
    async with providing(said(429, headers={"retry-after": "1"}), whole) as (upstream, _):
        capped = gated(upstream, client, concurrency=8)
        model = gateway(capped, on_wait=waits.append)
        assert (await forward(model))[0] == 200
    assert client.hget(CTL, "cap") == b"4"
    assert (1.0 <= sum(waits) < 1.3, model.requests[0].waited_s >= 1.0, model.requests[0].tries) == (
        True,
        True,
        ("HTTP 429",),
    )


async def test_while_a_model_is_paused_requests_of_others_wait_too(
    providing: Any, whole: Any, client: redis.Redis
) -> None:
    waits: list[float] = []
    async with providing(whole) as (upstream, _):
        paused = gated(upstream, client)
        assert paused.gate.throttle is not None
        paused.gate.throttle.pause(MODEL, None)
        assert (await forward(gateway(paused, on_wait=waits.append)))[0] == 200
    assert 0 < sum(waits) <= 1.01


class PausedMeanwhile(Throttle):
    """Has the first request wait for a moment, in which the model is paused."""

    booked = 0

    def book(self, model: str, tokens: int, longest_s: float) -> float:
        wait_s = super().book(model, tokens, longest_s)
        self.booked += 1
        if self.booked > 1:
            return wait_s
        self.pause(model, 60)
        return 0.01


async def test_a_request_whose_place_passed_in_a_pause_takes_another_one_after_it(
    providing: Any, whole: Any, client: redis.Redis
) -> None:
    known = Limits(models={MODEL: ModelLimits(requests_per_minute=600, tokens_per_minute=1e9)})
    waits: list[float] = []
    waits_again = asyncio.Event()

    def note(wait_s: float) -> None:
        waits.append(wait_s)
        if len(waits) == 2:
            waits_again.set()

    async with providing(whole) as (upstream, provider):
        gate = Gate(MODEL, PausedMeanwhile(client, known))
        asking = asyncio.create_task(forward(gateway(replace(upstream, gate=gate), on_wait=note)))
        await waits_again.wait()
        asking.cancel()
        await asyncio.wait((asking,))
    paused, requests, tokens = (float(told or 0) for told in client.hmget(CTL, ["paused", "requests", "tokens"]))
    assert (requests > paused, provider.asked) == (True, [])
    assert tokens - paused == pytest.approx(estimated_tokens(ASKED) * 60_000 / 9e8, abs=0.01)


async def test_a_pause_of_an_hour_is_an_outage_of_this_attempt(providing: Any, said: Any, client: redis.Redis) -> None:
    async with providing(said(429, b"later", {"retry-after": "3600"})) as (upstream, provider):
        limited = gated(upstream, client)
        first, second = gateway(limited), gateway(limited)
        assert (await forward(first))[0] == 429
        assert (await forward(second))[0] == 400
    assert (len(provider.asked), first.outage) == (1, "the model's provider stayed unusable: HTTP 429")
    assert str(second.outage).startswith("the limits of gpt-x hold a request back for 900 s, after 0 s of waiting")


async def test_a_wait_that_is_cut_off_counts_as_waiting(providing: Any, whole: Any, client: redis.Redis) -> None:
    waiting = asyncio.Event()
    async with providing(whole) as (upstream, _):
        paused = gated(upstream, client)
        assert paused.gate.throttle is not None
        paused.gate.throttle.pause(MODEL, 60)
        model = gateway(paused, on_wait=lambda _: waiting.set())
        asking = asyncio.create_task(forward(model))
        await waiting.wait()
        asking.cancel()
        await asyncio.wait((asking,))
    (request,) = model.requests
    assert (request.status, request.error) == (None, "the attempt ended before an answer came")
    assert request.waited_s > 0


@pytest.mark.parametrize("body", [ASKED, STREAMED])
async def test_the_tokens_that_an_answer_took_take_the_place_of_the_estimate(
    providing: Any, whole: Any, stream: Any, client: redis.Redis, body: bytes
) -> None:
    async with providing(whole if body == ASKED else stream) as (upstream, _):
        limited = gated(upstream, client, tokens_per_minute=100_000)
        await forward(gateway(limited), body)
    seconds, micros = client.time()
    at = client.hget(CTL, "tokens")
    assert at is not None
    taken = (float(at) - seconds * 1000 - micros / 1000) / (60_000 / 90_000)
    assert estimated_tokens(body) > OUTPUT_TOKENS
    assert taken <= 120  # as USAGE says: 100 in and 20 out, less what the pace has worn off since


async def test_a_refused_request_takes_no_tokens(providing: Any, said: Any, client: redis.Redis) -> None:
    async with providing(said(400, b"{}")) as (upstream, _):
        await forward(gateway(gated(upstream, client, tokens_per_minute=100_000)))
    seconds, micros = client.time()
    at = client.hget(CTL, "tokens")
    assert at is not None
    assert float(at) <= seconds * 1000 + micros / 1000


class Slow(Throttle):
    """Takes its time to take a correction in."""

    def __init__(self, client: redis.Redis, limits: Limits) -> None:
        super().__init__(client, limits)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def correct(self, model: str, tokens: int) -> None:
        self.begun.set()
        self.go_on.wait(20)


@pytest.mark.parametrize("status", [200, 400, 500])
async def test_a_request_that_is_cut_off_while_its_tokens_are_corrected_is_recorded_once_and_let_go(
    providing: Any, said: Any, whole: Any, client: redis.Redis, eventually: Any, status: int
) -> None:
    slow = Slow(client, Limits(models={MODEL: ModelLimits(tokens_per_minute=100_000)}))
    async with providing(whole if status == 200 else said(status, b"{}")) as (upstream, _):
        model = gateway(replace(upstream, gate=Gate(MODEL, slow)))
        asking = asyncio.create_task(forward(model))
        await eventually(slow.begun.is_set)
        connections = len(upstream.carrier._idle)
        asking.cancel()
        slow.go_on.set()
        await asyncio.wait((asking,))
    told = {200: (200, None), 400: (400, None), 500: (None, "the attempt ended before an answer came")}[status]
    assert [(request.status, request.error) for request in model.requests] == [told]
    assert (asking.cancelled(), connections) == (True, 1)


async def test_out_of_reach_of_redis_requests_pass(
    providing: Any, whole: Any, said: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(f"unix://{tmp_path}/nobody.sock") as nobody:
        async with providing(said(429, headers={"retry-after": "0"}), whole) as (upstream, _):
            model = gateway(gated(upstream, nobody, requests_per_minute=1, tokens_per_minute=1))
            assert (await forward(model))[0] == 200
    assert "cannot ask for the limits of gpt-x; going on" in caplog.text
    assert "cannot tell the farm that gpt-x is limited" in caplog.text
