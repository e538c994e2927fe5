"""Rows of conversations made up from a few figures: what is said of nothing else is zero, unknown or `x`."""

from typing import Any

from evalfarm.contracts.conversation import Conversation, ToolUse

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


def made_row(**fields: Any) -> Conversation:
    """A conversation that succeeded, with the fields given."""
    return Conversation.model_validate(_PLAIN | fields)


def made_use(tool: str, **fields: Any) -> ToolUse:
    """One tool's use, with the fields given."""
    return ToolUse.model_validate({**_NO_USE, "kind": "plugin", "server": None, "tool": tool, "calls": 1, **fields})
