import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import ToolCall
from worker.storable import MAX_DEPTH, mended, why_not

half_pairs = st.text(st.characters(categories=["Cs", "Lu"]), max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | half_pairs,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(half_pairs, inner, max_size=3),
    max_leaves=8,
)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


def is_stored(value: Any) -> bool:
    call = ToolCall(name="take", arguments=value)
    try:
        return ToolCall.model_validate_json(call.model_dump_json()) == call
    except ValueError:
        return False


@given(value=json_values)
def test_what_there_is_nothing_against_is_stored_and_read_back(value: Any) -> None:
    assert is_stored(value) == (why_not(value) == "")


@given(value=json_values)
def test_what_was_mended_is_stored_and_is_the_same_where_nothing_was_broken(value: Any) -> None:
    assert is_stored(mended(value))
    assert why_not(value) != "" or mended(value) == value


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, 100_000])
def test_nesting_is_kept_up_to_a_limit(levels: int) -> None:
    assert why_not(nested(levels)) == ("" if levels < MAX_DEPTH else f"more than {MAX_DEPTH} levels of nesting")


def test_half_a_pair_is_found_wherever_it_stands_and_becomes_a_question_mark() -> None:
    broken = json.loads('{"a": ["\\ud83d\\ude00", {"\\ud83d": "x\\ude00"}]}')
    assert why_not(broken) == "half a surrogate pair, which is no text"
    assert mended(broken) == {"a": ["😀", {"?": "x?"}]}
