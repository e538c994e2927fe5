import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from cases.loader import load_suite
from cases.policies.shell import IDLE_COMMANDS
from evalfarm.contracts.run import Trace
from evalfarm.errors import HarnessUnavailable
from graders.grade import result_of
from worker.attempt import observe
from worker.cell.cell import Cell, lay_out, open_cell
from worker.cell.codex_home import adapt
from worker.harnesses import OpenAttempt, codex

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.usefixtures("sdk_leftovers"),
    # The SDK leaves its pipes to the app server for the garbage collector to close.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    # Nor does it wait for an app server that ended before it was asked to.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture
def told(
    open_station: Any, planned: Any, suite: Any, shop_at: Any, servers: Path, processes_of: Any, eventually: Any
) -> Callable[..., Any]:
    """The trace of an attempt with real Codex over the shop, its model doing as each turn says."""

    async def run(*turns: str, model: str = "sim-careful", **more: Any) -> Trace:
        asked = {"simulation": {"policy": "obedient.py"}, "cases": [{"id": "told", "turns": list(turns)}], **more}
        async with open_station() as station, shop_at() as url:
            prepared, trial = planned(suite(server={"url": url}, **asked), "codex", model, folder=servers)
            trace = await observe(station, prepared, trial, 1)
            await eventually(lambda: processes_of(str(station.rooms)) == [])
            return trace

    return run


def untimed(calls: Any) -> list[dict[str, Any]]:
    return [call.model_dump(exclude={"started_s", "duration_s", "server", "call_id"}) for call in calls]


def record(name: str, arguments: Any, result: Any = None, error: str | None = None, turn: int = 0) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result, "error": error, "turn": turn}


def methods(trace: Trace) -> list[Any]:
    return [event["method"] for event in trace.events if isinstance(event, dict)]


async def test_a_conversation_is_one_thread_with_its_calls_under_their_turns(told: Any) -> None:
    trace = await told('call look {"at": "a"} | say A vase.', 'call look {"at": "b"} | say A rug.')
    assert (trace.outcome, trace.failure, trace.telemetry.complete) == ("finished", None, True)
    assert [turn.answer for turn in trace.turns] == ["A vase.", "A rug."]
    called = [record("look", {"at": at}, {"seen": at}, turn=turn) for turn, at in enumerate("ab")]
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)
    assert [call.started_s > 0 and call.started_s < trace.duration_s for call in trace.tool_calls] == [True, True]
    assert trace.tool_calls[0].started_s < trace.requests[2].started_s < trace.tool_calls[1].started_s
    asked = [text for event in trace.events for text in said_by_the_user(event)]
    assert [text.partition("call")[0] for text in asked] == ["[@Shop](plugin://Shop@evalfarm) ", ""]
    assert methods(trace).count("turn/completed") == 2
    assert [method for method in methods(trace) if method.lower().endswith("delta")] == []
    assert trace.versions == {"codex": "0.163.0"}
    assert (trace.simulated, trace.cost_usd, len(trace.requests)) == (True, 0.0, 4)
    assert [(request.side, request.cached_write_tokens) for request in trace.requests] == [(False, 0)] * 4
    threads = [event["params"]["threadId"] for event in trace.events if event["method"] == "turn/started"]
    assert threads == [trace.session] * 2


def said_by_the_user(event: Any) -> list[str]:
    item = event["params"].get("item", {}) if event["method"] == "item/completed" else {}
    return [part["text"] for part in item["content"]] if item.get("type") == "userMessage" else []


async def test_a_tool_that_fails_is_recorded_by_both_witnesses_and_the_model_goes_on(told: Any) -> None:
    trace = await told('call refuse {"why": "out of stock"} | say Sold out.')
    called = [record("refuse", {"why": "out of stock"}, error="out of stock")]
    assert (trace.outcome, trace.answer, trace.telemetry.complete) == ("finished", "Sold out.", True)
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)


async def test_a_tool_without_structured_content_is_recorded_with_its_text(told: Any) -> None:
    trace = await told('call say {"text": "grüezi"} | say Well said.')
    called = [record("say", {"text": "grüezi"}, "grüezi")]
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)


async def test_a_tool_that_is_not_there_is_refused_by_codex_and_reaches_nobody(told: Any) -> None:
    trace = await told("call steal {} | say Never mind.")
    assert (trace.outcome, trace.answer, trace.telemetry.complete) == ("finished", "Never mind.", True)
    assert (trace.tool_calls, trace.served_calls, len(trace.requests)) == ((), (), 2)


async def test_a_tool_is_recorded_under_its_own_name_also_where_codex_shows_it_under_another(told: Any) -> None:
    trace = await told("call opening_hours {} | say Always.")
    called = [record("opening-hours", {}, {"open": "always"})]
    assert (trace.outcome, trace.answer, trace.telemetry.complete) == ("finished", "Always.", True)
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)


async def test_a_turn_that_fails_keeps_what_was_seen_before(told: Any) -> None:
    trace = await told('call look {"at": "a"} | fail 400', "say Never asked.")
    called = [record("look", {"at": "a"}, {"seen": "a"})]
    assert trace.outcome == "crashed"
    assert trace.failure is not None
    assert trace.failure.startswith("Codex's turn failed: ")
    assert [turn.answer for turn in trace.turns] == [""]
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)
    assert [request.status for request in trace.requests] == [200, 400]
    assert methods(trace)[-1] == "turn/completed"


async def test_an_attempt_that_takes_too_long_keeps_what_was_seen(told: Any) -> None:
    trace = await told('call look {"at": "a"} | run sleep 60 | say Good morning.', attempt_timeout_s=4)
    called = [record("look", {"at": "a"}, {"seen": "a"})]
    assert (trace.outcome, trace.failure) == ("timed_out", "not finished after 4 s, the suite's limit for an attempt")
    assert (untimed(trace.tool_calls), untimed(trace.served_calls)) == (called, called)
    assert trace.telemetry.complete
    assert "item/started" in methods(trace)


async def test_what_the_model_does_in_codexs_own_shell_is_recorded(told: Any) -> None:
    trace = await told("run echo out; echo err >&2; exit 3 | say Done.")
    (shell,) = trace.shell_commands
    # Codex reads the two streams apart, so their order is not the command's.
    assert (sorted(shell.output.splitlines()), shell.exit_code, shell.turn) == (["err", "out"], 3, 0)
    assert "echo out; echo err >&2; exit 3" in shell.command
    assert (trace.tool_calls, trace.telemetry.complete) == ((), True)


async def test_the_idle_commands_of_a_model_that_likes_shells_are_in_the_trace(told: Any) -> None:
    script = [{"when": ".", "answer": "Done."}]
    trace = await told("What is there?", model="sim-shell", simulation={"script": script})
    assert [shell.command.split("-lc ")[1].strip("'") for shell in trace.shell_commands] == [*IDLE_COMMANDS]
    assert [shell.exit_code for shell in trace.shell_commands] == [0, 0, 0]


async def test_a_provider_that_stays_down_is_no_verdict(told: Any) -> None:
    trace = await told('call look {"at": "a"} | fail 503')
    assert (trace.outcome, trace.answer) == ("infra_failed", "")
    assert trace.failure is not None
    assert trace.failure.startswith("the model's provider stayed unusable: HTTP 503; ")
    assert untimed(trace.tool_calls) == [record("look", {"at": "a"}, {"seen": "a"})]


async def unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    """An app for a server that is down behind its address."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})
        return
    await send({"type": "http.response.start", "status": 503, "headers": []})
    await send({"type": "http.response.body", "body": b"down"})


async def test_a_plugin_whose_server_is_down_is_refused_before_any_question(
    open_station: Any, planned: Any, suite: Any, open_shop: Any, attempt: Any, tmp_path: Path
) -> None:
    async with open_station() as station, open_shop() as server:
        prepared, _ = planned(suite(), "codex")
        upstream = await station.upstream(prepared, "sim-careful")
        at_work: OpenAttempt = attempt(server, upstream, harness="codex", model="sim-careful")
        assert at_work.model is not None
        room = tmp_path / "room"
        room.mkdir()
        lay_out(room, station.template(prepared, "plain"))
        async with open_cell(station.codex, "cell", room, (at_work.model.app(), unavailable), rewrite=adapt) as cell:
            with pytest.raises(HarnessUnavailable) as caught:
                await codex.drive(at_work, cell)
    assert caught.value.message.startswith("Codex refused to start a thread: ")
    assert "Shop" in caught.value.message
    assert (caught.value.hint, at_work.notes.turns) == ("the plugin's MCP server must be up", [])


@pytest.fixture
def streamed(said: Any, response: Any) -> Callable[[dict[str, Any], int], Any]:
    """One output item as a provider streams it, by what went in before it."""

    def make(output: dict[str, Any], input_tokens: int) -> Any:
        used = {**response()["usage"], "input_tokens": input_tokens, "total_tokens": input_tokens + 20}
        events = [
            {"type": "response.created", "response": response()},
            {"type": "response.output_item.done", "output_index": 0, "item": output},
            {"type": "response.completed", "response": response(output, usage=used)},
        ]
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return said(body=body.encode(), headers={"content-type": "text/event-stream"})

    return make


async def test_a_thread_that_codex_has_summed_up_is_a_side_call_and_the_turn_goes_on(
    open_station: Any, planned: Any, suite: Any, open_shop: Any, attempt: Any, streamed: Any, providing: Any
) -> None:
    listing = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": '{"cmd": "ls"}'}
    summary = {"type": "compaction", "encrypted_content": "what was said"}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A vase."}]}
    script = [streamed(listing, 9000), streamed(summary, 50), streamed(answer, 50)]
    async with open_station() as station, open_shop() as server, providing(*script) as (upstream, provider):
        prepared, _ = planned(suite(), "codex")
        at_work: OpenAttempt = attempt(server, upstream, harness="codex", model="gpt-5.2")
        assert at_work.model is not None
        room = station.rooms / "summing-up"
        room.mkdir(parents=True)
        lay_out(room, station.template(prepared, "plain"))
        config = room / "home" / "config.toml"
        config.write_text(f"model_auto_compact_token_limit = 1000\n{config.read_text(encoding='utf-8')}")
        apps = (at_work.model.app(), at_work.tools.app())
        async with open_cell(station.codex, "cell", room, apps, rewrite=adapt) as cell:
            ending = await codex.drive(at_work, cell)
    assert (ending.outcome, at_work.notes.turns[0].answer) == ("finished", "A vase.")
    assert [request.side for request in at_work.model.requests] == [False, True, False]
    assert provider.asked[1].json["input"][-1] == {"type": "compaction_trigger"}


async def test_a_codex_that_ends_at_once_did_not_start(open_shop: Any, attempt: Any) -> None:
    async with open_shop() as server:
        with pytest.raises(HarnessUnavailable) as caught:
            await codex.drive(attempt(server, harness="codex"), Cell(argv=("/bin/sh", "-c", "exit 1"), work="/"))
    assert caught.value.message == "Codex did not start in its cell: it ended at once"


async def test_a_codex_that_fails_as_it_starts_is_no_verdict(open_shop: Any, attempt: Any) -> None:
    argv = ("/bin/sh", "-c", "read hello; echo no such luck >&2; exit 1")
    async with open_shop() as server:
        with pytest.raises(HarnessUnavailable) as caught:
            await codex.drive(attempt(server, harness="codex"), Cell(argv=argv, work="/"))
    assert caught.value.message == "Codex did not start in its cell: it ended at once, saying: no such luck"


async def test_an_attempt_that_is_called_off_while_codex_starts_leaves_no_process(
    open_shop: Any, attempt: Any, processes_of: Any, eventually: Any
) -> None:
    mark = f"600.{os.getpid()}"
    async with open_shop() as server:
        cell = Cell(argv=("/usr/bin/sleep", mark), work="/")
        driving = asyncio.create_task(codex.drive(attempt(server, harness="codex"), cell))
        await eventually(lambda: processes_of(mark))
        driving.cancel()
        await asyncio.wait((driving,))
    assert (driving.cancelled(), processes_of(mark)) == (True, [])


@pytest.mark.parametrize("harness", ["direct", "loop", "codex"])
async def test_a_public_server_that_nobody_here_wrote_passes_at_every_level(
    open_station: Any, planned: Any, harness: str
) -> None:
    loaded = load_suite("time")
    async with open_station() as station:
        prepared, _ = planned(loaded.suite, harness, folder=loaded.folder)
        trials = [prepared.plan.trial(index) for index in range(prepared.plan.size)]
        traces = [await observe(station, prepared, trial, 1) for trial in trials]
    results = [result_of(loaded.suite, trace) for trace in traces]
    assert [(result.trial.case, result.verdict, result.reasons) for result in results] == [
        (trial.case, "passed", ()) for trial in trials
    ]
