"""A small function-calling loop over the Responses API: the model and the tools, and no product around them.

It keeps no state at the provider (`store: false`): the whole conversation goes back in `input` each time, with
the model's own items, encrypted reasoning among them. Items are sent back without null fields, which the API
rejects.
"""

import json
import time
from typing import Any

import mcp_types
from pydantic import JsonValue

from evalfarm import __version__
from evalfarm.contracts.run import ToolCall
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.tool_gateway import result_text, result_value
from worker.harnesses import FINISHED, Ending, OpenAttempt
from worker.harnesses.response import FunctionCall, read_response
from worker.storable import mended, why_not

#: Codes in a response that failed which say nothing about what was asked. The others are the request's own fault.
_PROVIDERS_FAULTS = ("server_error", "rate_limit_exceeded")

_HEADERS = {
    "accept": "application/json",
    "content-type": "application/json",
    "user-agent": f"evalfarm/{__version__}",
}


class Refused(Exception):
    """Raised when a request is answered with a status from 400 up; the message has status and body."""


async def drive(attempt: OpenAttempt) -> Ending:
    """Ask the case's turns one after another in one conversation."""
    if attempt.model is None:
        raise ValueError("the loop needs a model")
    conversation: list[Any] = []
    for query in attempt.case.turns:
        attempt.tools.turn = attempt.notes.ask(query)
        conversation.append({"role": "user", "content": query})
        try:
            ending = await _one_turn(attempt, attempt.model, conversation)
        except Refused as error:
            return Ending("crashed", f"the model request failed: {error}")
        if ending is not FINISHED:
            return ending
    return FINISHED


async def _one_turn(attempt: OpenAttempt, model: ModelGateway, conversation: list[Any]) -> Ending:
    """Requests and tool rounds until the model answers or the suite's limit is reached."""
    rounds = attempt.suite.loop.tool_rounds
    request: dict[str, Any] = {
        "model": attempt.trial.arm.model,
        "instructions": system_prompt(attempt),
        "tools": [function_tool(tool) for tool in attempt.tools.tools],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    for tool_round in range(rounds + 1):
        data = await _ask(model, {**request, "input": conversation})
        response = read_response(json.loads(data))
        keep = _as_it_is if _is_fit_to_keep(data) else mended
        attempt.notes.events.append(keep(response.told))
        conversation += map(keep, response.items)
        attempt.notes.answer(str(keep(response.text)))
        if (failure := response.failure) is not None:
            told = f"the provider failed while it answered: {failure.message} ({failure.code})"
            return Ending("infra_failed" if failure.code in _PROVIDERS_FAULTS else "crashed", told)
        if not response.calls:
            return FINISHED
        if tool_round == rounds:
            break
        for call in response.calls:
            output = await _call(attempt, call)
            conversation.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    return Ending("gave_up", f"the model still asked for tools after {rounds} rounds of calls, the loop's limit")


async def _ask(model: ModelGateway, request: dict[str, Any]) -> bytes:
    """Send one request through the gateway, with no client in between: the answer's JSON. Raises Refused.

    The provider's library would take a fifth of a trial's CPU time and change nothing of what is sent or kept.
    """
    body = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
    reply = await model.forward("/responses", _HEADERS, body)
    if reply.status >= 400:
        raise Refused(f"Error code: {reply.status} - {reply.data.decode(errors='replace')}")
    return reply.data


def _is_fit_to_keep(data: bytes) -> bool:
    """Whether no half of a surrogate pair can be in a JSON text, which most are; then nobody need walk over it.

    A half comes as an escape, or as bytes that are no ASCII.
    """
    return data.isascii() and b"\\ud" not in data.lower()


def _as_it_is(value: JsonValue) -> JsonValue:
    return value


async def _call(attempt: OpenAttempt, call: FunctionCall) -> str:
    """Make one call that the model asked for; what goes wrong is recorded and told to the model."""
    at = time.monotonic()
    arguments, problem = _arguments(call.arguments)
    if not problem and call.name not in {tool.name for tool in attempt.tools.tools}:
        problem = f"there is no tool {call.name!r}"
    result = None
    if not problem and isinstance(arguments, dict):
        result = await attempt.tools.call(call.name, arguments)
        problem = result_text(result) if result.is_error else ""
    attempt.notes.tool_calls.append(
        ToolCall(
            name=str(mended(call.name)),
            arguments=arguments,
            result=result_value(result) if result is not None and not problem else None,
            error=problem or None,
            started_s=at - attempt.started,
            duration_s=time.monotonic() - at,
            turn=attempt.tools.turn,
        )
    )
    if problem or result is None:
        return json.dumps({"error": problem})
    return json.dumps(value) if not isinstance(value := result_value(result), str) else value


def _arguments(text: str) -> tuple[JsonValue, str]:
    """What the model wrote as arguments, and what is wrong with it; the text itself where it is no JSON to keep."""
    try:
        arguments: JsonValue = json.loads(text or "{}")
    except ValueError as error:
        return mended(text), f"the arguments are no JSON: {error}"
    except RecursionError:
        return mended(text), "the arguments are nested too deep"
    if problem := why_not(arguments):
        return mended(text), f"the arguments hold {problem}"
    return arguments, "" if isinstance(arguments, dict) else "the arguments are no JSON object"


def system_prompt(attempt: OpenAttempt) -> str:
    """The suite's own prompt; a bare loop ignores the server's instructions, unless the suite asks for them."""
    options = attempt.suite.loop
    parts = [options.system_prompt, attempt.tools.instructions if options.server_instructions else ""]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def function_tool(tool: mcp_types.Tool) -> dict[str, JsonValue]:
    """An MCP tool as the Responses API takes it. Not strict: servers' schemas rarely fit its subset."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.input_schema,
        "strict": False,
    }
