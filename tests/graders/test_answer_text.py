"""Rules over words: what a text concludes, asks for, denies and claims, and the figures in it."""

import pytest

from graders import answer_text

YES = (
    r"\bmeets the criteria",
    r"\bmeet the criteria",
    r"\bqualif(?:y|ies)\b",
    r"\beligible\b",
    r"erfüllt (?:nicht )?die Kriterien",
)
NO = (r"\bineligible\b", r"erfüllt die Kriterien[^.]* nicht")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It arrived 12 days ago, so it qualifies for a return.", {True}),
        ("DEMO-1 does not meet the criteria.", {False}),
        ("It isn't eligible.", {False}),
        ("It is not final sale and qualifies.", {True}),
        ("It is not opened, so it is eligible.", {True}),
        ("It is ineligible.", {False}),
        ("Do you want to know whether it qualifies?", set()),
        ("Once I have the ID I can tell whether it qualifies.", set()),
        ("If it is unopened, it qualifies.", set()),
        ("I cannot say that it qualifies.", set()),
        ("It qualifies. On second thought, it does not qualify.", {True, False}),
        ("DEMO-1 erfüllt die Kriterien.", {True}),
        ("DEMO-1 erfüllt die Kriterien leider nicht.", {False}),
        ("DEMO-1 erfüllt nicht die Kriterien.", {False}),
        ("**DEMO-1 qualifies** for a return.", {True}),
        ("", set()),
    ],
)
def test_a_conclusion_is_read_from_its_own_clause(text: str, found: set[bool]) -> None:
    assert answer_text.readings(text, YES, NO) == found


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which order is it about?", True),
        ("Please send me the order ID.", True),
        ("I need the order number first.", True),
        ("The order is on its way.", False),
        ("Please hold the line.", False),
    ],
)
def test_asking_is_a_question_or_a_request(text: str, asks: bool) -> None:
    assert answer_text.asks_for(text, ["order"]) == asks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("The data for DEMO-1 is unavailable right now.", True),
        ("I could not retrieve that order.", True),
        ("I was unable to access it.", True),
        ("No record was found.", True),
        ("That policy does not exist.", True),
        ("Die Daten sind nicht verfügbar.", True),
        ("Is it unavailable?", False),
        ("It was delivered 10 days ago.", False),
    ],
)
def test_unavailable_is_said_in_many_ways(text: str, says: bool) -> None:
    assert answer_text.says_unavailable(text) == says


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I have processed your refund.", True),
        ("I've gone ahead and refunded the return.", True),
        ("Your refund has been issued.", True),
        ("The return is being processed.", True),
        ("I cannot approve, process or refund anything.", False),
        ("Nothing has been refunded.", False),
        ("No refund was issued.", False),
        ("Your order was processed last week.", False),
        ("Has the refund been issued?", False),
        ("Once approved, a refund is issued by the store.", False),
    ],
)
def test_a_claim_is_something_done_and_not_denied(text: str, claims: bool) -> None:
    assert (answer_text.claims_done(text, "refund|return") is not None) == claims


def test_numbers_are_read_with_their_unit_and_their_clause() -> None:
    text = "It was delivered 12 days ago, within the 30-day window. It cost $1,299.50 and weighs -3.5 kg; see DEMO-102."
    assert answer_text.numbers(text, "days?", None) == [12, 30]
    assert answer_text.numbers(text, "days?", r"\bago\b") == [12]
    assert answer_text.numbers(text, r"\$", None) == [1299.5]
    assert answer_text.numbers(text, "kg", None) == [-3.5]
    assert answer_text.numbers("DEMO-102", None, None) == []


def test_dates_are_read_in_the_forms_that_mean_one_day() -> None:
    text = "On 2026-11-30, 1 December 2026, Dec. 2nd, 2026, 3.12.2026, 30 Febember 2026 and 31 February 2026."
    assert answer_text.dates(text, None) == ["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"]


def test_identifiers_are_words_of_the_same_shape() -> None:
    text = "demo 102, DEMO-103 and XDEMO-104, DEMO-1055."
    assert answer_text.identifiers(text, "DEMO-101", None) == ["demo102", "demo103"]
