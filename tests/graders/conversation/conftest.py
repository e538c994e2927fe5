"""Hand-made conversations, built from their data files, and both implementations of the rules over them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.contracts.conversation import Conversation, Origin
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Trace
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

_FOLDER = Path(__file__).parent / "conversations"
_LETTERS = re.compile(r"<(\d+) letters>")
_NO_TOOL = {
    "kind": "plugin",
    "server": None,
    "calls": 1,
    **dict.fromkeys(("schema_errors", "access_errors", "upstream_errors", "bad_arguments", "timeouts"), 0),
    **dict.fromkeys(("failed_calls", "other_errors", "repeated_calls", "writes"), 0),
}
_REQUEST = {"started_s": 0.0, "latency_s": 1.0, "status": 200, "input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True)
class HandMade:
    """One conversation of the data files, with the row that was worked out for it."""

    name: str
    why: str
    trace: Trace
    origin: Origin
    rules: ConversationRules
    expected: Conversation


@lru_cache(maxsize=1)
def read_hand_made() -> tuple[HandMade, ...]:
    """Every conversation of every file, each a difference from the plain one."""
    files = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(_FOLDER.glob("*.yaml"))}
    plain = files["plain"]
    return tuple(_made(plain, made) for told in files.values() for made in told["conversations"])


def _made(plain: dict[str, Any], made: dict[str, Any]) -> HandMade:
    return HandMade(
        name=made["name"],
        why=made["why"],
        trace=Trace.model_validate(_trace(plain["trace"] | made.get("trace", {}))),
        origin=Origin.model_validate(plain["origin"] | made.get("origin", {})),
        rules=shipped_rules().extended(ConversationRules.model_validate(made.get("rules", {}))),
        expected=Conversation.model_validate(_row(plain["row"] | made.get("row", {}))),
    )


def _trace(told: dict[str, Any]) -> dict[str, Any]:
    requests = [{**_REQUEST, "cached_tokens": 0, **request} for request in told["requests"]]
    return _grown({**told, "requests": requests})


def _row(told: dict[str, Any]) -> dict[str, Any]:
    return {**told, "tools": [{**_NO_TOOL, **tool} for tool in told["tools"]]}


def _grown(value: Any) -> Any:
    """The value with `<200 letters>` written out."""
    if isinstance(value, str):
        return _LETTERS.sub(lambda match: "a" * int(match[1]), value)
    if isinstance(value, list):
        return [_grown(part) for part in value]
    return {name: _grown(part) for name, part in value.items()} if isinstance(value, dict) else value


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `made` sees every hand-made conversation."""
    if "made" in metafunc.fixturenames:
        found = read_hand_made()
        metafunc.parametrize("made", found, ids=[made.name for made in found])


@pytest.fixture(scope="session")
def all_made() -> tuple[HandMade, ...]:
    """Every hand-made conversation."""
    return read_hand_made()


@pytest.fixture(scope="session")
def by_python() -> Callable[[HandMade], Conversation]:
    """The row by the rules in Python."""
    return lambda made: score(made.trace, made.origin, Matcher(made.rules))


@pytest.fixture(scope="session")
def by_sql() -> Iterator[Callable[[HandMade], Conversation]]:
    """The row by the rules in SQL."""
    scorers: dict[str, Scorer] = {}

    def scored(made: HandMade) -> Conversation:
        key = made.rules.model_dump_json()
        if key not in scorers:
            scorers[key] = Scorer(made.rules)
        (row,) = scorers[key].score([bundle_of(made.trace, made.origin)])
        return row

    yield scored
    for scorer in scorers.values():
        scorer.close()
