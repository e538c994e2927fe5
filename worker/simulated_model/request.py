"""A Responses API request as its model sees it, and what it costs."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import zstandard

from cases.policies import Seen, SeenResult, SeenTool, SeenTurn, plain_question

CHARS_PER_TOKEN = 4
"""The usual rule of thumb for English text; only its being a fixed function of the text matters here."""

#: A part of a user's message that a harness wrote: one element around all of it, as in <environment_context>.
_HARNESS_PART = re.compile(r"\s*<([a-z_]+)>.*</\1>\s*", re.DOTALL)
_MODEL_ITEMS = frozenset({"function_call", "reasoning"})


@dataclass(frozen=True)
class Request:
    """A request that can be answered."""

    seen: Seen
    streamed: bool
    input_tokens: int  #: includes the cached ones
    cached_tokens: int  #: what the conversation's previous request held already
    fingerprint: str  #: equal for a request that is sent again


def decode(body: bytes, encoding: str) -> bytes:
    """A body as it was before its content encoding. Raises ValueError for one that is not understood."""
    if encoding in ("", "identity"):
        return body
    if encoding != "zstd":
        raise ValueError(f"content-encoding {encoding!r} is not supported; send zstd or none")
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except zstandard.ZstdError as error:
        raise ValueError(f"the body is no zstd stream: {error}") from error


def parse(body: bytes) -> Request:
    """Read a request's JSON. Raises ValueError with a sentence that says what is wrong with it."""
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from error
    if not isinstance(asked, dict) or not isinstance(asked.get("model"), str):
        raise ValueError("the body is no object with a 'model'")
    items = _items(asked.get("input"))
    tools = [tool for tool in asked.get("tools") or [] if isinstance(tool, dict)]
    head = len(json.dumps([asked.get("instructions") or "", tools]))
    sizes = [len(_text_of(item)) for item in items]
    before = _length_before(items)
    whole = json.dumps([asked["model"], asked.get("instructions"), tools, items])
    return Request(
        seen=Seen(
            model=asked["model"],
            instructions="\n\n".join(_instructing(asked, tools, items)),
            tools=tuple(_flat(tools)),
            turns=_turns(items),
        ),
        streamed=bool(asked.get("stream")),
        input_tokens=(head + sum(sizes)) // CHARS_PER_TOKEN,
        cached_tokens=(head + sum(sizes[:before])) // CHARS_PER_TOKEN if before else 0,
        fingerprint=hashlib.sha256(whole.encode()).hexdigest(),
    )


def _items(given: object) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise ValueError("'input' is neither text nor a list of items")
    return [{"type": "message", **item} if "role" in item else item for item in given]


def _length_before(items: list[dict[str, Any]]) -> int:
    """How many items the conversation's previous request had: all before the model's last output; 0: no such request.

    That the history tells this makes the count the same whichever worker serves the request.
    """
    end = len(items)
    while end and not _is_models(items[end - 1]):
        end -= 1
    while end and _is_models(items[end - 1]):
        end -= 1
    return end


def _is_models(item: dict[str, Any]) -> bool:
    return item.get("type") in _MODEL_ITEMS or item.get("role") == "assistant"


def _parts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]


def _text_of(item: dict[str, Any]) -> str:
    """What of an item counts as tokens: its text, without IDs and times that differ from run to run."""
    match item.get("type"):
        case "message":
            return "\n".join(_parts(item.get("content")))
        case "function_call":
            return f"{item.get('name')} {item.get('arguments')}"
        case "function_call_output":
            return "\n".join(_parts(item.get("output")))
        case _:
            return ""


def _instructing(asked: dict[str, Any], tools: list[dict[str, Any]], items: list[dict[str, Any]]) -> list[str]:
    texts = [str(asked.get("instructions") or "")]
    for item in items:
        if item.get("role") in ("system", "developer"):
            texts += _parts(item.get("content"))
    texts += [str(tool.get("description") or "") for tool in tools if tool.get("type") == "namespace"]
    return [text for text in texts if text]


def _flat(tools: list[dict[str, Any]]) -> list[SeenTool]:
    flat: list[SeenTool] = []
    for tool in tools:
        if tool.get("type") == "namespace":
            flat += [_tool(inner, str(tool["name"])) for inner in tool.get("tools") or []]
        elif tool.get("type") == "function":
            flat.append(_tool(tool, None))
    return flat


def _tool(tool: dict[str, Any], namespace: str | None) -> SeenTool:
    return SeenTool(str(tool["name"]), namespace, str(tool.get("description") or ""), tool.get("parameters") or {})


def _turns(items: list[dict[str, Any]]) -> tuple[SeenTurn, ...]:
    """The conversation by its questions; what comes before the first question belongs to a turn without one."""
    turns: list[SeenTurn] = []
    calls: dict[str, dict[str, Any]] = {}
    for item in items:
        if item.get("role") == "user":
            if question := _question(item):
                turns.append(SeenTurn(question))
            continue
        last = turns.pop() if turns else SeenTurn("")
        match item.get("type"):
            case "function_call":
                calls[str(item.get("call_id"))] = item
            case "function_call_output":
                call = calls.get(str(item.get("call_id")), {})
                output = "\n".join(_parts(item.get("output")))
                result = SeenResult(str(call.get("name", "")), _arguments(call.get("arguments")), output)
                last = SeenTurn(last.question, (*last.results, result), last.answer)
            case "message" if item.get("role") == "assistant":
                last = SeenTurn(last.question, last.results, "\n".join(_parts(item.get("content"))))
        if last != SeenTurn(""):
            turns.append(last)
    return tuple(turns)


def _question(item: dict[str, Any]) -> str:
    said = [part for part in _parts(item.get("content")) if not _HARNESS_PART.fullmatch(part)]
    return plain_question("\n".join(said))


def _arguments(text: object) -> dict[str, Any] | str:
    try:
        value = json.loads(str(text))
    except ValueError:
        return str(text)
    return value if isinstance(value, dict) else str(text)
