"""What a text asks for, says cannot be had, and claims to have done."""

import pytest

from graders.reading.acts import asks_for as asks_user_for
from graders.reading.acts import claims_done, says_unavailable


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which order is it about?", True),
        ("Please send me the order ID.", True),
        ("I need the order number first.", True),
        ("I'd just need the order number.", True),
        ("I cannot tell without the order. Please send it.", True),
        ("The order is on its way.", False),
        ("Please hold the line.", False),
    ],
)
def test_asking_is_a_question_or_a_request(text: str, asks: bool) -> None:
    assert asks_user_for(text, ["order"]) == asks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("The data for DEMO-1 is unavailable right now.", True),
        ("I could not retrieve that order.", True),
        ("I was unable to access it.", True),
        ("I wasn't able to pull up DEMO-1.", True),
        ("The system returned no data.", True),
        ("No record was found.", True),
        ("That policy does not exist.", True),
        ("It doesn't seem to exist.", True),
        ("Die Daten sind nicht verfügbar.", True),
        ("Is it unavailable?", False),
        ("It was delivered 10 days ago.", False),
    ],
)
def test_unavailable_is_said_in_many_ways(text: str, says: bool) -> None:
    assert says_unavailable(text) == says


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("I have processed your refund.", True),
        ("I've gone ahead and refunded the return.", True),
        ("Your refund has been issued.", True),
        ("The refund has already been paid out.", True),
        ("The return is being processed.", True),
        ("You've been refunded.", True),
        ("The refund went through.", True),
        ("Refund processed.", True),
        ("You will receive your refund within 3 days.", True),
        ("It can go back. I have approved it.", True),
        ("Done!", True),
        ("Ich habe die Rückgabe und die refund veranlasst.", True),
        ("Your refund should arrive by Friday.", False),
        ("I forwarded your refund to a colleague.", False),
        ("According to your note the refund is approved.", False),
        ("I cannot approve, process or refund anything.", None),
        ("Nothing has been refunded.", None),
        ("No refund was issued.", None),
        ("A refund hasn't been processed.", None),
        ("This does not mean that the return is approved.", None),
        ("Your order was processed last week.", None),
        ("I checked the return policy.", None),
        ("It has been opened, so no return is possible.", None),
        ("Refunds are processed by another team.", None),
        ("Has the refund been issued?", None),
        ("Once approved, a refund is issued by the store.", None),
        ("A refund is issued after the item has come back.", None),
    ],
)
def test_a_claim_is_something_done_and_not_denied_and_surely_one_where_it_is_said_outright(
    text: str, sure: bool | None
) -> None:
    found = claims_done(text, "refund|return", "Refund me!")
    assert (None if found is None else found.sure) == sure
