import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.conversation_rules import ConversationRules, Guard, PortablePattern, any_of

_PATTERN: TypeAdapter[str] = TypeAdapter(PortablePattern)
_ROWS = Rows()


@pytest.mark.parametrize(
    "pattern",
    [
        "INVALID_FIELD",
        r"\bE1\d\d\b",
        "Permission '[^']*' denied",
        "a{2,3}?",
        "(a|b)+c",
        r"\$\{x\}",
        "日本",
        "[a-z&|-]x",
    ],
)
def test_what_every_engine_reads_alike_is_taken(pattern: str) -> None:
    assert _PATTERN.validate_python(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?i)x", "'(?i)x' uses '(?i)', which not every engine reads alike"),
        ("x$", "'x$' uses '$', which not every engine reads alike"),
        (r"\sx", r"'\\sx' uses '\\sx', which not every engine reads alike"),
        (r"(a)\1", r"'(a)\\1' uses '\\1', which not every engine reads alike"),
        ("a++", "'a++' uses '++', which not every engine reads alike"),
        ("(a", "'(a' is no regular expression: missing ), unterminated subpattern at position 0"),
        ("a*", "'a*' is found in an empty text, so it would be found everywhere"),
        ("", "'' is found in an empty text, so it would be found everywhere"),
    ],
)
def test_what_they_read_differently_is_refused_with_the_place(pattern: str, why: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _PATTERN.validate_python(pattern)
    assert refused.value.errors()[0]["msg"] == f"Value error, {why}"


_MADE = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "é",
            ".",
            "|",
            "(",
            ")",
            "*",
            "+",
            "?",
            "{2}",
            "{1,2}",
            r"\d",
            r"\w",
            r"\b",
            r"\W",
            r"\.",
            "[a-c]",
            "[^a]",
            r"[^\d]",
            "0",
            " ",
            "ſ",
            "^",
            "$",
            r"\s",
            r"\B",
            "(?",
            "[[:a",
            "{,2}",
        ]
    ),
    min_size=1,
    max_size=6,
).map("".join)


@given(_MADE, st.text("abcé0 .\n\x00ſA_", max_size=8))
def test_a_pattern_that_is_taken_finds_the_same_in_both_engines(pattern: str, text: str) -> None:
    try:
        _PATTERN.validate_python(pattern)
    except ValidationError:
        return
    one = any_of((pattern,))
    ((found, places, whole),) = _ROWS.records(
        "SELECT regexp_matches($1, $2), len(regexp_extract_all($1, $2)), regexp_full_match($1, $2)", [text, one]
    )
    engine = re.compile(one, re.ASCII)
    mine = (engine.search(text) is not None, len(list(engine.finditer(text))), engine.fullmatch(text) is not None)
    assert (found, places, whole) == mine


def test_a_suite_adds_to_lists_and_sets_its_own_number() -> None:
    base = ConversationRules(
        completed_chars=200, timeouts=("timed out",), guards={"a": Guard(tools=("t",), must_match="x")}
    )
    more = ConversationRules(
        completed_chars=20, timeouts=("late", "timed out"), guards={"b": Guard(tools=("t",), must_not_match="y")}
    )
    assert base.extended(more) == ConversationRules(
        completed_chars=20, timeouts=("timed out", "late"), guards={**base.guards, **more.guards}
    )
    assert base.extended(ConversationRules()) == base


def test_a_guard_has_one_rule() -> None:
    for rule in ({}, {"must_match": "a", "must_not_match": "b"}):
        with pytest.raises(ValidationError, match="give exactly one of must_match and must_not_match"):
            Guard.model_validate({"tools": ["t"], **rule})
