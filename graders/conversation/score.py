"""A trace to the row of its conversation. Pure: the same trace and rules always give the same figures."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from evalfarm.contracts.conversation import Belonging, Conversation, ErrorCounts, Origin, ToolUse, storable
from evalfarm.contracts.conversation_rules import ERROR_CLASSES
from evalfarm.contracts.run import ModelRequest, Trace
from graders.conversation.calls import Call, calls_of
from graders.conversation.misses import misses_of
from graders.conversation.rules import Matcher

_BELONGING = set(Belonging.model_fields)
_SKILL_FILE = re.compile(r"skills/([A-Za-z0-9._-]+)/SKILL\.md")


def score(trace: Trace, origin: Origin, matcher: Matcher) -> Conversation:
    """The row of one conversation. docs/guides/conversations.md tells the rule of every column.

    `matcher.rules.completed_chars` must be set, as it is in the shipped rules.
    """
    calls = calls_of(trace, matcher)
    judged = _success(trace, calls, matcher)
    misses = misses_of(trace, origin, calls, matcher, success=judged["success"])
    return Conversation(
        **_identity(trace, origin),
        **_record(trace),
        **_counted(calls),
        **judged,
        misses=tuple(misses),
        tools=_tools(calls),
    )


def _identity(trace: Trace, origin: Origin) -> dict[str, Any]:
    trial, skill = trace.trial, origin.skill or _skill_read(trace)
    return {
        "conversation": f"{trace.run}/{trial.index}/{trace.attempt}",
        "run": trace.run,
        "case": trial.case,
        "repeat": trial.repeat,
        "attempt": trace.attempt,
        "session": trace.session,
        **trial.arm.model_dump(),
        **origin.model_dump(include=_BELONGING),
        "skill": skill,
        "skill_digest": origin.skill_digests.get(skill) if skill else None,
        "outcome": trace.outcome,
        "started_at": trace.started_at,
        "day": datetime.fromtimestamp(math.floor(trace.started_at), tz=UTC).strftime("%Y-%m-%d"),
    }


def _skill_read(trace: Trace) -> str | None:
    found = (_SKILL_FILE.search(storable(command.command)) for command in trace.shell_commands)
    return next((match[1] for match in found if match), None)


def _record(trace: Trace) -> dict[str, Any]:
    """What the conversation took. Tokens and latency are of the requests that were answered."""
    answered = [r for r in trace.requests if r.status is not None and 200 <= r.status < 300]
    waits = sorted(request.latency_s for request in answered)
    return {
        "turns": len(trace.turns),
        "requests": len(trace.requests),
        "input_tokens": _summed(request.input_tokens for request in answered),
        "output_tokens": _summed(request.output_tokens for request in answered),
        "cached_read_tokens": _summed(request.cached_tokens for request in answered),
        "cached_write_tokens": _summed(request.cached_write_tokens for request in answered),
        "cost_usd": _own_cost(trace.cost_usd, trace.requests),
        "duration_s": trace.duration_s,
        "request_p50_s": _quantile(waits, 0.5),
        "request_p95_s": _quantile(waits, 0.95),
    }


def _summed(counts: Iterable[int | None]) -> int | None:
    """The sum; None where a count is unknown, because a sum of the rest would look like the whole."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def _own_cost(cost_usd: float | None, requests: Sequence[ModelRequest]) -> float | None:
    sides = [request.cost_usd for request in requests if request.side]
    if cost_usd is None or None in sides:
        return None
    return cost_usd - math.fsum(side for side in sides if side is not None)


def _quantile(ascending: Sequence[float], q: float) -> float | None:
    """Between the two nearest values in proportion, as SQL's percentile_cont."""
    if not ascending:
        return None
    whole, part = divmod((len(ascending) - 1) * q, 1)
    low, high = ascending[int(whole)], ascending[min(int(whole) + 1, len(ascending) - 1)]
    return low + (high - low) * part


def _counted(calls: Sequence[Call]) -> dict[str, Any]:
    kinds = Counter(call.kind for call in calls)
    tools = [call for call in calls if call.kind != "builtin"]
    equal = Counter((call.kind, call.server, call.tool, call.input) for call in calls)
    return {
        "mcp_calls": len(tools),
        "plugin_calls": kinds["plugin"],
        "builtin_calls": kinds["builtin"],
        **_errors(tools).model_dump(),
        "repeated_calls": sum(equal.values()) - len(equal),
        "most_repeats": max(equal.values(), default=1) - 1,
        "writes": sum(call.writes for call in tools),
    }


def _errors(calls: Sequence[Call]) -> ErrorCounts:
    return ErrorCounts(
        **{name: sum(name in call.classes for call in calls) for name in ERROR_CLASSES},
        failed_calls=sum(call.failed for call in calls),
        other_errors=sum(call.error and not call.failed for call in calls),
    )


def _success(trace: Trace, calls: Sequence[Call], matcher: Matcher) -> dict[str, Any]:
    answer, tools = storable(trace.answer), [call for call in calls if call.kind != "builtin"]
    shown = [call for call in tools if call.tool in matcher.rules.widget_tools and not (call.failed or call.error)]
    unavailable = matcher.found("tools_unavailable", answer)
    completed = bool(shown) or len(answer) >= (matcher.rules.completed_chars or 0)
    sound = not any("schema_errors" in call.classes or call.writes for call in tools)
    base = completed and any(call.kind == "plugin" for call in tools) and sound and not unavailable
    guards = {name: sum(name in call.breaks for call in tools) for name in matcher.rules.guards}
    return {
        "widgets": len(shown),
        "answer_chars": len(answer),
        "placeholder_mentions": matcher.places("placeholder_mentions", answer),
        "tools_unavailable": unavailable,
        "completed": completed,
        "guards": guards,
        "base_success": base,
        "success": base and not any(guards.values()),
    }


def _tools(calls: Sequence[Call]) -> tuple[ToolUse, ...]:
    by_tool: dict[tuple[str, str, str], list[Call]] = {}
    for call in calls:
        by_tool.setdefault((call.kind, call.server or "", call.tool), []).append(call)
    return tuple(
        ToolUse(
            kind=same[0].kind,
            server=same[0].server,
            tool=same[0].tool,
            calls=len(same),
            repeated_calls=len(same) - len({call.input for call in same}),
            writes=sum(call.writes for call in same),
            **_errors(same).model_dump(),
        )
        for _, same in sorted(by_tool.items())
    )
