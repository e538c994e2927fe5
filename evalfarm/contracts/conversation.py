"""Conversations: where one comes from, and what the rules say of it: one row of figures.

The row follows by fixed rules, once in Python over the trace and once in SQL over the bundle that is kept of it.
"""

import json
from typing import Literal

from pydantic import JsonValue

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.run import Outcome
from evalfarm.contracts.suite import HarnessName
from evalfarm.contracts.verdict import Verdict

Kind = Literal["plugin", "mcp", "builtin"]
"""Whose tool was called: the plugin's own server's, another MCP server's, or the harness's own."""

Miss = Literal[
    "harness_crash",
    "step_limit",
    "tool_failed",
    "fetched_outside",
    "shell_idle",
    "no_tool",
    "said_unavailable",
    "asked_user",
    "wrong_conclusion",
]
MISSES: tuple[Miss, ...] = (
    "harness_crash",
    "step_limit",
    "tool_failed",
    "fetched_outside",
    "shell_idle",
    "no_tool",
    "said_unavailable",
    "asked_user",
    "wrong_conclusion",
)
"""What explains a miss, in the order in which one is taken for the cause: what broke, then what was done, then how it
ended. A conversation that was stopped before it answered, by a limit of steps or time or by its user, is `step_limit`;
`wrong_conclusion` is a miss that shows none of the others."""

SHELL = "shell"
"""The name under which shell commands are listed among the tools."""


class Which(Contract):
    """Which conversation: one attempt of a trial, in a run or an import."""

    conversation: str  #: RUN/TRIAL/ATTEMPT
    run: Name
    case: Name
    repeat: int
    attempt: int
    harness: HarnessName
    model: str
    variant: Name
    session: str | None = None  #: what the harness calls it; None: it has no name of its own for one
    started_at: float  #: seconds since the epoch
    outcome: Outcome


class Belonging(Contract):
    """What a conversation belongs to, and what was concluded of it."""

    suite: str
    suite_version: str = ""
    plugin: str
    plugin_version: str = ""
    plugin_digest: str | None = None  #: of the plugin's files, packaging and server
    skill: str | None = None  #: that the case is about; none: the first whose SKILL.md the shell reads
    counted: bool = True  #: this attempt closed its trial
    verdict: Verdict | None = None  #: of the graders; None: nobody judged it


class Origin(Belonging):
    """What a trace does not say of itself: which suite and plugin it belongs to, and what was concluded of it."""

    skill_digests: dict[str, str] = {}  #: of each skill's folder
    reasons: tuple[str, ...] = ()  #: the graders'


class ErrorCounts(Contract):
    """Failed calls by class; one call may be in several."""

    schema_errors: int
    access_errors: int
    upstream_errors: int
    bad_arguments: int
    timeouts: int
    failed_calls: int  #: in any class
    other_errors: int  #: ended in an error that no class names


class ToolUse(ErrorCounts):
    """One tool in one conversation."""

    kind: Kind
    server: str | None
    tool: str
    calls: int
    repeated_calls: int
    writes: int


class Conversation(ErrorCounts, Belonging, Which):
    """The row of one conversation: every figure a count, a sum or a fixed rule. None: not reported.

    Error counts and writes are over MCP calls. `success` holds the suite's guards too, `base_success` the rules alone.
    """

    skill_digest: str | None
    day: str  #: of its start, UTC, as 2026-01-31
    turns: int
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cached_read_tokens: int | None
    cached_write_tokens: int | None
    cost_usd: float | None  #: without side calls
    duration_s: float
    request_p50_s: float | None
    request_p95_s: float | None
    mcp_calls: int
    plugin_calls: int
    builtin_calls: int
    repeated_calls: int  #: beyond the first of equal ones
    most_repeats: int  #: of one call, beyond its first
    widgets: int
    writes: int
    answer_chars: int
    placeholder_mentions: int
    tools_unavailable: bool
    completed: bool
    guards: dict[str, int]  #: guard -> calls that break it
    base_success: bool
    success: bool
    misses: tuple[Miss, ...]  #: what explains a miss, the cause first; empty: it is none
    tools: tuple[ToolUse, ...]  #: by kind, server and name


#: Made once: `json.dumps` makes one with every call, for half of what a small value takes.
_AS_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_json(value: JsonValue) -> str:
    """A value's JSON: sorted keys, no spaces, every character but control characters as itself."""
    return storable(_AS_JSON.encode(value))


def storable(text: str) -> str:
    """The text with a question mark for every half of a surrogate pair, which nothing can store."""
    return text if text.isascii() else text.encode(errors="replace").decode()
