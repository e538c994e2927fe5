"""The shipped rules, with what a suite adds to them, ready for matching."""

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from evalfarm.contracts.conversation_rules import PATTERN_LISTS, ConversationRules, any_of

_SHIPPED = Path(__file__).with_name("rules.toml")


@lru_cache(maxsize=1)
def shipped_rules() -> ConversationRules:
    """The rules that every suite starts from."""
    return ConversationRules.model_validate(tomllib.loads(_SHIPPED.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Matcher:
    """Rules with their patterns compiled, one for each list."""

    rules: ConversationRules

    def found(self, what: str, text: str) -> bool:
        """Whether one of a list's patterns is in a text."""
        return self._compiled[what].search(text) is not None

    def places(self, what: str, text: str) -> int:
        """At how many places of a text a list's patterns are found, none overlapping."""
        return sum(1 for _ in self._compiled[what].finditer(text))

    def is_all(self, what: str, text: str) -> bool:
        """Whether one of a list's patterns is the whole text."""
        return self._compiled[what].fullmatch(text) is not None

    @cached_property
    def _compiled(self) -> dict[str, re.Pattern[str]]:
        # Over ASCII, as DuckDB's engine has it: \w and \b would know other letters otherwise.
        return {name: re.compile(any_of(getattr(self.rules, name)), re.ASCII) for name in PATTERN_LISTS}
