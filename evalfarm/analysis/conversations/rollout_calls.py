"""The calls in a session file of Codex: asked for in one line, answered in another, told of again in a third."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from evalfarm.contracts.conversation import as_json
from evalfarm.contracts.run import HARNESS_TOOLS, ShellCommand, ToolCall

#: Under these names Codex has offered its shell.
_SHELLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec", "unified_exec"})
_MCP = "mcp__"
#: How Codex begins what it tells the model of a call that it did not make or that broke off.
_REFUSALS = ("unsupported call", "tool call error", "tool call failed", "failed to parse function arguments")


@dataclass(slots=True)
class HeldCall:
    """What is known of one call so far."""

    call_id: str
    name: str
    server: str | None  #: None: the harness's own
    arguments: JsonValue
    turn: int
    started_s: float
    result: JsonValue = None
    error: str | None = None
    exit_code: int | None = None
    duration_s: float | None = None
    told_by_event: bool = False  #: an event has the result as it came; the model was shown a text of it

    @property
    def is_shell(self) -> bool:
        """Whether it is a command for the harness's shell."""
        return self.server is None and self.name in _SHELLS

    def as_command(self) -> ShellCommand:
        """The call as a shell command."""
        return ShellCommand(
            command=_command(self.arguments),
            output=self.result if isinstance(self.result, str) else "",
            exit_code=self.exit_code,
            duration_s=self.duration_s,
            turn=self.turn,
        )

    def as_call(self, own: frozenset[str]) -> ToolCall:
        """The call as a tool call; `own` are the servers of the plugin under test, none: every server is."""
        server: str | None = HARNESS_TOOLS if self.server is None else self.server
        if self.server is not None and (not own or _plain(self.server) in own):
            server = None
        return ToolCall(
            name=self.name,
            arguments=self.arguments,
            result=None if self.error is not None else self.result,
            error=self.error,
            started_s=self.started_s,
            duration_s=self.duration_s,
            turn=self.turn,
            server=server,
            call_id=self.call_id,
        )


def asked(item: dict[str, Any], turn: int, at_s: float) -> HeldCall | None:
    """A call as the model asked for it; None: the item is none, or has no id to know it by."""
    call_id = item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        return None
    match item.get("type"):
        case "function_call":
            name, server = _named(str(item.get("name", "")), item.get("namespace"))
            return HeldCall(call_id, name, server, read_arguments(item.get("arguments")), turn, at_s)
        case "custom_tool_call":
            return HeldCall(call_id, str(item.get("name", "")), None, kept(item.get("input")), turn, at_s)
        case "local_shell_call":
            return HeldCall(call_id, "local_shell", None, kept(item.get("action")), turn, at_s)
        case "web_search_call":
            return HeldCall(call_id, "web_search", None, kept(item.get("action")), turn, at_s)
        case _:
            return None


def take_output(call: HeldCall, output: JsonValue) -> None:
    """What the model was shown of a call's result; an event tells it better, where there is one."""
    if call.told_by_event:
        return
    text = _output_text(output)
    if text.startswith(_REFUSALS):
        call.error = text
    else:
        call.result = text


def take_mcp(call: HeldCall, told: dict[str, Any]) -> None:
    """What an event tells of an MCP call: where it went, and what came back as it came."""
    nested = told.get("invocation")
    invocation: dict[str, Any] = nested if isinstance(nested, dict) else told
    server = invocation.get("server")
    call.server = server if isinstance(server, str) and server else call.server
    call.name = str(invocation.get("tool", call.name))
    if "arguments" in invocation:
        call.arguments = kept(invocation["arguments"])
    call.duration_s, call.told_by_event = _duration(told.get("duration")), True
    result: Any = told.get("result")
    error: Any = told.get("error")
    if isinstance(result, dict) and ("Ok" in result or "Err" in result):
        result, error = result.get("Ok"), result.get("Err")
    call.result, call.error = _mcp_result(result, error, failed=told.get("status") == "failed")


def take_command(call: HeldCall, told: dict[str, Any]) -> None:
    """What an event tells of a shell command: its output and exit code."""
    if call.server is not None:
        return
    call.result = str(told.get("aggregated_output") or told.get("stdout") or "")
    code = told.get("exit_code")
    call.exit_code = code if isinstance(code, int) else None
    call.duration_s, call.told_by_event = _duration(told.get("duration")), True


def read_arguments(text: JsonValue) -> JsonValue:
    """A call's arguments, which come as a text of JSON; the text itself where it is none that can be kept."""
    if not isinstance(text, str):
        return kept(text)
    try:
        return kept(json.loads(text or "{}"), instead=text)
    except (ValueError, RecursionError):
        return text


def kept(value: Any, instead: JsonValue = None) -> JsonValue:
    """The value where it can be written down, else what stands for it: nesting has a limit."""
    try:
        as_json(value)
    except (RecursionError, ValueError, TypeError):
        return instead
    found: JsonValue = value
    return found


def plain_servers(names: Sequence[str]) -> frozenset[str]:
    """Names of servers as Codex writes them in the name of a tool."""
    return frozenset(map(_plain, names))


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)


def _named(name: str, namespace: JsonValue) -> tuple[str, str | None]:
    if isinstance(namespace, str) and namespace.startswith(_MCP):
        return name, namespace.removeprefix(_MCP)
    if name.startswith(_MCP) and "__" in name.removeprefix(_MCP):
        server, _, tool = name.removeprefix(_MCP).partition("__")
        return tool, server
    return name, None


def _mcp_result(result: Any, error: Any, *, failed: bool) -> tuple[JsonValue, str | None]:
    held: dict[str, Any] = result if isinstance(result, dict) else {}
    content = held.get("content")
    blocks: list[Any] = content if isinstance(content, list) else []
    text = "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)
    if error is not None:
        return None, error if isinstance(error, str) else as_json(kept(error))
    if failed or held.get("isError") is True or held.get("is_error") is True:
        return None, text or "failed"
    structured = held.get("structuredContent", held.get("structured_content"))
    return (text, None) if structured is None else (kept(structured, instead=text), None)


def _output_text(output: JsonValue) -> str:
    """The text of an output: a text, a list of blocks, or an object around either."""
    if isinstance(output, dict):
        return _output_text(output.get("content", output.get("output")))
    if isinstance(output, list):
        return "\n".join(str(block["text"]) for block in output if isinstance(block, dict) and "text" in block)
    return output if isinstance(output, str) else ""


def _command(arguments: JsonValue) -> str:
    given = arguments.get("cmd", arguments.get("command")) if isinstance(arguments, dict) else arguments
    if isinstance(given, list):
        return " ".join(map(str, given))
    return given if isinstance(given, str) else as_json(given)


def _duration(told: Any) -> float | None:
    if isinstance(told, dict) and isinstance(told.get("secs"), int) and isinstance(told.get("nanos"), int):
        return float(told["secs"]) + float(told["nanos"]) / 1e9
    return None
