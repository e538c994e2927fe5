import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.reports.safe_text import cut, harmless, in_json, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain × text\n\tas it is", "plain × text\n\tas it is"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("over\rwrite\x07\x7f", r"over\x0dwrite\x07\x7f"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_harmless_text_can_be_printed_and_stays_as_it_is(text: str) -> None:
    shown = harmless(text)
    shown.encode()
    assert not [sign for sign in shown if unicodedata.category(sign) == "Cc" and sign not in "\n\t"]
    assert harmless(shown) == shown


def test_one_line_has_no_line_breaks() -> None:
    assert one_line("a \n\n b\tc ") == "a b c"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("short", "short"), ("exactly_10", "exactly_10"), ("x" * 1234, "xxxxxxxxxx … (1,224 more characters)")],
)
def test_a_cut_says_how_much_is_gone(text: str, shown: str) -> None:
    assert cut(text, 10) == shown


def test_a_json_document_keeps_its_value_and_loses_what_steers() -> None:
    value = {"a\u202e": ["\x9b31m", "é\u2028", 1]}
    document = json.dumps(value, ensure_ascii=False, indent=2)
    written = in_json(document)
    assert json.loads(written) == value
    assert written == '{\n  "a\\u202e": [\n    "\\u009b31m",\n    "é\\u2028",\n    1\n  ]\n}'
