import asyncio
import json
import random
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import codex_cli_bin
import httpx2
import openai
import pytest
import zstandard
from openai import AsyncOpenAI
from openai.types.responses import Response
from openai_codex import ApprovalMode, AsyncCodex, CodexConfig
from openai_codex.generated.v2_all import AgentMessageThreadItem, ItemCompletedNotification, McpToolCallThreadItem

from cases.policies import (
    SIMULATED_MODELS,
    Answer,
    Call,
    Calls,
    Fault,
    Flaky,
    Move,
    Policy,
    Seen,
    SeenResult,
    SeenTurn,
    load_base,
    simulated_policy,
    slip_chance,
)
from evalfarm.contracts.suite import Simulation
from worker.gateways.serving import loopback, serving
from worker.simulated_model import SEED_HEADER, simulated_app
from worker.simulated_model.app import turn_draw
from worker.simulated_model.request import parse

SUITES = Path(__file__).parents[2] / "cases/suites"
LOOK: dict[str, Any] = {"type": "function", "name": "look", "description": "", "parameters": {}, "strict": False}


class Looker:
    """Looks the question up, then repeats what it found; keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Seen] = []

    def move(self, seen: Seen, draw: random.Random) -> Move:
        self.shown.append(seen)
        if found := seen.turn.results_of("look"):
            return Answer(f"I found {found[-1].output}, which is all there is.", reasoning_tokens=5)
        return Calls((Call("look", {"at": seen.turn.question}), Call("look", "{not json")), reasoning_tokens=7)


class Fixed:
    """Makes one move, always; counts nothing."""

    def __init__(self, move: Move) -> None:
        self._move = move

    def move(self, seen: Seen, draw: random.Random) -> Move:
        return self._move


class FailsFirst:
    """Fails on the first two tries of any request."""

    def move(self, seen: Seen, draw: random.Random) -> Move:
        return Fault(503) if seen.tries < 2 else Answer(f"after {seen.tries} failures")


@asynccontextmanager
async def served(policies: Mapping[str, Policy]) -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client of a real server on a loopback port."""
    listener = loopback()
    at = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    async with (
        serving(simulated_app(policies, clock=lambda: 12.0, instance="one"), listener),
        httpx2.AsyncClient(base_url=at, trust_env=False) as client,
    ):
        yield client


T = TypeVar("T")


def through_sdk(policy: Policy, use: Callable[[AsyncOpenAI], Awaitable[T]]) -> T:
    """What `use` makes of the openai SDK against the policy, under the model name `sim-test`."""

    async def run() -> T:
        async with served({"sim-test": policy}) as http:
            return await use(AsyncOpenAI(api_key="none", base_url=str(http.base_url), http_client=http, max_retries=0))

    return asyncio.run(run())


async def ask(client: AsyncOpenAI, given: Any = "What is x?", seed: int = 0, **more: Any) -> Response:
    more = {"model": "sim-test", "tools": [LOOK], **more}
    response = await client.responses.create(input=given, store=False, extra_headers={SEED_HEADER: str(seed)}, **more)
    assert isinstance(response, Response)
    return response


def raw(send: Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]) -> httpx2.Response:
    async def run() -> httpx2.Response:
        async with served({"sim-test": Looker()}) as client:
            return await send(client)

    return asyncio.run(run())


def test_a_whole_response_is_what_the_sdk_expects() -> None:
    response = through_sdk(Looker(), ask)
    assert response.to_dict() == {
        "id": "resp_0_one_1",
        "object": "response",
        "created_at": 12.0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {"simulated": "true"},
        "model": "sim-test",
        "output": [
            {
                "type": "function_call",
                "id": f"fc_0_one_1_{at}",
                "call_id": f"call_0_one_1_{at}",
                "name": "look",
                "arguments": arguments,
                "status": "completed",
            }
            for at, arguments in enumerate(['{"at": "What is x?"}', "{not json"])
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 27,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 15,
            "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": 42,
        },
    }


@pytest.mark.parametrize("policy", [Looker(), Fixed(Answer("A text that is longer than one delta of the stream."))])
def test_a_stream_adds_up_to_the_whole_response(policy: Policy) -> None:
    async def both(client: AsyncOpenAI) -> tuple[Response, Response, list[str]]:
        whole = await ask(client, tools=[])
        kinds: list[str] = []
        async with client.responses.stream(model="sim-test", input="What is x?") as stream:
            async for event in stream:
                kinds.append(event.type)
            return whole, await stream.get_final_response(), kinds

    whole, streamed, kinds = through_sdk(policy, both)
    assert streamed.id == "resp_0_one_2"
    assert [item.type for item in streamed.output] == [item.type for item in whole.output]
    assert streamed.output_text == whole.output_text
    assert streamed.usage == whole.usage
    assert [kinds[0], kinds[1], kinds[-2], kinds[-1]] == [
        *("response.created", "response.in_progress", "response.output_item.done", "response.completed")
    ]
    assert any(kind.endswith(".delta") for kind in kinds)


def test_a_conversation_can_be_sent_back_and_goes_on() -> None:
    looker = Looker()

    async def converse(client: AsyncOpenAI) -> list[Response]:
        items: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is x?"}]
        first = await ask(client, items, instructions="Be kind.")
        items += [item.to_dict() for item in first.output]
        items += [
            {"type": "function_call_output", "call_id": item.to_dict()["call_id"], "output": f"number {at}"}
            for at, item in enumerate(first.output)
        ]
        second = await ask(client, items, instructions="Be kind.")
        items += [item.to_dict() for item in second.output] + [{"role": "user", "content": "And y?"}]
        return [first, second, await ask(client, items, instructions="Be kind.")]

    responses = through_sdk(looker, converse)
    results = (
        SeenResult("look", {"at": "What is x?"}, "number 0"),
        SeenResult("look", "{not json", "number 1"),
    )
    answer = "I found number 1, which is all there is."
    assert [seen.turns for seen in looker.shown] == [
        (SeenTurn("What is x?"),),
        (SeenTurn("What is x?", results),),
        (SeenTurn("What is x?", results, answer), SeenTurn("And y?")),
    ]
    assert {seen.instructions for seen in looker.shown} == {"Be kind.\n\nBe brief."}
    assert responses[1].output_text == answer
    usages = [response.usage for response in responses]
    assert all(usage is not None for usage in usages)
    spent = [(u.input_tokens, u.input_tokens_details.cached_tokens) for u in usages if u]
    assert [cached for _, cached in spent] == [0, spent[0][0], spent[1][0]]


CODEX_REQUEST: dict[str, Any] = {
    "model": "sim-test",
    "stream": True,
    "tools": [
        {"type": "function", "name": "exec_command", "description": "Runs a command", "parameters": {"type": "object"}},
        {"type": "namespace", "name": "agents", "description": "For sub-agents.", "tools": []},
        {"type": "namespace", "name": "mcp__Shop", "description": "Look first.", "tools": [LOOK]},
    ],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Act in the shell."}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n <cwd>/</cwd>\n</environment_context>"}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "[@Shop](plugin://Shop@market) What is x?"}],
        },
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Use the plugin."}]},
        {"type": "reasoning", "encrypted_content": "…"},
        {"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": '{"cmd": "ls"}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "empty"}]},
    ],
}


def test_a_request_of_codex_is_seen_as_its_model_sees_it() -> None:
    request = parse(json.dumps(CODEX_REQUEST).encode())
    assert [(tool.name, tool.namespace) for tool in request.seen.tools] == [
        ("exec_command", None),
        ("look", "mcp__Shop"),
    ]
    assert request.seen.instructions == "Act in the shell.\n\nUse the plugin.\n\nFor sub-agents.\n\nLook first."
    assert request.seen.turns == (SeenTurn("What is x?", (SeenResult("exec_command", {"cmd": "ls"}, "empty"),)),)
    assert request.streamed is True


def test_a_call_is_made_in_the_namespace_in_which_its_tool_was_shown() -> None:
    body = {**CODEX_REQUEST, "stream": False}
    response = raw(lambda client: client.post("/responses", json=body)).json()
    assert [(item["name"], item["namespace"]) for item in response["output"]] == [("look", "mcp__Shop")] * 2


def test_a_compressed_request_is_read() -> None:
    body = zstandard.compress(json.dumps({"model": "sim-test", "input": "What is x?"}).encode())
    headers = {"content-encoding": "zstd"}
    response = raw(lambda client: client.post("/responses", content=body, headers=headers))
    assert (response.status_code, response.json()["model"]) == (200, "sim-test")


@pytest.mark.parametrize(
    ("content", "headers", "message"),
    [
        (b"{", {}, "the body is no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[]", {}, "the body is no object with a 'model'"),
        (b'{"model": "sim-test", "input": 7}', {}, "'input' is neither text nor a list of items"),
        (b"{}", {"content-encoding": "br"}, "content-encoding 'br' is not supported; send zstd or none"),
        (b"{}", {SEED_HEADER: "x"}, "invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(content: bytes, headers: dict[str, str], message: str) -> None:
    response = raw(lambda client: client.post("/responses", content=content, headers=headers))
    error = {
        "message": f"Invalid request: {message}",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
    assert (response.status_code, response.json()) == (400, {"error": error})


def test_a_body_that_is_no_zstd_is_refused() -> None:
    headers = {"content-encoding": "zstd"}
    response = raw(lambda client: client.post("/responses", content=b"{}", headers=headers))
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("Invalid request: the body is no zstd stream: ")


def test_an_unknown_model_is_not_found() -> None:
    async def ask_another(client: AsyncOpenAI) -> openai.NotFoundError:
        with pytest.raises(openai.NotFoundError) as caught:
            await ask(client, model="sim-perfect")
        return caught.value

    error = through_sdk(Looker(), ask_another)
    assert error.body == {
        "message": "The model 'sim-perfect' does not exist or you do not have access to it.",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }


def test_the_models_are_listed() -> None:
    async def names(client: AsyncOpenAI) -> list[str]:
        return [model.id async for model in client.models.list()]

    assert through_sdk(Looker(), names) == ["sim-test"]


def test_a_websocket_handshake_is_refused_with_upgrade_required() -> None:
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    assert raw(lambda client: client.get("/responses", headers=headers)).status_code == 426


def test_no_two_responses_share_an_id() -> None:
    async def repeat(client: AsyncOpenAI) -> list[str]:
        return [(await ask(client, seed=seed)).id for seed in (5, 5, 2**63 - 1)]

    assert through_sdk(Looker(), repeat) == ["resp_5_one_1", "resp_5_one_2", "resp_7fffffffffffffff_one_3"]


def test_a_rate_limit_says_when_to_come_back() -> None:
    async def hurry(client: AsyncOpenAI) -> openai.RateLimitError:
        with pytest.raises(openai.RateLimitError) as caught:
            await ask(client)
        return caught.value

    error = through_sdk(Fixed(Fault(429, retry_after_s=1.0)), hurry)
    assert (error.response.headers["retry-after"], error.code) == ("1", "rate_limit_exceeded")


def test_a_server_error_is_one() -> None:
    async def fail(client: AsyncOpenAI) -> int:
        with pytest.raises(openai.InternalServerError) as caught:
            await ask(client)
        return caught.value.status_code

    assert through_sdk(Fixed(Fault(500)), fail) == 500


def test_a_cut_stream_ends_half_way() -> None:
    async def listen(client: AsyncOpenAI) -> list[str]:
        kinds: list[str] = []
        try:
            async for event in await client.responses.create(model="sim-test", input="x", stream=True):
                kinds.append(event.type)
        except openai.APIConnectionError:
            return kinds
        raise AssertionError("the stream ended as if it were whole")

    kinds = through_sdk(Fixed(Fault(cut=True)), listen)
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert "response.output_text.delta" in kinds
    assert "response.output_item.done" not in kinds


def test_a_cut_response_ends_half_way() -> None:
    async def fail(client: AsyncOpenAI) -> str:
        with pytest.raises(openai.APIConnectionError) as caught:
            await ask(client)
        return type(caught.value.__cause__).__name__

    assert through_sdk(Fixed(Fault(cut=True)), fail) == "RemoteProtocolError"


def test_a_failed_request_that_is_sent_again_counts_its_tries_until_it_is_answered() -> None:
    async def insist(client: AsyncOpenAI) -> list[str]:
        said = []
        for seed in (1, 1, 2, 1, 1):
            try:
                said.append((await ask(client, seed=seed)).output_text)
            except openai.InternalServerError:
                said.append("failed")
        return said

    assert through_sdk(FailsFirst(), insist) == ["failed", "failed", "failed", "after 2 failures", "failed"]


def test_a_delayed_move_is_sent_late() -> None:
    async def wait(client: AsyncOpenAI) -> float:
        started = time.monotonic()
        await ask(client)
        return time.monotonic() - started

    assert through_sdk(Fixed(Answer("late", delay_s=0.05)), wait) >= 0.05


def slips(question: str, seeds: range) -> list[bool]:
    """Whether `sim-flaky` slips on the question, per seed, over a bare loop's first request."""

    async def all_of_them(client: AsyncOpenAI) -> list[bool]:
        return [(await ask(client, question, seed)).output_text != "" for seed in seeds]

    return through_sdk(Flaky(Looker()), all_of_them)


def test_the_same_seed_slips_the_same_way_and_repeats_differ() -> None:
    question = next(text for number in range(99) if slip_chance(text := f"What is x{number}?") > 0.4)
    first, again = slips(question, range(60)), slips(question, range(60))
    assert first == again
    assert 10 < sum(first) < 50


def test_a_turns_draw_is_the_same_in_every_harness_and_another_in_every_turn_and_trial() -> None:
    bare = parse(b'{"model": "sim-test", "input": "What is x?"}').seen
    product = parse(json.dumps(CODEX_REQUEST).encode()).seen
    follow_up = Seen("sim-test", "", (), (*bare.turns, SeenTurn("What is x?")))
    drawn = [turn_draw(3, bare), turn_draw(3, product), turn_draw(4, bare), turn_draw(3, follow_up)]
    values = [draw.random() for draw in drawn]
    assert values[0] == values[1]
    assert len(set(values)) == 3


def bls_policies() -> dict[str, Policy]:
    base = load_base(Simulation(policy="policy.py"), SUITES / "bls")
    return {name: simulated_policy(name, base) for name in SIMULATED_MODELS}


CONFIG = """
openai_base_url = "http://127.0.0.1:{port}/v1"
web_search = "disabled"

[mcp_servers.BLS]
command = "{python}"
args = ["{server}"]
env = {{ BLS_GUIDANCE = "{guidance}" }}
required = true
default_tools_approval_mode = "approve"
"""


@pytest.mark.slow
# The SDK leaves its pipes to the app server for the garbage collector to close.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(
    ("guidance", "calls"),
    [
        ("0", [("resolve", ["consumer price index"]), ("fetch_bls_data", ["CUUR0000SA0"])]),
        ("1", [("resolve", ["consumer price index"])]),
    ],
)
def test_real_codex_completes_a_turn_and_the_servers_guidance_reaches_the_policy(
    tmp_path: Path, guidance: str, calls: list[tuple[str, list[str]]]
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()

    async def turn() -> list[Any]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with serving(simulated_app(bls_policies()), listener):
                settings = {"port": listener.getsockname()[1], "guidance": guidance}
                places = {"python": sys.executable, "server": SUITES / "bls/server.py"}
                (home / "config.toml").write_text(CONFIG.format(**settings, **places))
                variables = {
                    "HOME": tmp_path,
                    "TMPDIR": tmp_path,
                    "CODEX_HOME": home,
                    "PATH": "/usr/bin:/bin",
                    "CODEX_API_KEY": "none",
                }
                argv = ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()))
                argv = (*argv, str(codex_cli_bin.bundled_codex_path()), "app-server")
                async with AsyncCodex(CodexConfig(launch_args_override=argv)) as codex:
                    thread = await codex.thread_start(
                        approval_mode=ApprovalMode.deny_all, cwd=str(work), ephemeral=True, model="sim-careful"
                    )
                    running = await thread.turn("What is the latest consumer price index?")
                    events = [event.payload async for event in running.stream()]
        return [event.item.root for event in events if isinstance(event, ItemCompletedNotification)]

    items = asyncio.run(turn())
    made = [item for item in items if isinstance(item, McpToolCallThreadItem)]
    assert [(item.tool, item.status.value) for item in made] == [(name, "completed") for name, _ in calls]
    asked = [
        [entry["indicator"] for entry in item.arguments["indicators"]]
        if item.tool == "resolve"
        else item.arguments["series_ids"]
        for item in made
    ]
    assert asked == [words for _, words in calls]
    said = [item.text for item in items if isinstance(item, AgentMessageThreadItem)]
    assert said == ["The data for consumer price index is not available."]


class OnABadDay:
    """Is limited, breaks, hangs up, and answers at the fourth try."""

    def move(self, seen: Seen, draw: random.Random) -> Move:
        faults = (Fault(429, retry_after_s=2), Fault(503), Fault(cut=True))
        return faults[seen.tries] if seen.tries < len(faults) else Answer("At last.", reasoning_tokens=7)


@pytest.mark.parametrize("streamed", [False, True])
def test_every_answer_is_billed_once_and_no_fault_is(streamed: bool) -> None:
    bill: list[tuple[str, Any]] = []
    asked = {"model": "m", "input": "What is x?", "stream": streamed}

    async def ask() -> tuple[list[Any], bytes]:
        listener = loopback()
        app = simulated_app({"m": OnABadDay()}, billed=lambda model, usage: bill.append((model, usage)))
        at = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with serving(app, listener), httpx2.AsyncClient(base_url=at, trust_env=False) as client:
            refused = [await client.post("/responses", json=asked) for _ in range(2)]
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.post("/responses", json=asked)
            assert bill == []
            met = [(response.status_code, response.headers.get("retry-after")) for response in refused]
            return met, (await client.post("/responses", json=asked)).content

    met, body = asyncio.run(ask())
    assert met == [(429, "2"), (503, None)]
    ((model, usage),) = bill
    assert (model, usage["output_tokens_details"]) == ("m", {"reasoning_tokens": 7})
    assert json.dumps(usage).encode().replace(b" ", b"") in body.replace(b" ", b"")
