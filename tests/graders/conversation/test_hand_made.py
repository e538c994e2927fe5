"""Conversations whose every column was worked out by hand: both implementations find exactly that.

They stand in `conversations/`, each with the reason for what is expected of it; every column is compared.
"""

from collections.abc import Callable
from typing import Any

from evalfarm.analysis.conversations.bundles import bundle_of, trace_of
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation

Score = Callable[[Any], Conversation]


def test_python_finds_what_was_worked_out_by_hand(made: Any, by_python: Score) -> None:
    assert by_python(made) == made.expected, made.why


def test_sql_finds_what_was_worked_out_by_hand(made: Any, by_sql: Score) -> None:
    assert by_sql(made) == made.expected, made.why


def test_a_bundle_holds_the_whole_of_it_through_json_and_back(made: Any) -> None:
    bundle = bundle_of(made.trace, made.origin)
    read = Bundle.model_validate_json(bundle.model_dump_json())
    assert (read, trace_of(read)) == (bundle, (made.trace, made.origin))
