"""What is kept of a conversation: a bundle of flat rows, a trace in plain columns.

SQL reads the rows, and they go from one store to another.
"""

from typing import Literal

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.conversation import Origin, Which
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import FailureKind, Isolation

Witness = Literal["harness", "gateway", "shell"]
"""Who tells of a call: the harness, the tool gateway, or the harness's list of shell commands."""


class Facts(Origin, Which):
    """A conversation's record: one row."""

    index: int
    seed: int
    duration_s: float
    cost_usd: float | None
    failure: str | None
    failure_kind: FailureKind | None
    telemetry_complete: bool
    gaps: tuple[str, ...]
    versions: dict[str, str]
    simulated: bool
    isolation: Isolation
    redacted: dict[str, int]


class RequestRow(Contract):
    """One model request; the columns of `ModelRequest`."""

    conversation: str
    n: int
    started_s: float
    latency_s: float
    waited_s: float
    status: int | None
    tries: tuple[str, ...]
    error: str | None
    response_id: str | None
    model: str | None
    input_tokens: int | None
    cached_tokens: int | None
    cached_write_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    side: bool
    cost_usd: float | None


class CallRow(Contract):
    """One call as one witness tells it. Input and result are JSON, so that nothing is lost in a column of text."""

    conversation: str
    n: int
    witness: Witness
    turn: int
    server: str | None  #: None: the plugin's own
    name: str  #: `shell` for a command
    call_id: str | None
    input: str  #: the arguments, or the command's text, as JSON with sorted keys
    result: str  #: the result, or the command's output, as JSON with sorted keys
    error: str | None
    exit_code: int | None
    started_s: float
    duration_s: float | None


class MessageRow(Contract):
    """One message of the thread."""

    conversation: str
    n: int
    turn: int
    role: Literal["user", "assistant"]
    text: str


class Decision(Contract):
    """A call that was refused before it reached a server, as the harness tells it."""

    turn: int
    tool: str
    reason: str


class Bundle(Contract):
    """One conversation, whole but for the harness's event stream: a line of a file of conversations."""

    schema_version: Literal[1] = 1
    facts: Facts
    requests: tuple[RequestRow, ...] = ()
    tool_calls: tuple[CallRow, ...] = ()
    decisions: tuple[Decision, ...] = ()
    messages: tuple[MessageRow, ...] = ()
    transcript: str = ""  #: the thread as Markdown, for people


class Import(Contract):
    """What was brought from elsewhere under one name, written when all of it is there."""

    schema_version: Literal[1] = 1
    name: Name
    source: Literal["codex-sessions", "conversations"]
    created_at: float
    conversations: int
    segments: int  #: that hold them
    rules: ConversationRules = ConversationRules()  #: added to the shipped ones
