from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.answer import Criterion, Rubric
from evalfarm.contracts.judging import CriterionLabel, Exhibit
from evalfarm.contracts.run import Turn
from graders.judge.reply import Unusable, read_labels, read_preference


def test_labels_come_in_the_rubric_s_order_and_an_abstention_is_inconclusive(
    rubric: Rubric, exhibit: Exhibit, make: Any
) -> None:
    given_ = {
        "labels": [make.label("modest", "ABSTAIN", quote="", reason="Cannot be told."), make.label("right", "FAIL")]
    }
    assert read_labels(make.response(given_), rubric, exhibit) == (
        CriterionLabel(criterion="right", value="FAIL", quote="it qualifies", reason="So it is."),
        CriterionLabel(criterion="modest", value="INCONCLUSIVE", quote="", reason="Cannot be told."),
    )


@pytest.mark.parametrize(
    "quote", ["“It arrived 12 days AGO”", "final_sale", "Can I return A-1?", "12  days\nago…", "true"]
)
def test_a_quote_may_come_from_anything_that_was_shown_however_it_is_dressed(
    quote: str, rubric: Rubric, exhibit: Exhibit, make: Any
) -> None:
    given_ = {"labels": [make.label("right", quote=quote), make.label("modest", quote=quote)]}
    assert [label.quote for label in read_labels(make.response(given_), rubric, exhibit)] == [quote, quote]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ([("right", "PASS", "nobody said this")], "it labels right, and the criteria are right, modest"),
        ([("right", "PASS", "it qualifies"), ("right", "PASS", "it qualifies")], "it labels right, and the criteria"),
        ([("right", "PASS", "it qualifies"), ("other", "PASS", "it qualifies")], "it labels right, other, and the"),
        (
            [("right", "FAIL", "It qualified"), ("modest", "PASS", "it qualifies")],
            "the quote for criterion 'right' stands nowhere in what was shown: It qualified",
        ),
        (
            [("right", "PASS", "… ."), ("modest", "PASS", "it qualifies")],
            "it gives no quote for criterion 'right'",
        ),
        ([("right", "MAYBE", "it qualifies")], "it is not of the form that was asked for: labels.0.label: "),
    ],
)
def test_a_reply_that_does_not_hold_is_unusable_and_says_why(
    labels: list[tuple[str, str, str]], why: str, rubric: Rubric, exhibit: Exhibit, make: Any
) -> None:
    given_ = {"labels": [make.label(name, value, quote=quote) for name, value, quote in labels]}
    with pytest.raises(Unusable) as caught:
        read_labels(make.response(given_), rubric, exhibit)
    assert str(caught.value).startswith(why)


def test_a_word_cut_in_half_is_no_quote(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    given_ = {"labels": [make.label("right", quote="qualif"), make.label("modest")]}
    with pytest.raises(Unusable, match="stands nowhere"):
        read_labels(make.response(given_), rubric, exhibit)


def test_a_refusal_a_response_cut_short_and_silence_are_unusable(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    refusal = {"type": "refusal", "refusal": "I would rather not."}
    whys = {
        "the judge refused: I would rather not.": {"output": [{"type": "message", "content": [refusal]}]},
        "the response is incomplete: max_output_tokens": {
            **make.response('{"labels": ['),
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
        },
        "the response is failed: overloaded": {"status": "failed", "error": {"message": "overloaded"}, "output": []},
        "it holds no text": {"status": "completed", "output": [{"type": "reasoning"}]},
    }
    for why, response in whys.items():
        with pytest.raises(Unusable) as caught:
            read_labels(response, rubric, exhibit)
        assert str(caught.value) == why


def test_a_preference_is_a_place_or_neither(exhibit: Exhibit, make: Any) -> None:
    def choice(better: str, quote: str = "it qualifies") -> dict[str, Any]:
        return make.response({"quote": quote, "reason": "So.", "better": better})

    assert read_preference(choice("second"), exhibit, exhibit) == "second"
    assert read_preference(choice("neither", quote=""), exhibit, exhibit) is None
    with pytest.raises(Unusable, match="the quote for its choice stands nowhere"):
        read_preference(choice("first", quote="Never said"), exhibit, exhibit)


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=3)))
def test_no_reply_ever_becomes_a_label_that_it_does_not_state(document: Any) -> None:
    rubric = Rubric(id="desk", version="1", criteria=(Criterion(id="right", text="It is right."),))
    exhibit = Exhibit(turns=(Turn(query="Can I?", answer="Yes."),))
    output = [{"type": "message", "content": [{"type": "output_text", "text": str(document)}]}]
    with pytest.raises(Unusable):
        read_labels({"status": "completed", "output": output}, rubric, exhibit)
