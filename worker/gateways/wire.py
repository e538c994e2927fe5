"""Reads what an exchange with the Responses API says, without touching it. Pure."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import zstandard

_SPAWNED = "collab_spawn"
_FINAL = ("response.completed", "response.incomplete", "response.failed")


class UsageReader:
    """Watches a response go by, whole or as server-sent events, and keeps its figures."""

    def __init__(self, streamed: bool) -> None:
        self._streamed = streamed
        self._buffer = bytearray()
        self._response: dict[str, Any] = {}
        self.complete = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body; for a whole response, all of it."""
        if not self._streamed:
            self._take(_parse(chunk))
            return
        self._buffer = (self._buffer + chunk).replace(b"\r\n", b"\n")
        while (end := self._buffer.find(b"\n\n")) >= 0:
            event = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            # Only the last event carries usage; parsing the deltas would cost more than the rest of the gateway.
            if any(f'"{name}"'.encode() in event for name in _FINAL):
                data = b"".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
                self._take(_parse(data).get("response"))

    def _take(self, response: object) -> None:
        if isinstance(response, dict):
            self._response = response
            self.complete = True

    @property
    def is_response(self) -> bool:
        """Whether what came is a response of the API, whatever is in it."""
        return isinstance(self._response.get("output"), list)

    @property
    def error(self) -> str | None:
        """What the provider said went wrong, if it did."""
        error = self._response.get("error")
        return str(error.get("message") or error) if isinstance(error, dict) else None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out together; None: not told."""
        figures = self.figures()
        told = (figures["input_tokens"], figures["output_tokens"])
        return None if None in told else sum(told)

    def figures(self) -> dict[str, Any]:
        """The fields of ModelRequest that come from the response's body; None where it does not say."""
        usage = _object(self._response.get("usage"))
        of_input = _object(usage.get("input_tokens_details"))
        return {
            "response_id": _text(self._response.get("id")),
            "model": _text(self._response.get("model")),
            "input_tokens": _count(usage.get("input_tokens")),
            "cached_tokens": _count(of_input.get("cached_tokens")),
            "cached_write_tokens": _count(of_input.get("cache_write_tokens")),
            "output_tokens": _count(usage.get("output_tokens")),
            "reasoning_tokens": _count(_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
        }


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises ValueError for anything else."""
    try:
        value = json.loads(body)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def tools_shown(request: dict[str, Any]) -> str:
    """All that a request says of tools, as one text to look names up in.

    Plain function tools and namespaces stand in `tools`. Codex shows some models their tools inside the
    description of one code-running tool, in an `additional_tools` item of the input; that counts as shown.
    """
    items = request.get("input")
    more = (
        [i for i in items if isinstance(i, dict) and i.get("type") == "additional_tools"]
        if isinstance(items, list)
        else []
    )
    return json.dumps([request.get("tools") or [], more])


def is_side_call(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is none of the conversation's own: a summary of the thread, a title, a review, a memory.

    Codex says of each request what kind it is, in a header of JSON (`request_kind`: turn, compaction, …), and which
    of its helpers makes it. An agent that was sent off with a part of the task (`collab_spawn`) does the
    conversation's own work. Whoever says nothing of the kind, as our own loop, makes no side calls but to other paths.
    """
    told = {name.lower(): value for name, value in headers.items()}
    said = told.get("x-codex-turn-metadata")
    kind = "turn" if said is None else _parse(said.encode()).get("request_kind", "turn")
    return path != "/responses" or kind != "turn" or told.get("x-openai-subagent", _SPAWNED) != _SPAWNED


def decoded(headers: Mapping[str, str], body: bytes) -> bytes:
    """A request's body without its content encoding. Raises ValueError for one that cannot be undone."""
    encoding = {name.lower(): value for name, value in headers.items()}.get("content-encoding", "")
    if encoding in ("", "identity"):
        return body
    if encoding != "zstd":
        raise ValueError(f"content-encoding {encoding!r} is not supported")
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from `retry-after-ms`, else from Retry-After, which holds seconds or a date; None: neither can be read.

    A date is held against the response's own `Date`, so that no clock but the provider's matters; without one, against
    `now` (with its time zone).
    """
    for name, seconds in (("retry-after-ms", _milliseconds), ("retry-after", float)):
        with suppress(KeyError, ValueError):
            return max(0.0, told) if isfinite(told := seconds(headers[name])) else None
    until = _date(headers.get("retry-after", ""))
    return None if until is None else max(0.0, (until - (_date(headers.get("date", "")) or now)).total_seconds())


def _milliseconds(text: str) -> float:
    return float(text) / 1000


def _date(text: str) -> datetime | None:
    try:
        told = parsedate_to_datetime(text)
    except ValueError:
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)  # -0000: UTC from a place that is not told


def _parse(data: bytes) -> dict[str, Any]:
    try:
        return json_object(data)
    except ValueError:
        return {}


# What a provider sends need not be what its documents say; a figure that cannot be one is a figure not told.
def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
