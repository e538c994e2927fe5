"""The real Codex through its official SDK, with the plugin installed, as close to the product as it gets.

The built-in provider is kept (its base URL is the gateway), approvals are off, and nothing is added to the
question but the product's own mention of the plugin. The turn's stream is read item by item, so a turn that
fails half-way still leaves all that was seen.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from openai_codex import ApprovalMode, AsyncCodex, CodexConfig
from openai_codex.errors import CodexError, TransportClosedError
from openai_codex.generated.v2_all import (
    AgentMessageThreadItem,
    CommandExecutionThreadItem,
    ItemCompletedNotification,
    ItemStartedNotification,
    McpToolCallThreadItem,
    TurnCompletedNotification,
    TurnStatus,
)
from openai_codex.models import InitializeResponse, Notification, UnknownNotification
from pydantic import JsonValue

from evalfarm.contracts.run import ShellCommand, ToolCall
from evalfarm.errors import HarnessUnavailable
from worker.cell.cell import Cell
from worker.cell.codex_plugin import mention, server_entry
from worker.harnesses import FINISHED, Ending, OpenAttempt

#: Codex takes a third of a second to start.
_START_TIMEOUT_S = 30.0
#: For the reader of its standard error to come to the end, once it has ended.
_LAST_WORDS_TIMEOUT_S = 2.0
_LAST_WORDS_CHARS = 2_000
#: What the SDK raises when Codex refuses, fails or is gone.
_FAILURES = (CodexError, OSError, RuntimeError)


async def drive(attempt: OpenAttempt, cell: Cell) -> Ending:
    """Ask the case's turns one after another in one thread.

    Raises HarnessUnavailable when Codex does not start or refuses the thread, as it does when a required MCP
    server is missing: that says nothing about the plugin's answer.
    """
    async with _started(cell) as codex:
        attempt.notes.versions["codex"] = _version(codex.metadata)
        try:
            thread = await codex.thread_start(
                approval_mode=ApprovalMode.deny_all, cwd=cell.work, ephemeral=True, model=attempt.trial.arm.model
            )
        except _FAILURES as error:
            raise HarnessUnavailable(
                f"Codex refused to start a thread: {error}", "the plugin's MCP server must be up"
            ) from error
        attempt.notes.session = thread.id
        if cell.home is not None:  # read by now, and nothing that the agent's shell need see
            for name in ("config.toml", "auth.json"):
                (cell.home / name).unlink(missing_ok=True)
        prefix = mention(attempt.suite.plugin)
        for query in attempt.case.turns:
            attempt.tools.turn = attempt.notes.ask(query)
            try:
                turn = await thread.turn(f"{prefix}{query}")
                async for event in turn.stream():
                    ending = _take(attempt, event)
                    if ending is not None and ending is not FINISHED:
                        return ending
            except _FAILURES as error:
                return Ending("crashed", f"Codex ended in mid-turn: {error}")
            prefix = ""  # a user mentions the plugin once in a conversation
    return FINISHED


@asynccontextmanager
async def _started(cell: Cell) -> AsyncIterator[AsyncCodex]:
    # The library hands on this process's environment, keys and all; until `env -i` has cleared it, anyone who may read
    # /proc would find them there.
    nothing = dict.fromkeys(os.environ, "")
    codex = AsyncCodex(CodexConfig(launch_args_override=cell.argv, env=nothing))
    starting = asyncio.create_task(codex.__aenter__())
    try:
        await asyncio.wait((starting,), timeout=_START_TIMEOUT_S)
        if not starting.done() or isinstance(starting.exception(), _FAILURES):
            raise HarnessUnavailable(
                f"Codex did not start in its cell: {await _why_not_up(codex, starting)}",
                "evalfarm doctor shows what works here",
            )
        yield starting.result()
    finally:
        await _close(codex)
        # Where all was called off before Codex was up, it may have come up since: then that is closed too.
        await asyncio.wait((starting,), timeout=_START_TIMEOUT_S)
        await _close(codex)
        if starting.done():
            starting.exception()  # asyncio complains of an exception that nobody asked for


async def _why_not_up(codex: AsyncCodex, starting: "asyncio.Task[AsyncCodex]") -> str:
    if not starting.done():
        return f"it does not answer within {_START_TIMEOUT_S:g} s"
    error = starting.exception()
    if not isinstance(error, BrokenPipeError | TransportClosedError):
        return str(error)
    # Which of the two it is depends on whether it ended before or after it was written to. The library puts what came
    # on the standard error into its message before its reader has read it all, and on a busy machine that is nothing.
    client = codex._client._sync
    if client._stderr_thread is not None:
        await asyncio.to_thread(client._stderr_thread.join, _LAST_WORDS_TIMEOUT_S)
    last_words = " | ".join(client._stderr_lines)[-_LAST_WORDS_CHARS:]
    return f"it ended at once, saying: {last_words}" if last_words else "it ended at once"


async def _close(codex: AsyncCodex) -> None:
    with suppress(BrokenPipeError):  # of a Codex that has ended by itself
        await codex.close()


def _version(metadata: InitializeResponse) -> str:
    """What Codex says of itself, without what it says of the machine: `0.163.0`; empty: nothing."""
    told = metadata.serverInfo.version if metadata.serverInfo else None
    return told.split()[0] if told else ""


def _take(attempt: OpenAttempt, event: Notification) -> Ending | None:
    """Note one event; an Ending when it ends the turn."""
    payload = event.payload
    # Deltas repeat, piece by piece, what the completed item holds whole.
    if not event.method.lower().endswith("delta"):
        attempt.notes.events.append({"method": event.method, "params": _plain(payload)})
    if isinstance(payload, ItemStartedNotification):
        # Our clock, not the one in the event: a cell's clock is the host's, which may be set while we measure.
        attempt.notes.begun_s[payload.item.root.id] = time.monotonic() - attempt.started
    if isinstance(payload, ItemCompletedNotification):
        _take_item(attempt, payload.item.root)
    if isinstance(payload, TurnCompletedNotification):
        if payload.turn.status == TurnStatus.completed:
            return FINISHED
        told = payload.turn.error.message if payload.turn.error else payload.turn.status.value
        return Ending("crashed", f"Codex's turn {payload.turn.status.value}: {told}")
    return None


def _take_item(attempt: OpenAttempt, item: Any) -> None:
    notes, turn = attempt.notes, attempt.tools.turn
    if isinstance(item, AgentMessageThreadItem):
        notes.answer(item.text)
    elif isinstance(item, CommandExecutionThreadItem):
        duration = item.duration_ms / 1000 if item.duration_ms is not None else None
        output = item.aggregated_output or ""
        notes.shell_commands.append(
            ShellCommand(command=item.command, output=output, exit_code=item.exit_code, duration_s=duration, turn=turn)
        )
    elif isinstance(item, McpToolCallThreadItem) and item.server == server_entry(attempt.suite.plugin):
        notes.tool_calls.append(_tool_call(item, notes.begun_s.get(item.id, 0.0), turn))


def _tool_call(item: McpToolCallThreadItem, started_s: float, turn: int) -> ToolCall:
    result: JsonValue = None
    error = item.error.message if item.error else None
    if item.result is not None:
        result = item.result.structured_content
        if result is None:
            result = "\n".join(
                str(block["text"]) for block in item.result.content if isinstance(block, dict) and "text" in block
            )
    if error is None and item.status.value == "failed":
        error = result if isinstance(result, str) and result else "failed"
    return ToolCall(
        name=item.tool,
        arguments=item.arguments,
        result=None if error else result,
        error=error,
        started_s=started_s,
        duration_s=item.duration_ms / 1000 if item.duration_ms is not None else None,
        turn=turn,
    )


def _plain(payload: Any) -> JsonValue:
    if isinstance(payload, UnknownNotification):
        return payload.params
    plain: JsonValue = payload.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain
