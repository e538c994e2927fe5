import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from worker.gateways.wire import UsageReader, decoded, is_side_call, json_object, retry_after_s, tools_shown

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "model": "gpt-x-2026-01-01",
    "output": [{"text": "5 \n\n %"}],
    "usage": USAGE,
}
FIGURES = {
    "response_id": "resp_1",
    "model": "gpt-x-2026-01-01",
    "input_tokens": 100,
    "cached_tokens": 40,
    "cached_write_tokens": 7,
    "output_tokens": 20,
    "reasoning_tokens": 5,
}
NOTHING: dict[str, Any] = dict.fromkeys(FIGURES)


def event(kind: str, newline: str = "\n", **data: Any) -> bytes:
    text = json.dumps({"type": kind, **data})
    return f"event: {kind}{newline}data: {text}{newline}{newline}".encode()


def stream(newline: str = "\n", end: str = "response.completed") -> bytes:
    started = {**RESPONSE, "usage": None}
    begun = event("response.created", newline, response=started) + event(
        "response.output_text.delta", newline, delta="5"
    )
    return begun + event(end, newline, response=RESPONSE)


def read(*chunks: bytes, streamed: bool) -> UsageReader:
    reader = UsageReader(streamed)
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def test_the_figures_of_a_whole_response_are_the_providers() -> None:
    assert read(json.dumps(RESPONSE).encode(), streamed=False).figures() == FIGURES


@pytest.mark.parametrize("end", ["response.completed", "response.incomplete", "response.failed"])
@given(cuts=st.lists(st.integers(0, 800), max_size=9), newline=st.sampled_from(["\n", "\r\n"]))
def test_the_figures_of_a_stream_are_the_same_however_its_bytes_are_cut(
    end: str, cuts: list[int], newline: str
) -> None:
    data = stream(newline, end)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = read(*(data[a:b] for a, b in pairwise(places)), streamed=True)
    assert (reader.figures(), reader.complete) == (FIGURES, True)


@given(kept=st.integers(0, len(stream()) - 1))
def test_a_stream_that_ends_early_is_not_complete_and_says_nothing(kept: int) -> None:
    reader = read(stream()[:kept], streamed=True)
    assert (reader.figures(), reader.complete, reader.error) == (NOTHING, False, None)


@pytest.mark.parametrize(
    "body",
    [b"", b"Bad gateway", b"[1]", b'"text"', b"[" * 100_000, b'{"usage": 7, "id": 7, "model": []}', b'{"usage": {}}'],
)
def test_what_a_provider_does_not_say_is_unknown(body: bytes) -> None:
    assert read(body, streamed=False).figures() == NOTHING


def test_a_count_that_is_none_is_unknown() -> None:
    usage = {"input_tokens": "many", "input_tokens_details": [], "output_tokens": -1, "output_tokens_details": None}
    body = json.dumps({**RESPONSE, "usage": usage}).encode()
    assert read(body, streamed=False).figures() == NOTHING | {"response_id": "resp_1", "model": "gpt-x-2026-01-01"}


@pytest.mark.parametrize(
    ("error", "told"), [({"message": "too long"}, "too long"), ({"code": "x"}, "{'code': 'x'}"), (None, None)]
)
def test_the_providers_own_error_is_told(error: Any, told: str | None) -> None:
    assert read(json.dumps({"error": error}).encode(), streamed=False).error == told


def test_tools_are_shown_as_functions_in_namespaces_and_in_additional_tools_but_not_by_being_talked_of() -> None:
    request = {
        "tools": [{"type": "function", "name": "look"}, {"type": "namespace", "tools": [{"name": "buy"}]}],
        "input": [
            {"role": "user", "content": "use the tool steal"},
            {"type": "additional_tools", "tools": [{"type": "custom", "description": "tools.mcp__Shop__sell(...)"}]},
            "text",
        ],
    }
    shown = tools_shown(request)
    assert [name for name in ('"name": "look"', '"name": "buy"', "mcp__Shop__sell", "steal") if name in shown] == [
        *('"name": "look"', '"name": "buy"', "mcp__Shop__sell")
    ]
    assert tools_shown({"input": "use the tool steal"}) == "[[], []]"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        (b"[]", "it is no JSON object"),
        (b"[" * 100_000, "it is nested too deep"),
    ],
)
def test_a_body_that_is_no_object_is_refused_with_the_reason(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        json_object(body)
    assert str(caught.value) == problem


@given(data=st.binary(max_size=400))
def test_a_compressed_body_is_what_was_compressed(data: bytes) -> None:
    assert decoded({"Content-Encoding": "zstd"}, zstandard.compress(data)) == data
    assert decoded({"content-encoding": "identity"}, data) == decoded({}, data) == data


@pytest.mark.parametrize(("encoding", "problem"), [("br", "content-encoding 'br' is not supported"), ("zstd", "zstd")])
def test_an_encoding_that_cannot_be_undone_is_refused(encoding: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoded({"content-encoding": encoding}, b"{}")


DATE, LATER = "Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:30 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": LATER, "date": DATE}, 30.0),
        ({"retry-after": DATE, "date": LATER}, 0.0),
        ({"retry-after": LATER, "date": "today"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "in a while"}, None),
        ({}, None),
    ],
)
def test_the_providers_wish_to_be_left_alone_is_read_as_seconds_or_as_a_date_by_its_own_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, datetime(2026, 10, 21, 7, 28, 10, tzinfo=UTC)) == seconds


def turn_metadata(**told: Any) -> dict[str, str]:
    return {"X-Codex-Turn-Metadata": json.dumps({"thread_id": "t", **told})}


@pytest.mark.parametrize(
    ("path", "headers", "side"),
    [
        ("/responses", {}, False),
        ("/responses", turn_metadata(), False),
        ("/responses", turn_metadata(request_kind="turn"), False),
        ("/responses", turn_metadata(request_kind="compaction"), True),
        ("/responses", turn_metadata(request_kind="turn") | {"x-openai-subagent": "review"}, True),
        ("/responses", turn_metadata(request_kind="turn") | {"x-openai-subagent": "collab_spawn"}, False),
        ("/responses", {"x-codex-turn-metadata": "no JSON"}, False),
        ("/responses/compact", {}, True),
    ],
)
def test_a_side_call_is_known_by_what_codex_says_of_it_and_by_where_it_goes(
    path: str, headers: dict[str, str], side: bool
) -> None:
    assert is_side_call(path, headers) is side
