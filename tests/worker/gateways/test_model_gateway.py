import asyncio
import json
import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
import zstandard

from evalfarm.contracts.run import ModelRequest
from worker.gateways.line import Lines
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.reply import Reply
from worker.gateways.serving import loopback, serving
from worker.gateways.tries import MAX_TRIES
from worker.gateways.upstreams import SEED_HEADER, Upstream

pytestmark = pytest.mark.anyio

KEY = "sk-planted-for-this-very-test"
ASKED = json.dumps({"model": "gpt-x", "input": "What is x?"}).encode()
STREAMED = json.dumps({"model": "gpt-x", "input": "What is x?", "stream": True}).encode()
NOW = {"retry-after": "0"}
FIGURES: dict[str, Any] = {
    "response_id": "resp_1",
    "model": "gpt-x-2026-01-01",
    "input_tokens": 100,
    "cached_tokens": 40,
    "output_tokens": 20,
    "reasoning_tokens": 5,
}
TIMES = {"started_s", "latency_s", "waited_s"}


@pytest.fixture
def whole(said: Any, response: Callable[..., dict[str, Any]]) -> Any:
    """A response without any output."""
    return said(body=json.dumps(response()).encode(), headers={"content-type": "application/json"})


@pytest.fixture
def stream(said: Any, response: Callable[..., dict[str, Any]]) -> Any:
    """The same as server-sent events."""
    events: list[dict[str, Any]] = [
        {"type": "response.created"},
        {"type": "response.completed", "response": response()},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return said(body=body.encode(), headers={"content-type": "text/event-stream"})


def gateway(upstream: Upstream, **more: Any) -> ModelGateway:
    return ModelGateway(upstream, seed=7, started=time.monotonic(), first_wait_s=0.001, **more)


async def forward(
    model: ModelGateway, body: bytes = ASKED, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    reply: Reply = await model.forward("/responses", headers or {}, body)
    return reply.status, dict(reply.headers), b"".join([chunk async for chunk in reply.body])


def untimed(request: ModelRequest) -> dict[str, Any]:
    """A record without its times, which must be times."""
    assert all(0 <= time_s < 5 for time_s in (request.started_s, request.latency_s, request.waited_s))
    return request.model_dump(exclude=TIMES)


def record(status: int | None, error: str | None = None, tries: tuple[str, ...] = (), **figures: Any) -> dict[str, Any]:
    told = ModelRequest(started_s=0, latency_s=0, status=status, error=error, tries=tries, **figures)
    return told.model_dump(exclude=TIMES)


async def test_a_response_is_passed_on_as_it_came_and_recorded(providing: Any, whole: Any) -> None:
    async with providing(whole, key=KEY) as (upstream, provider):
        model = gateway(upstream)
        assert await forward(model, headers={"x-client": "codex"}) == (200, dict(whole.headers), whole.body)
    assert [(asked.path, asked.body, asked.headers["x-client"]) for asked in provider.asked] == [
        ("/v1/responses", ASKED, "codex")
    ]
    assert [untimed(request) for request in model.requests] == [record(200, **FIGURES)]
    assert (model.requests[0].waited_s, model.outage, model.unseen) == (0.0, None, ())


async def test_the_key_is_the_workers_whatever_the_harness_sends_and_stands_in_no_record(
    providing: Any, whole: Any, said: Any
) -> None:
    own = {"Authorization": "Bearer of-the-harness", "Proxy-Authorization": "x", SEED_HEADER: "99", "Host": "elsewhere"}
    async with providing(whole, said(401, b"{}"), key=KEY) as (upstream, provider):
        model = gateway(upstream)
        told = [await forward(model, headers=own), await forward(model, headers=own)]
    for asked in provider.asked:
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["host"].startswith("127.0.0.1:")
        assert {"proxy-authorization", SEED_HEADER}.isdisjoint(asked.headers)
    assert KEY not in repr((told, model.requests, model.outage))


async def test_only_a_simulated_model_is_told_the_trials_seed(providing: Any, whole: Any) -> None:
    async with providing(whole, simulated=True) as (upstream, provider):
        await forward(gateway(upstream))
    assert (provider.asked[0].headers[SEED_HEADER], "authorization" in provider.asked[0].headers) == ("7", False)


async def test_the_providers_bytes_are_asked_for_uncompressed(providing: Any, whole: Any) -> None:
    async with providing(whole) as (upstream, provider):
        await forward(gateway(upstream), headers={"Accept-Encoding": "gzip"})
    assert provider.asked[0].headers["accept-encoding"] == "identity"


async def test_a_compressed_request_is_forwarded_plain(providing: Any, whole: Any) -> None:
    async with providing(whole) as (upstream, provider):
        await forward(gateway(upstream), zstandard.compress(ASKED), {"content-encoding": "zstd"})
    assert (provider.asked[0].body, "content-encoding" in provider.asked[0].headers) == (ASKED, False)


@pytest.mark.parametrize(
    ("body", "headers", "problem"),
    [
        (b"[]", {}, "it is no JSON object"),
        (b"{}", {"content-encoding": "br"}, "content-encoding 'br' is not supported"),
    ],
)
async def test_a_request_that_cannot_be_read_is_refused_and_not_forwarded(
    providing: Any, whole: Any, body: bytes, headers: dict[str, str], problem: str
) -> None:
    async with providing(whole) as (upstream, provider):
        model = gateway(upstream)
        status, _, told = await forward(model, body, headers)
    message = f"the gateway cannot read the request: {problem}"
    error = {"message": message, "type": "gateway_error", "code": None, "param": None}
    assert (status, json.loads(told), provider.asked, model.requests) == (400, {"error": error}, [], [])


async def test_a_rate_limit_is_waited_out_and_its_time_is_kept_apart(providing: Any, whole: Any, said: Any) -> None:
    waits: list[float] = []
    limited = [said(429, headers={"retry-after-ms": "60"}), said(429, headers=NOW)]
    async with providing(*limited, whole) as (upstream, provider):
        model = gateway(upstream, on_wait=waits.append)
        started = time.monotonic()
        status, _, _ = await forward(model)
        took_s = time.monotonic() - started
    assert (status, len(provider.asked), waits) == (200, 3, [0.06, 0.0])
    assert [untimed(request) for request in model.requests] == [record(200, None, ("HTTP 429", "HTTP 429"), **FIGURES)]
    assert 0.06 <= model.requests[0].waited_s <= took_s - model.requests[0].latency_s
    assert model.outage is None


@pytest.mark.parametrize("wish", ["121", "86400"])
async def test_a_wish_to_be_left_alone_for_longer_than_an_attempt_tries_is_an_outage_at_once(
    providing: Any, said: Any, wish: str
) -> None:
    waits: list[float] = []
    async with providing(said(429, b"later", {"retry-after": wish})) as (upstream, provider):
        model = gateway(upstream, on_wait=waits.append)
        assert await forward(model) == (429, {"retry-after": wish}, b"later")
    assert (waits, len(provider.asked)) == ([], 1)
    assert model.outage == "the model's provider stayed unusable: HTTP 429"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_a_provider_that_stays_down_is_an_outage_after_a_bounded_number_of_tries(
    providing: Any, said: Any, status: int
) -> None:
    async with providing(said(status, b"down", NOW)) as (upstream, provider):
        model = gateway(upstream)
        assert await forward(model) == (status, NOW, b"down")
    tries = (f"HTTP {status}",) * MAX_TRIES
    assert len(provider.asked) == MAX_TRIES
    assert [untimed(request) for request in model.requests] == [record(status, tries[-1], tries[:-1])]
    assert model.outage == f"the model's provider stayed unusable: {'; '.join(tries)}"


async def test_without_a_word_from_the_provider_each_wait_is_longer_than_the_last(providing: Any, said: Any) -> None:
    waits: list[float] = []
    async with providing(said(500)) as (upstream, _):
        await forward(gateway(upstream, on_wait=waits.append))
    assert len(waits) == MAX_TRIES - 1
    assert all(0.001 * 2**at <= wait <= 0.001 * (2**at + 1) for at, wait in enumerate(waits))


async def test_a_provider_that_cannot_be_reached_is_an_outage(providing: Any, whole: Any) -> None:
    async with providing(whole) as (upstream, _):
        base = upstream.carrier.base
    model = gateway(Upstream(Lines(base, 5.0, 5.0), {}, False))
    status, _, told = await forward(model)  # nobody listens there any more
    failed = f"ConnectError: [Errno 111] Connect call failed ('127.0.0.1', {base.port})"
    assert (status, json.loads(told)["error"]["message"]) == (502, failed)
    assert [untimed(request) for request in model.requests] == [record(None, failed, (failed,) * (MAX_TRIES - 1))]
    assert model.outage == f"the model's provider stayed unusable: {'; '.join([failed] * MAX_TRIES)}"


async def test_an_answer_that_is_cut_short_is_asked_for_again(providing: Any, whole: Any, said: Any) -> None:
    async with providing(said(body=whole.body, headers=whole.headers, cut=True), whole) as (upstream, provider):
        model = gateway(upstream)
        assert await forward(model) == (200, dict(whole.headers), whole.body)
    cut = "the answer was cut short: RemoteProtocolError"
    assert len(provider.asked) == 2
    assert [untimed(request) for request in model.requests] == [record(200, None, (cut,), **FIGURES)]


@pytest.mark.parametrize(
    ("status", "outage"),
    [
        (401, "the key was refused (HTTP 401)"),
        (403, "the key may not use this model (HTTP 403)"),
        (404, "the provider knows no such model (HTTP 404)"),
        (400, None),
        (422, None),
    ],
)
@pytest.mark.parametrize("body", [ASKED, STREAMED], ids=["whole", "streamed"])
async def test_a_refusal_is_passed_on_at_once_and_is_an_outage_only_where_no_request_could_do_better(
    providing: Any, said: Any, status: int, outage: str | None, body: bytes
) -> None:
    refused = said(status, b'{"error": {"message": "no"}}')
    async with providing(refused) as (upstream, provider):
        model = gateway(upstream)
        assert await forward(model, body) == (status, {}, refused.body)
    assert len(provider.asked) == 1
    assert [untimed(request) for request in model.requests] == [record(status, "no")]
    assert model.outage == outage


async def test_after_an_outage_nothing_is_forwarded_any_more(providing: Any, whole: Any, said: Any) -> None:
    async with providing(said(401), whole) as (upstream, provider):
        model = gateway(upstream)
        statuses = [(await forward(model))[0] for _ in range(3)]
    assert (statuses, len(provider.asked), len(model.requests)) == ([401, 400, 400], 1, 1)


async def test_a_stream_is_passed_on_as_it_comes_and_recorded_at_its_end(providing: Any, stream: Any) -> None:
    async with providing(stream) as (upstream, _):
        model = gateway(upstream)
        reply = await model.forward("/responses", {}, STREAMED)
        assert model.requests == []
        assert b"".join([chunk async for chunk in reply.body]) == stream.body
    assert [untimed(request) for request in model.requests] == [record(200, **FIGURES)]


async def test_a_stream_that_stops_short_is_recorded_as_an_error(providing: Any, stream: Any, said: Any) -> None:
    async with providing(said(body=stream.body[:60])) as (upstream, provider):
        model = gateway(upstream)
        assert (await forward(model, STREAMED))[2] == stream.body[:60]
    told = "the stream ended before the response was complete"
    assert len(provider.asked) == 1
    assert [untimed(request) for request in model.requests] == [record(200, told)]


async def through(model: ModelGateway, use: Callable[[httpx2.AsyncClient], Any]) -> Any:
    """What `use` makes of the gateway's face for a cell, over HTTP."""
    listener = loopback()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(model.app(), listener), httpx2.AsyncClient(base_url=base, trust_env=False) as client:
        return await use(client)


async def test_a_stream_that_is_cut_half_way_is_cut_for_the_harness_too(providing: Any, stream: Any, said: Any) -> None:
    got = bytearray()

    async def listen(client: httpx2.AsyncClient) -> None:
        async with client.stream("POST", "/v1/responses", content=STREAMED) as response:
            async for chunk in response.aiter_bytes():
                got.extend(chunk)

    async with providing(said(body=stream.body, cut=True)) as (upstream, _):
        model = gateway(upstream)
        with pytest.raises(httpx2.RemoteProtocolError):
            await through(model, listen)
    assert bytes(got) == stream.body[: len(stream.body) // 2]
    told = "the stream was cut: RemoteProtocolError"
    assert [untimed(request) for request in model.requests] == [record(200, told)]
    assert model.outage is None


async def test_the_face_for_a_cell_streams_what_the_provider_streams(providing: Any, stream: Any) -> None:
    async with providing(stream) as (upstream, _):
        model = gateway(upstream)
        response = await through(model, lambda client: client.post("/v1/responses", content=STREAMED))
    assert (response.status_code, response.headers["content-type"], response.content) == (
        *(200, "text/event-stream", stream.body),
    )
    assert [untimed(request) for request in model.requests] == [record(200, **FIGURES)]


async def test_a_websocket_handshake_is_refused_in_the_way_that_makes_codex_use_https_at_once(
    providing: Any, whole: Any
) -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    async with providing(whole) as (upstream, provider):
        response = await through(gateway(upstream), lambda client: client.get("/v1/responses", headers=headers))
    assert (response.status_code, response.json()["error"]["message"], provider.asked) == (
        *(426, "this gateway speaks HTTPS, not WebSockets", []),
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses"),
        ("GET", "/"),
        ("POST", "/v1/files"),
        ("POST", "/v1/responses-of-others"),
        ("POST", "/v1/responses/%2e%2e/files"),
        ("POST", "/v1/responses/%252e%252e/files"),
    ],
)
async def test_anything_but_a_request_for_a_response_is_not_found(
    providing: Any, whole: Any, method: str, path: str
) -> None:
    async with providing(whole) as (upstream, provider):
        response = await through(gateway(upstream), lambda client: client.request(method, path))
    message = f"the gateway forwards POST /v1/responses only, not {method} {unquote(path)}"
    assert (response.status_code, response.json()["error"]["message"], provider.asked) == (404, message, [])


@pytest.mark.parametrize(
    ("body", "recorded"),
    [
        (ASKED, (None, "the attempt ended before an answer came")),
        (STREAMED, (200, "the stream ended before the response was complete")),
    ],
    ids=["whole", "streamed"],
)
async def test_a_request_that_the_end_of_the_attempt_cuts_off_is_recorded(
    providing: Any, said: Any, body: bytes, recorded: tuple[int | None, str]
) -> None:
    async with providing(said(body=b"data: {}\n\n", held=True)) as (upstream, provider):
        model = gateway(upstream)
        answering = asyncio.Event()

        async def listen(client: httpx2.AsyncClient) -> None:
            async with client.stream("POST", "/v1/responses", content=body) as response:
                answering.set()
                await response.aread()

        async def leave(client: httpx2.AsyncClient) -> None:
            listening = asyncio.create_task(listen(client))
            await (provider.was_asked if body == ASKED else answering).wait()
            listening.cancel()
            await asyncio.wait((listening,))

        await through(model, leave)
    assert [untimed(request) for request in model.requests] == [record(*recorded)]


async def test_a_wait_that_the_end_of_the_attempt_cuts_off_counts_as_waiting(providing: Any, said: Any) -> None:
    async with providing(said(429, headers={"retry-after": "30"})) as (upstream, _):
        resting = asyncio.Event()
        model = gateway(upstream, on_wait=lambda _: resting.set())
        asking = asyncio.create_task(forward(model))
        await resting.wait()
        begun = time.monotonic()
        asking.cancel()
        await asyncio.wait((asking,))
    (request,) = model.requests
    assert untimed(request) == record(None, "the attempt ended before an answer came", ("HTTP 429",))
    assert math.isclose(request.latency_s, 0, abs_tol=time.monotonic() - begun)


MUST_SHOW = {"look": ('"name": "look"', "mcp__Shop__look"), "buy": ('"name": "buy"', "mcp__Shop__buy")}


def showing(*tools: str) -> bytes:
    return json.dumps({"model": "x", "input": "buy it", "tools": [{"name": tool} for tool in tools]}).encode()


async def test_a_first_request_that_hides_a_tool_is_refused_and_nothing_is_forwarded(
    providing: Any, whole: Any
) -> None:
    async with providing(whole) as (upstream, provider):
        model = gateway(upstream, must_show=MUST_SHOW)
        status, _, told = await forward(model, showing("look", "exec_command"))
        assert (await forward(model, showing()))[0] == 400
    message = "the model was not shown the plugin's tools: buy"
    assert (status, json.loads(told)["error"]["message"]) == (400, message)
    assert (model.unseen, provider.asked, model.requests) == (("look", "buy"), [], [])


async def test_once_the_tools_were_shown_later_requests_may_do_without(providing: Any, whole: Any) -> None:
    async with providing(whole) as (upstream, provider):
        model = gateway(upstream, must_show=MUST_SHOW)
        statuses = [(await forward(model, body))[0] for body in (showing("buy", "look"), showing())]
    assert (statuses, len(provider.asked), model.unseen) == ([200, 200], 2, ())


async def test_a_side_call_is_recorded_as_one_with_what_was_written_to_the_cache(
    providing: Any, said: Any, response: Callable[..., dict[str, Any]]
) -> None:
    usage = {**response()["usage"], "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7}}
    answer = said(body=json.dumps(response(usage=usage)).encode(), headers={"content-type": "application/json"})
    kinds = [{"x-codex-turn-metadata": json.dumps({"request_kind": kind})} for kind in ("turn", "compaction")]
    async with providing(answer) as (upstream, _):
        model, listener = gateway(upstream), loopback()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with serving(model.app(), listener), httpx2.AsyncClient(base_url=base, trust_env=False) as client:
            for headers in kinds:
                assert (await client.post("/responses", content=ASKED, headers=headers)).content == answer.body
    told = FIGURES | {"cached_write_tokens": 7}
    assert [untimed(request) for request in model.requests] == [record(200, **told), record(200, side=True, **told)]


async def test_our_own_loop_reaches_the_provider_through_the_same_core(providing: Any, whole: Any) -> None:
    async with providing(whole, key=KEY) as (upstream, provider):
        model = gateway(upstream)
        async with httpx2.AsyncClient(transport=model.transport()) as client:
            response = await client.post("http://gateway/v1/responses", content=ASKED)
    assert (response.status_code, response.content) == (200, whole.body)
    assert [(asked.path, asked.headers["authorization"]) for asked in provider.asked] == [
        ("/v1/responses", f"Bearer {KEY}")
    ]
    assert [untimed(request) for request in model.requests] == [record(200, **FIGURES)]
