"""No entry of the rules' file stands there that the hand-made conversations would not miss."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evalfarm.contracts.conversation import MISSES, Conversation
from evalfarm.contracts.conversation_rules import ConversationRules
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

Score = Callable[[Any], Conversation]


def entries() -> Iterator[tuple[str, str]]:
    """Every entry of every list of the shipped rules."""
    for name, value in shipped_rules():
        if isinstance(value, tuple):
            yield from ((name, entry) for entry in value)


def without(rules: ConversationRules, name: str, entry: str) -> ConversationRules:
    return rules.model_copy(update={name: tuple(one for one in getattr(rules, name) if one != entry)})


def moves(all_made: Sequence[Any], name: str, entry: str) -> bool:
    """Whether some conversation's row is another without the entry."""
    return any(
        score(made.trace, made.origin, Matcher(without(made.rules, name, entry))) != made.expected for made in all_made
    )


def test_without_any_entry_of_the_rules_some_conversation_is_scored_otherwise(all_made: Sequence[Any]) -> None:
    assert [(name, entry) for name, entry in entries() if not moves(all_made, name, entry)] == []


def test_every_sign_of_a_miss_is_the_cause_of_one(all_made: Sequence[Any]) -> None:
    assert {made.expected.misses[0] for made in all_made if made.expected.misses} == set(MISSES)


def test_every_column_has_more_than_one_value(all_made: Sequence[Any]) -> None:
    values = {
        column: {repr(getattr(made.expected, column)) for made in all_made} for column in Conversation.model_fields
    }
    assert [column for column, found in values.items() if len(found) == 1] == []


def test_each_is_called_otherwise_and_says_why(all_made: Sequence[Any]) -> None:
    assert len({made.name for made in all_made}) == len(all_made) >= 60
    assert all(made.why for made in all_made)
