"""What a response of the Responses API says, read as far as the loop needs it. Pure.

Providers differ in what they leave out and add, so nothing is required of a response: what is not there was not said.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

#: What a provider repeats of the request. The trace has it already, once for the attempt.
_REPEATED = ("tools", "instructions")


@dataclass(frozen=True)
class FunctionCall:
    """A call that the model asks for."""

    call_id: str
    name: str
    arguments: str  #: JSON, if the model wrote it right


@dataclass(frozen=True)
class Failure:
    """Why the provider failed while it answered."""

    code: str
    message: str


@dataclass(frozen=True)
class Response:
    """One answer of the model."""

    told: dict[str, JsonValue]  #: all of it that says something: no null fields, nothing that only repeats the request
    items: tuple[dict[str, JsonValue], ...]  #: of the output, in the form in which the API takes them back
    text: str
    calls: tuple[FunctionCall, ...]
    failure: Failure | None


def read_response(document: JsonValue) -> Response:
    """Read a response's JSON."""
    said = _object(_without_nulls(document))
    told = {name: value for name, value in said.items() if name not in _REPEATED}
    items = tuple(item for item in _list(said.get("output")) if isinstance(item, dict))
    calls = tuple(
        FunctionCall(_text(item.get("call_id")), _text(item.get("name")), _text(item.get("arguments")))
        for item in items
        if item.get("type") == "function_call"
    )
    error = _object(said.get("error"))
    failure = Failure(_text(error.get("code")), _text(error.get("message"))) if error else None
    return Response(told, items, "".join(map(_text_of, items)), calls, failure)


def _text_of(item: dict[str, Any]) -> str:
    """What one item of the output says to the user."""
    if item.get("type") != "message":
        return ""
    parts = [_object(part) for part in _list(item.get("content"))]
    return "".join(_text(part.get("text")) for part in parts if part.get("type") == "output_text")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
