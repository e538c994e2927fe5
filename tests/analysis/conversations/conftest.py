"""Rows of conversations for the tests of what many of them add up to."""

from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.contracts.conversation import Conversation, ToolUse

Make = Callable[..., Any]

_PLAIN: dict[str, Any] = {
    **{name: "x" for name, field in Conversation.model_fields.items() if field.annotation is str},
    **{name: 0 for name, field in Conversation.model_fields.items() if field.annotation is int},
    **{name: True for name, field in Conversation.model_fields.items() if field.annotation is bool},
    **dict.fromkeys(("plugin_digest", "skill", "skill_digest", "verdict"), None),
    **dict.fromkeys(("input_tokens", "output_tokens", "cached_read_tokens", "cached_write_tokens"), 0),
    **dict.fromkeys(("cost_usd", "duration_s", "request_p50_s", "request_p95_s", "started_at"), 1.0),
    "harness": "codex",
    "outcome": "finished",
    "tools_unavailable": False,
    "guards": {},
    "misses": (),
    "tools": (),
}
_NO_USE = {name: 0 for name, field in ToolUse.model_fields.items() if field.annotation is int}


@pytest.fixture(scope="session")
def row() -> Make:
    """A conversation that succeeded, with the fields given."""
    return lambda **fields: Conversation.model_validate(_PLAIN | fields)


@pytest.fixture(scope="session")
def use() -> Make:
    """One tool's use, with the fields given."""
    return lambda tool, **fields: ToolUse.model_validate(
        {**_NO_USE, "kind": "plugin", "server": None, "tool": tool, "calls": 1, **fields}
    )
