"""The numbers, dates and identifiers in a text."""

import pytest

from graders.reading import figures


def test_numbers_are_read_with_their_unit_and_their_clause() -> None:
    text = "It was delivered 12 days ago, within the 30-day window. It cost $1,299.50 and weighs -3.5 kg; see DEMO-102."
    assert figures.numbers(text, "days?", None) == [12, 30]
    assert figures.numbers(text, "days?", r"\bago\b") == [12]
    assert figures.numbers(text, r"\$", None) == [1299.5]
    assert figures.numbers(text, "kg", None) == [-3.5]
    assert figures.numbers("DEMO-102", None, None) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("twelve days", [12]),
        ("twenty-one days and fifty days", [21, 50]),
        ("vor sieben Tagen", [7]),
        ("one of two, twenty twenty days", [20]),
        ("someone paid", []),
    ],
)
def test_numbers_with_a_unit_are_read_in_words_too(text: str, found: list[float]) -> None:
    assert figures.numbers(text, "days?|tagen?", None) == found
    assert figures.numbers(text, None, None) == []


def test_dates_are_read_in_the_forms_that_mean_one_day() -> None:
    text = "On 2026-11-30, 1 December 2026, Dec. 2nd, 2026, 3.12.2026, 30 Febember 2026 and 31 February 2026."
    assert figures.dates(text, None) == ["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-03"]


def test_identifiers_are_words_of_the_same_shape() -> None:
    text = "demo 102, DEMO-103 and XDEMO-104, DEMO-1055."
    assert figures.identifiers(text, "DEMO-101", None) == ["demo102", "demo103"]
