from evalfarm.contracts.conversation_rules import PATTERN_LISTS, ConversationRules
from graders.conversation.rules import Matcher, shipped_rules


def test_the_shipped_rules_leave_no_list_empty() -> None:
    rules = shipped_rules()
    assert [name for name, value in rules if not value] == ["guards"]


def test_a_matcher_has_a_pattern_for_every_list() -> None:
    nothing = Matcher(ConversationRules())
    assert [name for name in PATTERN_LISTS if nothing.found(name, "any text")] == []


def test_places_are_counted_and_wholes_are_whole() -> None:
    matcher = Matcher(ConversationRules(placeholder_mentions=("MOCK",), idle_commands=("pwd|ls",)))
    assert matcher.places("placeholder_mentions", "MOCKMOCK MOCK") == 3
    assert [matcher.is_all("idle_commands", text) for text in ("ls", "ls x", "pwd")] == [True, False, True]
