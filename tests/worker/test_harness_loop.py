import json
from typing import Any

import pytest

from evalfarm.contracts.run import Outcome, Turn
from worker.harnesses import FINISHED, Ending, OpenAttempt, loop

pytestmark = pytest.mark.anyio

LOOK = ("look", {"at": "the shelf"})


def untimed(at_work: OpenAttempt) -> list[dict[str, Any]]:
    """The harness's account of its calls without times, which must be times."""
    calls = at_work.notes.tool_calls
    assert all(0 <= call.started_s < 5 and 0 <= (call.duration_s or 0) < 5 for call in calls)
    return [call.model_dump(exclude={"started_s", "duration_s", "server", "call_id"}) for call in calls]


def record(name: str, arguments: Any, result: Any = None, error: str | None = None, turn: int = 0) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result, "error": error, "turn": turn}


def outputs(asked: Any) -> list[Any]:
    """What a request tells the model of its calls."""
    return [item["output"] for item in asked.json["input"] if item.get("type") == "function_call_output"]


async def test_a_question_a_call_and_an_answer(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, answers: Any
) -> None:
    async with open_shop() as server, providing(calls(LOOK), answers("A vase.")) as (upstream, provider):
        at_work = attempt(server, upstream)
        assert await loop.drive(at_work) == FINISHED
        tools = [loop.function_tool(tool) for tool in server.tools]
    assert at_work.notes.turns == [Turn(query="What is on the shelf?", answer="A vase.")]
    assert untimed(at_work) == [record("look", {"at": "the shelf"}, {"seen": "the shelf"})]
    assert [call.result for call in at_work.tools.calls] == [{"seen": "the shelf"}]
    question = {"role": "user", "content": "What is on the shelf?"}
    asked = {"type": "function_call", "id": "fc_0", "call_id": "call_0", "name": "look", "status": "completed"}
    told = {"type": "function_call_output", "call_id": "call_0", "output": '{"seen": "the shelf"}'}
    always = {
        "model": "gpt-x",
        "instructions": "",
        "tools": tools,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    assert [asked.json for asked in provider.asked] == [
        {**always, "input": [question]},
        {**always, "input": [question, {**asked, "arguments": '{"at": "the shelf"}'}, told]},
    ]
    assert {type(event["output"]) for event in at_work.notes.events} == {list}
    assert [request.status for request in at_work.model.requests] == [200, 200]


async def test_a_tool_is_described_as_its_server_describes_it(open_shop: Any) -> None:
    async with open_shop() as server:
        tools = {tool.name: loop.function_tool(tool) for tool in server.tools}
    assert tools["look"] == {
        "type": "function",
        "name": "look",
        "description": "Look at something.",
        "parameters": {
            "type": "object",
            "properties": {"at": {"type": "string"}},
            "required": ["at"],
            "additionalProperties": False,
        },
        "strict": False,
    }


async def test_the_models_own_items_go_back_without_null_fields(
    open_shop: Any, attempt: Any, providing: Any, said: Any, response: Any, answers: Any
) -> None:
    reasoning: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "x9",
        "content": None,
    }
    call = {
        "type": "function_call",
        "id": None,
        "call_id": "call_0",
        "name": "look",
        "arguments": '{"at": "a"}',
        "status": None,
    }
    first = said(body=json.dumps(response(reasoning, call)).encode())
    async with open_shop() as server, providing(first, answers("A vase.")) as (upstream, provider):
        await loop.drive(attempt(server, upstream))
    assert provider.asked[1].json["input"][1:3] == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x9"},
        {"type": "function_call", "call_id": "call_0", "name": "look", "arguments": '{"at": "a"}'},
    ]


@pytest.mark.parametrize("rounds", [1, 4])
async def test_a_model_that_never_stops_asking_for_tools_is_stopped(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, rounds: int
) -> None:
    async with open_shop() as server, providing(calls(LOOK)) as (upstream, provider):
        at_work = attempt(server, upstream, loop={"tool_rounds": rounds})
        ending = await loop.drive(at_work)
    reason = f"the model still asked for tools after {rounds} rounds of calls, the loop's limit"
    assert ending == Ending("gave_up", reason)
    assert (len(provider.asked), len(at_work.notes.tool_calls)) == (rounds + 1, rounds)
    assert at_work.notes.turns == [Turn(query="What is on the shelf?", answer="")]


DEEP = "[" * 200 + "]" * 200
TOO_DEEP = "[" * 100_000
FAILING: list[tuple[str, str, Any, str]] = [
    ("look", '{"at": ', '{"at": ', "the arguments are no JSON: Expecting value: line 1 column 8 (char 7)"),
    ("look", "[1]", [1], "the arguments are no JSON object"),
    ("steal", "{}", {}, "there is no tool 'steal'"),
    ("take", DEEP, DEEP, "the arguments hold more than 150 levels of nesting"),
    ("take", TOO_DEEP, TOO_DEEP, "the arguments are nested too deep"),
    ("say", '{"text": "\\ud83d"}', '{"text": "\\ud83d"}', "the arguments hold half a surrogate pair, which is no text"),
    ("say", '{"text": "\ud83d"}', '{"text": "?"}', "the arguments hold half a surrogate pair, which is no text"),
]


@pytest.mark.parametrize("failing", FAILING, ids=range(len(FAILING)))
async def test_a_call_that_cannot_be_made_is_handed_back_to_the_model_and_recorded(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, answers: Any, failing: tuple[str, str, Any, str]
) -> None:
    tool, written, kept, problem = failing
    script = calls((tool, written), LOOK), answers("Never mind.")
    async with open_shop() as server, providing(*script) as (upstream, provider):
        at_work = attempt(server, upstream)
        assert await loop.drive(at_work) == FINISHED
    assert outputs(provider.asked[1]) == [json.dumps({"error": problem}), '{"seen": "the shelf"}']
    assert untimed(at_work) == [
        record(tool, kept, error=problem),
        record("look", {"at": "the shelf"}, {"seen": "the shelf"}),
    ]
    assert [call.name for call in at_work.tools.calls] == ["look"]
    assert [json.loads(call.model_dump_json())["error"] for call in at_work.notes.tool_calls] == [problem, None]


async def test_a_tools_own_error_is_handed_back_to_the_model_and_recorded(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, answers: Any
) -> None:
    script = calls(("refuse", {"why": "out of stock"}), ("say", {"text": "plain text"})), answers("Sold out.")
    async with open_shop() as server, providing(*script) as (upstream, provider):
        at_work = attempt(server, upstream)
        assert await loop.drive(at_work) == FINISHED
    assert outputs(provider.asked[1]) == ['{"error": "out of stock"}', "plain text"]
    assert untimed(at_work) == [
        record("refuse", {"why": "out of stock"}, error="out of stock"),
        record("say", {"text": "plain text"}, "plain text"),
    ]


@pytest.mark.parametrize(
    ("options", "prompt"),
    [
        ({}, ""),
        ({"system_prompt": " Be brief.\n"}, "Be brief."),
        ({"system_prompt": "Be brief.", "server_instructions": True}, "Be brief.\n\nLook before you buy."),
        ({"server_instructions": True}, "Look before you buy."),
    ],
)
async def test_the_servers_instructions_are_ignored_unless_the_suite_asks_for_them(
    open_shop: Any, attempt: Any, providing: Any, answers: Any, options: dict[str, Any], prompt: str
) -> None:
    async with open_shop() as server, providing(answers("Yes.")) as (upstream, provider):
        await loop.drive(attempt(server, upstream, loop=options))
    assert provider.asked[0].json["instructions"] == prompt


async def test_the_turns_of_a_case_are_one_conversation(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, answers: Any
) -> None:
    cases = [{"id": "two", "turns": ["What is there?", "And there?"]}]
    script = calls(LOOK), answers("A vase."), calls(("look", {"at": "the floor"})), answers("A rug.")
    async with open_shop() as server, providing(*script) as (upstream, provider):
        at_work = attempt(server, upstream, cases=cases)
        assert await loop.drive(at_work) == FINISHED
    assert at_work.notes.turns == [
        Turn(query="What is there?", answer="A vase."),
        Turn(query="And there?", answer="A rug."),
    ]
    assert [(call.arguments, call.turn) for call in at_work.notes.tool_calls] == [
        ({"at": "the shelf"}, 0),
        ({"at": "the floor"}, 1),
    ]
    assert [call.turn for call in at_work.tools.calls] == [0, 1]
    kinds = [item.get("type", item.get("role")) for item in provider.asked[3].json["input"]]
    assert kinds == [
        *("user", "function_call", "function_call_output", "message"),
        *("user", "function_call", "function_call_output"),
    ]


async def test_an_empty_answer_ends_the_turn_and_is_kept_as_empty(
    open_shop: Any, attempt: Any, providing: Any, said: Any, response: Any
) -> None:
    async with open_shop() as server, providing(said(body=json.dumps(response()).encode())) as (upstream, _):
        at_work = attempt(server, upstream)
        assert await loop.drive(at_work) == FINISHED
    assert at_work.notes.turns == [Turn(query="What is on the shelf?", answer="")]


async def test_half_a_character_in_an_answer_spoils_neither_the_trace_nor_the_conversation(
    open_shop: Any, attempt: Any, providing: Any, answers: Any
) -> None:
    cases = [{"id": "two", "turns": ["What is there?", "And there?"]}]
    async with open_shop() as server, providing(answers("A \ud83d")) as (upstream, provider):
        at_work = attempt(server, upstream, cases=cases)
        assert await loop.drive(at_work) == FINISHED
    assert [turn.answer for turn in at_work.notes.turns] == ["A ?", "A ?"]
    assert provider.asked[1].json["input"][1]["content"][0]["text"] == "A ?"
    assert "A ?" in json.dumps(at_work.notes.events, ensure_ascii=False).encode().decode()


@pytest.mark.parametrize(("status", "outage"), [(400, False), (500, True)])
async def test_a_request_that_fails_ends_the_attempt_and_the_gateway_knows_whose_fault_it_was(
    open_shop: Any, attempt: Any, providing: Any, calls: Any, said: Any, status: int, outage: bool
) -> None:
    failed = said(status, b'{"error": {"message": "no"}}', {"content-type": "application/json", "retry-after": "0"})
    async with open_shop() as server, providing(calls(LOOK), failed) as (upstream, _):
        at_work = attempt(server, upstream)
        ending = await loop.drive(at_work)
    assert ending.outcome == "crashed"
    assert ending.failure is not None
    assert ending.failure.startswith(f"the model request failed: Error code: {status}")
    assert (at_work.model.outage is not None) is outage
    assert untimed(at_work) == [record("look", {"at": "the shelf"}, {"seen": "the shelf"})]


@pytest.mark.parametrize(
    ("code", "outcome"), [("server_error", "infra_failed"), ("rate_limit_exceeded", "infra_failed"), ("x", "crashed")]
)
async def test_a_response_that_failed_is_no_empty_answer(
    open_shop: Any, attempt: Any, providing: Any, said: Any, response: Any, code: str, outcome: Outcome
) -> None:
    failed = response(status="failed", error={"code": code, "message": "Sorry."})
    async with open_shop() as server, providing(said(body=json.dumps(failed).encode())) as (upstream, _):
        at_work = attempt(server, upstream)
        assert await loop.drive(at_work) == Ending(outcome, f"the provider failed while it answered: Sorry. ({code})")
    assert at_work.model.requests[0].error == "Sorry."


async def test_the_loop_needs_a_model(open_shop: Any, attempt: Any) -> None:
    async with open_shop() as server:
        with pytest.raises(ValueError, match="the loop needs a model"):
            await loop.drive(attempt(server))
