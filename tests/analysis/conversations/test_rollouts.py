"""Session files of Codex: one that the real product wrote (paths and long texts replaced), and made-up lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.conversations.rollout_calls import plain_servers
from evalfarm.analysis.conversations.rollouts import read_rollout
from evalfarm.contracts.run import HARNESS_TOOLS, ShellCommand, ToolCall, Trace, Turn

_REAL = Path(__file__).with_name("rollout-0.163.jsonl")


def _line(kind: str, at_s: float, **payload: Any) -> str:
    stamp = f"2026-11-30T10:00:{at_s:06.3f}Z"
    return json.dumps({"timestamp": stamp, "type": kind, "payload": payload})


def _meta() -> str:
    return _line("session_meta", 0, id="s-1", cli_version="0.80.0", originator="codex_cli")


def _said(role: str, text: str, at_s: float) -> str:
    kind = "input_text" if role == "user" else "output_text"
    return _line("response_item", at_s, type="message", role=role, content=[{"type": kind, "text": text}])


def _asked(call_id: str, name: str, at_s: float, arguments: str = "{}", **more: Any) -> str:
    return _line("response_item", at_s, type="function_call", call_id=call_id, name=name, arguments=arguments, **more)


def _output(call_id: str, output: Any, at_s: float) -> str:
    return _line("response_item", at_s, type="function_call_output", call_id=call_id, output=output)


def _read(*lines: str, own: tuple[str, ...] = ()) -> Trace:
    trace = read_rollout([_meta(), *lines], run="november", index=0, own=plain_servers(own))
    assert trace is not None
    return trace


@pytest.fixture(scope="module")
def real() -> Trace:
    with _REAL.open(encoding="utf-8") as lines:
        trace = read_rollout(lines, run="november", index=4, own=frozenset())
    assert trace is not None
    return trace


def test_a_real_session_has_its_turns_and_their_answers(real: Trace) -> None:
    assert real.turns == (
        Turn(query="What is 10:00 UTC in Tokyo?", answer="It is 19:00 in Tokyo."),
        Turn(query="And again?", answer="It is 19:00 in Tokyo."),
    )
    assert (real.outcome, real.failure, real.trial.case) == ("finished", None, "01a22dd0-359c-7ab2-8ebc-32d97a6981d8")
    assert (real.trial.arm.model, real.trial.arm.harness) == ("gpt-5-mini", "codex")


def test_a_real_session_has_each_call_once_with_its_result_as_it_came(real: Trace) -> None:
    called = [(call.name, call.turn, call.server, call.call_id, call.error) for call in real.tool_calls]
    refused = "Error executing tool convert_time: Invalid timezone: 'No time zone found with key Nowhere'"
    assert called == [
        ("convert_time", 0, None, "c2-1", None),
        ("convert_time", 0, None, "c3-1", refused),
        ("nope", 0, None, "c4-1", "unsupported call: mcp__clocknope"),
        ("convert_time", 1, None, "c2-2", None),
        ("convert_time", 1, None, "c3-2", refused),
        ("nope", 1, None, "c4-2", "unsupported call: mcp__clocknope"),
    ]
    first = real.tool_calls[0]
    assert first.arguments == {"source_timezone": "UTC", "time": "10:00", "target_timezone": "Asia/Tokyo"}
    assert isinstance(first.result, dict)
    assert first.result["time_difference"] == "+9.0h"


def test_a_real_session_has_its_shell_commands(real: Trace) -> None:
    output = "hi\ncat: /nonexistent: No such file or directory\n"
    assert [(c.command, c.output, c.exit_code, c.turn) for c in real.shell_commands] == [
        ("echo hi && cat /nonexistent", output, 1, 0),
        ("echo hi && cat /nonexistent", output, 1, 1),
    ]


def test_a_real_session_has_its_requests_with_their_tokens(real: Trace) -> None:
    told = [
        (r.response_id, r.input_tokens, r.cached_tokens, r.cached_write_tokens, r.output_tokens) for r in real.requests
    ]
    assert told == [(f"r{n}", 1000 * n, 100 * n, 0, 10 * n) for n in range(1, 9)]
    assert all(0 < request.latency_s < 10 for request in real.requests)


def test_the_time_between_two_turns_is_nobodys(real: Trace) -> None:
    # 18:55:50.581 to 18:55:57.1 and 18:55:58.2 to 18:56:04.5; between them the session rested.
    assert real.duration_s == pytest.approx(12.8, abs=0.3)


def test_a_session_file_is_one_witness_and_says_so(real: Trace) -> None:
    assert real.telemetry.gaps == (
        "a session file is the harness's own account: no gateway saw these calls and requests",
    )
    assert set(real.versions) == {"codex", "originator", "instructions"}


def test_lines_of_earlier_versions_are_read_too() -> None:
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2, "reasoning_output_tokens": 1}
    count = {"total_token_usage": usage, "last_token_usage": usage}
    trace = _read(
        _line("turn_context", 0, model="gpt-5"),
        _said("user", "<environment_context>…</environment_context>", 0),
        _said("user", "How many?", 1),
        _line("event_msg", 1, type="user_message", message="How many?"),
        _asked("k", "shop__count", 3, '{"q": 1}'),
        _line(
            "event_msg",
            4,
            type="mcp_tool_call_end",
            call_id="k",
            duration={"secs": 1, "nanos": 500_000_000},
            invocation={"server": "shop", "tool": "count", "arguments": {"q": 1}},
            result={"Ok": {"content": [{"type": "text", "text": "3"}], "is_error": False}},
        ),
        _output("k", "Wall time: 1.5 seconds\nOutput:\n3", 4),
        _line("event_msg", 5, type="token_count", info=count),
        _line("event_msg", 5, type="token_count", info=count),
        _line("event_msg", 6, type="agent_message", message="Three."),
        _said("assistant", "Three.", 6),
    )
    assert trace.turns == (Turn(query="How many?", answer="Three."),)
    assert trace.tool_calls == (
        ToolCall(name="count", arguments={"q": 1}, result="3", started_s=3.0, duration_s=1.5, call_id="k"),
    )
    (request,) = trace.requests
    assert (request.input_tokens, request.cached_tokens, request.output_tokens) == (10, 4, 2)
    assert (trace.trial.arm.model, trace.duration_s) == ("gpt-5", 5.0)


def test_a_thread_that_is_told_again_is_counted_once() -> None:
    said = [_said("user", "a", 1), _asked("k", "shell", 2, '{"command": ["ls", "-l"]}'), _output("k", "x", 3)]
    trace = _read(*said, _line("session_meta", 4, id="parent"), *said[1:], _said("assistant", "b", 5))
    assert trace.shell_commands == (ShellCommand(command="ls -l", output="x"),)
    assert trace.trial.case == "s-1"


def test_only_the_plugins_own_servers_are_the_plugin() -> None:
    trace = _read(
        _said("user", "a", 1),
        _asked("1", "find", 2, namespace="mcp__my_shop"),
        _asked("2", "find", 2, namespace="mcp__wiki"),
        _asked("3", "view_image", 2),
        own=("my-shop",),
    )
    assert [call.server for call in trace.tool_calls] == [None, "wiki", HARNESS_TOOLS]


@pytest.mark.parametrize(
    ("lines", "outcome", "failure"),
    [
        ([_line("event_msg", 2, type="turn_aborted", reason="interrupted")], "gave_up", "broken off: interrupted"),
        ([_line("event_msg", 2, type="error", message="no quota")], "crashed", "no quota"),
        ([], "crashed", "the session ends before an answer"),
        ([_said("assistant", "Yes.", 2)], "finished", None),
    ],
)
def test_how_a_session_ended(lines: list[str], outcome: str, failure: str | None) -> None:
    trace = _read(_said("user", "a", 1), *lines)
    assert (trace.outcome, trace.failure) == (outcome, failure)


def test_what_is_no_session_is_none() -> None:
    assert read_rollout(["", "{}", "no json"], run="r", index=0, own=frozenset()) is None
    assert read_rollout([_meta()], run="r", index=0, own=frozenset()) is None


def test_lines_that_do_not_read_are_counted() -> None:
    trace = _read("{", "[1]", '{"timestamp": "never", "type": "event_msg", "payload": {}}', _said("user", "a", 1))
    assert trace.telemetry.gaps[1:] == ("3 lines do not read",)


def test_arguments_that_nothing_can_hold_stay_the_text_that_they_were() -> None:
    deep = "[" * 5000 + "]" * 5000
    trace = _read(_said("user", "a", 1), _asked("1", "t", 2, deep), _asked("2", "t", 2, "{no"))
    assert [call.arguments for call in trace.tool_calls] == [deep, "{no"]


_PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "item",
                    "id",
                    "call_id",
                    "content",
                    "result",
                    "usage",
                    "info",
                    "text",
                    "role",
                    "Ok",
                    "invocation",
                    "server",
                    "arguments",
                    "output",
                    "duration",
                    "secs",
                    "payload",
                    "timestamp",
                ]
            ),
            part,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_KINDS = st.sampled_from(["session_meta", "turn_context", "response_item", "token_usage_record", "event_msg"])
_TYPES = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "user_message",
        "item_completed",
        "token_count",
        "mcp_tool_call_end",
        "exec_command_end",
        "turn_aborted",
        "error",
        "custom_tool_call",
        "web_search_call",
    ]
)


@given(st.lists(st.tuples(_KINDS, _TYPES, _PAYLOADS), max_size=8))
def test_no_line_breaks_the_reading(lines: list[tuple[str, str, Any]]) -> None:
    told = [
        json.dumps(
            {
                "timestamp": "2026-11-30T10:00:00Z",
                "type": kind,
                "payload": {**payload, "type": what} if isinstance(payload, dict) else payload,
            }
        )
        for kind, what, payload in lines
    ]
    _read(_said("user", "a", 1), *told, own=("shop",))
