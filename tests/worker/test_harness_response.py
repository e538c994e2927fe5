from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.harnesses.response import Failure, FunctionCall, Response, read_response

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=20,
)


def message(*texts: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts]}


def test_a_response_is_read_without_nulls_and_without_what_it_repeats_of_the_request() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "content": None}
    call = {"type": "function_call", "call_id": "call_0", "name": "look", "arguments": "{}", "id": None}
    output = [reasoning, call, message("A ", "vase.")]
    document = {
        "id": "resp_1",
        "error": None,
        "tools": [{"name": "look"}],
        "instructions": "Be brief.",
        "output": output,
    }
    items = (
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "call_0", "name": "look", "arguments": "{}"},
        message("A ", "vase."),
    )
    assert read_response(document) == Response(
        told={"id": "resp_1", "output": list(items)},
        items=items,
        text="A vase.",
        calls=(FunctionCall("call_0", "look", "{}"),),
        failure=None,
    )


def test_a_refusal_and_reasoning_are_no_answer() -> None:
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert read_response({"output": [thought, refusal]}).text == ""


def test_a_failure_of_the_provider_is_read_with_its_code() -> None:
    failed = {"output": [], "error": {"code": "server_error", "message": "Sorry."}}
    assert read_response(failed).failure == Failure("server_error", "Sorry.")


@pytest.mark.parametrize("output", [None, "text", {"type": "message"}, [None, 3, "text", []]])
def test_an_output_that_is_none_says_nothing(output: Any) -> None:
    read = read_response({"output": output})
    assert (read.items, read.text, read.calls, read.failure) == ((), "", (), None)


@given(VALUES)
def test_whatever_a_provider_sends_is_read(document: Any) -> None:
    read = read_response(document)
    assert read == read_response(read.told | {"tools": ["again"]})
