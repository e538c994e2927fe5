"""A session file of Codex (a rollout) to a trace. Pure: lines in, a trace out.

A line is one JSON object with a `timestamp`, a `type` and a `payload`. The same thing may stand in several lines: as
the model's own item, as an event about it, and again where a thread was forked. Calls are known by their id, requests
by that of their response. Observed with Codex 0.163; the lines of earlier versions that tell the same are read too.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from evalfarm.analysis.conversations.rollout_calls import asked, take_command, take_mcp, take_output
from evalfarm.analysis.conversations.rollout_session import OpenTurn, Session, request_of, trace_of_session
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.conversation import storable
from evalfarm.contracts.run import Trace


def read_rollout(lines: Iterable[str], *, run: str, index: int, own: frozenset[str]) -> Trace | None:
    """The trace of one session; None: no line says which session it is, or nobody asked anything in it.

    `own`: the plugin's servers (`rollout_calls.plain_servers`), none: every server. A line that does not read is left
    out and counted in the telemetry, which is never complete: the harness is the only witness.
    """
    session = Session()
    for line in lines:
        if line.strip():
            _take_line(session, line)
    if session.session is None or not session.turns:
        return None
    return trace_of_session(session, run, index, own)


def _take_line(session: Session, line: str) -> None:
    try:
        read = json.loads(line)
        payload = read["payload"]
        at = datetime.fromisoformat(read["timestamp"]).timestamp()
        kind, told = str(read["type"]), str(payload.get("type", ""))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        session.unread += 1
        return
    session.now = at
    session.first = at if session.first is None else session.first
    match kind:
        case "session_meta":
            _take_meta(session, payload)
        case "turn_context":
            session.model = session.model or _text(payload.get("model"))
        case "response_item":
            _take_item(session, payload)
        case "token_usage_record":
            key = str(payload.get("response_id"))
            session.records.setdefault(key, request_of(session, payload.get("usage"), key))
            session.goes_on()
        case "event_msg":
            _take_event(session, told, payload)


def _take_meta(session: Session, payload: dict[str, Any]) -> None:
    if session.session is not None:
        return  # a fork repeats the one that it was forked from
    session.session = _text(payload.get("id"))
    for name, key in (("codex", "cli_version"), ("originator", "originator")):
        if value := _text(payload.get(key)):
            session.versions[name] = value
    told = payload.get("base_instructions") or payload.get("instructions")
    text = told.get("text") if isinstance(told, dict) else told
    if isinstance(text, str) and text:
        session.versions["instructions"] = digest_bytes(storable(text).encode())


def _take_item(session: Session, item: dict[str, Any]) -> None:
    kind = item.get("type")
    if kind == "message":
        text = _message_text(item)
        if item.get("role") == "assistant":
            _say(session, text)
        elif item.get("role") == "user" and _is_users(item, text):
            _ask(session, text, by_event=False)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        if call := session.calls.get(str(item.get("call_id"))):
            take_output(call, item.get("output"))
        session.asked_at = session.now
        session.goes_on()
    else:
        _model_wrote(session)
        call = asked(item, max(0, len(session.turns) - 1), session.now - (session.first or session.now))
        if call is not None:
            session.calls.setdefault(call.call_id, call)


def _take_event(session: Session, kind: str, payload: dict[str, Any]) -> None:
    held = payload.get("item")
    item: dict[str, Any] = held if isinstance(held, dict) else {}
    match kind, item.get("type"):
        case ("task_started" | "turn_started", _):
            session.asked_at, session.stopped, session.error = session.now, None, None
        case ("user_message", _):
            _ask(session, str(payload.get("message", "")), by_event=True)
        case ("item_completed", "UserMessage"):
            _ask(session, _message_text(item), by_event=True)
        case ("agent_message", _):
            _say(session, str(payload.get("message", "")))
        case ("mcp_tool_call_end", _) | ("item_completed", "McpToolCall"):
            _take_call(session, item or payload, mcp=True)
        case ("exec_command_end", _) | ("item_completed", "CommandExecution"):
            _take_call(session, item or payload, mcp=False)
        case ("token_count", _):
            _take_count(session, payload.get("info"))
        case ("task_complete" | "turn_complete" | "turn_aborted" | "error", _):
            _take_end(session, kind, payload)


def _take_end(session: Session, kind: str, payload: dict[str, Any]) -> None:
    session.goes_on()
    if kind == "turn_aborted":
        session.stopped = str(payload.get("reason", "interrupted"))
    elif kind == "error":
        session.error = str(payload.get("message", "an error"))


def _take_call(session: Session, told: dict[str, Any], *, mcp: bool) -> None:
    call = session.calls.get(str(told.get("call_id") or told.get("id")))
    if call is not None:
        (take_mcp if mcp else take_command)(call, told)
    session.asked_at = session.now
    session.goes_on()


def _take_count(session: Session, info: Any) -> None:
    """One request of a version that tells of tokens only as sums; a sum that did not move is no new request."""
    if isinstance(info, dict) and info.get("total_token_usage") != session.counted:
        session.counted = info.get("total_token_usage")
        session.counts.append(request_of(session, info.get("last_token_usage"), None))


def _ask(session: Session, text: str, *, by_event: bool) -> None:
    """Open a turn; an item and an event about one message, with nothing in between, are one question."""
    last = session.turns[-1] if session.turns else None
    if last is not None and not last.active and last.by_event != by_event:
        last.query = text if by_event else last.query
        last.by_event = True
    else:
        session.turns.append(OpenTurn(text, by_event, session.now, session.now))
    session.asked_at = session.now


def _say(session: Session, text: str) -> None:
    _model_wrote(session)
    if session.turns and text:
        session.turns[-1].answer = text


def _model_wrote(session: Session) -> None:
    session.answered_at = session.now
    session.goes_on()
    if session.turns:
        session.turns[-1].active = True


def _is_users(item: dict[str, Any], text: str) -> bool:
    """Whether a message in the user's name is the user's: Codex adds what it knows of the machine in the same role."""
    about = item.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, dict) else None
    if isinstance(kinds, list):
        return "user.text" in kinds
    return bool(text) and not text.lstrip().startswith(("<", "# AGENTS.md"))


def _message_text(item: dict[str, Any]) -> str:
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
