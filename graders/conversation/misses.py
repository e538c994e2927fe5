"""What explains a conversation that missed."""

from collections.abc import Iterator, Sequence

from evalfarm.contracts.conversation import MISSES, Miss, Origin, storable
from evalfarm.contracts.run import Trace
from graders.conversation.calls import Call
from graders.conversation.rules import Matcher

_BLANK = " \t\r\n"
_AFTER_A_QUESTION = _BLANK + "*_\"')"


def misses_of(trace: Trace, origin: Origin, calls: Sequence[Call], matcher: Matcher, *, success: bool) -> list[Miss]:
    """All that holds, the cause first (`MISSES`); none for a conversation that did not miss.

    Where graders gave a verdict, a miss is what they failed; without one it is what did not succeed by the rules.
    What infrastructure ended is no miss.
    """
    if trace.outcome == "infra_failed":
        return []
    if success if origin.verdict is None else origin.verdict != "failed":
        return []
    found = set(_signs(trace, origin, calls, matcher))
    return [miss for miss in MISSES if miss in found] or ["wrong_conclusion"]


def _signs(trace: Trace, origin: Origin, calls: Sequence[Call], matcher: Matcher) -> Iterator[Miss]:
    answer = storable(trace.answer)
    tools = [call for call in calls if call.kind != "builtin"]
    if trace.outcome == "crashed":
        yield "harness_crash"
    if trace.outcome in ("gave_up", "timed_out"):
        yield "step_limit"
    if any(call.failed or call.error for call in tools):
        yield "tool_failed"
    if _fetched_outside(trace, origin, calls, matcher):
        yield "fetched_outside"
    if trace.shell_commands and all(_is_idle(c.command, c.output, matcher) for c in trace.shell_commands):
        yield "shell_idle"
    if not tools:
        yield "no_tool"
    if matcher.found("said_unavailable", answer) or matcher.found("tools_unavailable", answer):
        yield "said_unavailable"
    if answer.rstrip(_AFTER_A_QUESTION).endswith(("?", "？")):
        yield "asked_user"


def _fetched_outside(trace: Trace, origin: Origin, calls: Sequence[Call], matcher: Matcher) -> bool:
    return (
        any(matcher.found("outside_reasons", storable(reason)) for reason in origin.reasons)
        or any(matcher.found("outside_fetches", storable(command.command)) for command in trace.shell_commands)
        or any(call.kind == "builtin" and call.tool in matcher.rules.outside_tools for call in calls)
    )


def _is_idle(command: str, output: str, matcher: Matcher) -> bool:
    return not output.strip(_BLANK) or matcher.is_all("idle_commands", storable(command).strip(_BLANK))
