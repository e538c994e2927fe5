"""A policy's move as the Responses API puts it: one body, or server-sent events."""

import json
from collections.abc import Iterator
from typing import Any

from cases.policies import Answer, Call, Calls, Fault, Seen
from worker.simulated_model.request import CHARS_PER_TOKEN, Request

DELTA_CHARS = 24
"""Characters in one delta of a stream: a few words, as providers send them."""


def response_body(move: Calls | Answer, request: Request, response_id: str, created_at: float) -> dict[str, Any]:
    """The `response` object: output items, usage, and the note that nothing but a simulation answered."""
    output = _items(move, request.seen, response_id.removeprefix("resp_"))
    written = sum(len(item["arguments"]) if "arguments" in item else len(_text(item)) for item in output)
    output_tokens = -(-written // CHARS_PER_TOKEN) + move.reasoning_tokens
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {"simulated": "true"},
        "model": request.seen.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": request.input_tokens,
            "input_tokens_details": {"cached_tokens": request.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": move.reasoning_tokens},
            "total_tokens": request.input_tokens + output_tokens,
        },
    }


def _items(move: Calls | Answer, seen: Seen, unique: str) -> list[dict[str, Any]]:
    match move:
        case Calls():
            return [_call_item(call, seen, f"{unique}_{at}") for at, call in enumerate(move.calls)]
        case Answer():
            part = {"type": "output_text", "text": move.text, "annotations": [], "logprobs": []}
            message = {"type": "message", "id": f"msg_{unique}", "role": "assistant"}
            return [{**message, "status": "completed", "content": [part]}]


def _call_item(call: Call, seen: Seen, unique: str) -> dict[str, Any]:
    """A call of the tool by the name and in the namespace in which it was shown; one that was not stands alone."""
    tool = seen.tool(call.name)
    item = {
        "type": "function_call",
        "id": f"fc_{unique}",
        "call_id": f"call_{unique}",
        "name": call.name if tool is None else tool.name,
        "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
        "status": "completed",
    }
    return item if tool is None or tool.namespace is None else {**item, "namespace": tool.namespace}


def _text(item: dict[str, Any]) -> str:
    text: str = item["content"][0]["text"]
    return text


def event_stream(response: dict[str, Any]) -> list[bytes]:
    """The same response as server-sent events, one element an event, numbered from 0."""
    frames = []
    for number, event in enumerate(_events(response)):
        data = json.dumps({**event, "sequence_number": number})
        frames.append(f"event: {event['type']}\ndata: {data}\n\n".encode())
    return frames


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(response["output"]):
        place = {"output_index": at}
        body = _call_events(item) if item["type"] == "function_call" else _message_events(item)
        empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield {"type": "response.output_item.added", **place, "item": {**item, **empty, "status": "in_progress"}}
        for event in body:
            yield {**event, **place, "item_id": item["id"]}
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": "response.completed", "response": response}


def _call_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = item["arguments"]
    for delta in _deltas(text):
        yield {"type": "response.function_call_arguments.delta", "delta": delta}
    yield {"type": "response.function_call_arguments.done", "arguments": text, "name": item["name"]}


def _message_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part, at = item["content"][0], {"content_index": 0}
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for delta in _deltas(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def _deltas(text: str) -> list[str]:
    return [text[at : at + DELTA_CHARS] for at in range(0, len(text), DELTA_CHARS)]


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An error as OpenAI's API words it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def fault_body(fault: Fault) -> dict[str, Any]:
    """The body of a fault that is an HTTP error."""
    if fault.status == 429:
        return error_body("Rate limit reached. Please try again later.", "requests", "rate_limit_exceeded")
    return error_body("The server had an error while processing your request.", "server_error")
