from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from evalfarm.contracts.route import Check, Expectation
from evalfarm.contracts.run import ToolCall
from evalfarm.contracts.suite import Case
from graders.paths import found_instead, groups_at
from graders.tool_route import judge_route

DOCUMENT: JsonValue = {
    "time": "12:00",
    "ids": ["a", "b"],
    "results": [{"candidates": [{"id": 1}, {"id": 2}]}, {"candidates": []}, {"note": "none"}],
    "grid": [[1, 2], [3]],
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("path", "groups"),
    [
        ("time", [["12:00"]]),
        ("ids[*]", [["a", "b"]]),
        ("ids", [[["a", "b"]]]),
        ("results[*].candidates[*]", [[{"id": 1}, {"id": 2}], []]),
        ("results[*].candidates[*].id", [[1], [2]]),
        ("grid[*][*]", [[1, 2], [3]]),
        ("missing", []),
        ("missing[*]", []),
        ("time[*]", [[]]),
        ("time.hour", []),
    ],
)
def test_a_path_finds_records_grouped_by_their_list(path: str, groups: list[list[JsonValue]]) -> None:
    assert groups_at(DOCUMENT, path) == groups


def test_a_path_may_begin_at_a_list() -> None:
    assert groups_at([{"id": 1}, {"id": 2}], "[*].id") == [[1], [2]]


@given(JSON, st.from_regex(r"(\[\*\]|[abc])(\[\*\])?(\.[abc](\[\*\])?){0,3}", fullmatch=True))
def test_any_path_over_any_document_finds_a_list_of_lists(document: JsonValue, path: str) -> None:
    assert Check(tool="t", at=path, exactly=()).at == path
    assert all(isinstance(group, list) for group in groups_at(document, path))


@pytest.mark.parametrize("path", ["", ".a", "a.", "a..b", "a[0]", "a[*", "a[*]b", "$.a[*"])
def test_a_path_that_does_not_read_is_refused_when_the_case_is_made(path: str) -> None:
    with pytest.raises(ValidationError, match="is no path: give names separated by dots"):
        Check(tool="t", at=path, exactly=())


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("parts", "at the top there are `note`, `results`"),
        ("results[*].part", "at `results[*]` there is `id`"),
        ("results.id", "at `results` there is a list"),
        ("note[*]", "at `note` there is text"),
        ("results[*].id[*]", "at `results[*].id` there is a number"),
    ],
)
def test_what_is_there_instead_is_said_where_a_path_ends(path: str, there: str) -> None:
    assert found_instead({"results": [{"id": 1}], "note": "n"}, path) == there


def test_a_check_that_looks_in_the_wrong_place_says_what_is_there(
    headline: Case, traced: Any, resolve: ToolCall
) -> None:
    expect = {"results": [{"tool": "resolve", "at": "parts[*]", "includes": [1]}]}
    case = headline.model_copy(update={"expect": Expectation.model_validate(expect)})
    assert judge_route(case, traced(resolve)).reasons == (
        "resolve did not return 1: nothing was found at `parts[*]`, at the top there is `results`",
    )
