"""What each clause of a text does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.reading.clauses import clauses, sentences, stretches


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("It qualifies.", ["asserts"]),
        ("Does it qualify?", ["leaves_open"]),
        ("I cannot tell whether it qualifies.", ["leaves_open"]),
        ("That does not mean that it qualifies.", ["leaves_open"]),
        ("If it is new, it qualifies.", ["supposes", "supposes"]),
        ("It meets every other condition.", ["supposes"]),
        ("It should qualify.", ["hedges"]),
        ("Final-sale items are excluded.", ["generalises"]),
        ("Your items are excluded.", ["asserts"]),
        ("It usually qualifies.", ["generalises"]),
        ("You say it is unopened, but the record says opened.", ["reports", "asserts"]),
        ("According to your message it qualifies.", ["reports"]),
        ("It fails because it was opened, not because it is old.", ["asserts"] * 3),
        ("“It qualifies” is not what the record says.", ["asserts"]),
        ("Not new – opened.", ["asserts", "asserts"]),
    ],
)
def test_a_clause_asserts_or_does_something_else(text: str, does: list[str]) -> None:
    assert [clause.does for clause in clauses(text)] == does


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("- Final sale: no", "not Final sale"),
        ("- **Final sale:** Yes", "Final sale"),
        ("| Not final sale | No |", "final sale"),
        ("final_sale: true", "final_sale"),
        ("unopened = false", "not unopened"),
        ("Short answer: no", "Short answer"),
    ],
)
def test_what_a_list_ticks_off_is_a_statement(line: str, told: str) -> None:
    assert next(clause.text for clause in clauses(line)).strip("- ") == told


def test_emphasis_is_no_part_of_a_sentence_and_an_underscore_in_a_word_is() -> None:
    assert sentences("**Yes.** _Really_, the `order_id` is 3.5!\nNo.") == [
        "Yes.",
        "Really, the order_id is 3.5!",
        "No.",
    ]


def test_a_stretch_leaves_out_what_the_user_is_said_to_say() -> None:
    text = "You said it arrived 7 days ago, but it arrived 50 days ago."
    assert stretches(text, "ago") == ["it arrived 50 days ago."]
    assert stretches(text, None) == [text]


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    assert all(clause.text for clause in clauses(text))
