"""Which way a text settles a question, and what it leaves to others."""

import pytest

from evalfarm.contracts.answer import Conclusion
from graders.reading.conclusions import Settled, settled

WORDS = Conclusion.model_validate(
    {
        "asks": "Does it qualify?",
        "outright": True,
        "about": ["qualif", "eligib", r"\bback\b", "window"],
        "yes": [
            r"\bmeets? the criteria",
            r"\bqualif(?:y|ies)\b",
            r"\beligible\b",
            r"\bnot ineligible\b",
            r"\bnothing stands against",
            r"erfüllt (?:[\w-]+ )*?Kriterien",
        ],
        "no": [r"\bineligible\b", r"\bpast the window", r"erfüllt (?:[\w-]+ )*?Kriterien[^.]* nicht"],
    }
)


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("It arrived 12 days ago, so it qualifies for a return.", {True}),
        ("DEMO-1 does not meet the criteria.", {False}),
        ("It isn't eligible.", {False}),
        ("It is not final sale and qualifies.", {True}),
        ("It is not opened, so it is eligible.", {True}),
        ("It is ineligible.", {False}),
        ("It is not ineligible.", {True}),
        ("Nothing stands against it.", {True}),
        ("No doubt it qualifies.", {True}),
        ("It qualifies. On second thought, it does not qualify.", {True, False}),
        ("DEMO-1 erfüllt die Kriterien.", {True}),
        ("DEMO-1 erfüllt die Kriterien leider nicht.", {False}),
        ("DEMO-1 erfüllt nicht die Kriterien.", {False}),
        ("**DEMO-1 qualifies** for a return.", {True}),
        ("You say that it qualifies, but it does not qualify.", {False}),
        ('"It qualifies" is wrong: it is not eligible.', {False}),
        ("- Eligible: no", {False}),
        ("Do you want to know whether it qualifies?", set()),
        ("Once I have the ID I can tell whether it qualifies.", set()),
        ("If it is unopened, it qualifies.", set()),
        ("I cannot say that it qualifies.", set()),
        ("", set()),
        # A bare word answers the question, where no phrase does.
        ("Yes, it was there.", {True}),
        ("Unfortunately not.", {False}),
        ("Leider nein, das ist ein Sonderverkauf.", {False}),
        ("It came 50 days ago, so no.", {False}),
        ("Is it new? Yes. Is it mine? No.", {True, False}),
        ("No, I cannot do that, though it qualifies.", {True}),
        ("No problem, I will look.", set()),
        ("- Unopened: yes", set()),
    ],
)
def test_a_conclusion_is_read_from_its_own_clause(text: str, ways: set[bool]) -> None:
    assert settled(text, WORDS, asked=True).ways == ways


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It should qualify.", Settled(frozenset(), weakly="It should qualify.")),
        ("Such items are eligible.", Settled(frozenset(), weakly="Such items are eligible.")),
        ("It is not past the window.", Settled(frozenset(), weakly="It is not past the window.")),
        ("If it is new it qualifies.", Settled(frozenset(), supposed="If it is new it qualifies.")),
        ("You can send it back.", Settled(frozenset(), unread="You can send it back.")),
        ("It is blue.", Settled(frozenset())),
    ],
)
def test_what_no_rule_can_read_is_told_apart_from_silence(text: str, found: Settled) -> None:
    assert settled(text, WORDS, asked=True) == found


def test_a_bare_word_answers_a_question_alone_and_only_where_the_suite_says_so() -> None:
    assert settled("Yes.", WORDS, asked=False).ways == frozenset()
    assert settled("Yes.", WORDS.model_copy(update={"outright": False}), asked=True).ways == frozenset()


def test_without_words_of_its_subject_any_statement_may_bear_on_a_question() -> None:
    assert settled("It is blue.", WORDS.model_copy(update={"about": ()}), asked=True).unread == "It is blue."
