"""The structured input straight to the tool, through the tool gateway. No model takes part."""

import json

from evalfarm.contracts.run import ToolCall
from worker.gateways.tool_gateway import result_text, result_value
from worker.harnesses import FINISHED, Ending, OpenAttempt


async def drive(attempt: OpenAttempt) -> Ending:
    """Make the case's one call. A tool that fails is a result, not an ending."""
    call = attempt.case.direct
    if call is None:
        raise ValueError(f"case {attempt.case.id!r} has no direct form; the planner must not plan it")
    attempt.notes.ask(f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})")
    result = await attempt.tools.call(call.tool, dict(call.arguments))
    attempt.notes.tool_calls.append(
        ToolCall(
            name=call.tool,
            arguments=call.arguments,
            result=None if result.is_error else result_value(result),
            error=result_text(result) if result.is_error else None,
        )
    )
    attempt.notes.answer(result_text(result))
    return FINISHED
