from io import StringIO
from pathlib import Path

import pytest
from pydantic import JsonValue
from rich.console import Console

from evalfarm.contracts.run import ModelRequest, Plan, ShellCommand, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.verdict import Label, Result
from evalfarm.reports.run.trace_view import render_trace, witnessed

SERIES = "CUUR0000SA0"


def printed(trace: Trace, result: Result | None = None) -> str:
    """The view without the blanks that pad its lines."""
    file = StringIO()
    render_trace(trace, result, console=Console(file=file, width=100, color_system=None))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


@pytest.fixture
def trace(plan: Plan) -> Trace:
    """A trial of two turns in which everything happens that a trace can hold."""
    resolve = ToolCall(
        name="resolve",
        arguments={"indicators": [{"indicator": "consumer price index"}]},
        result={"results": [{"candidates": []}]},
        started_s=0.21,
        duration_s=0.004,
    )
    fetch = ToolCall(
        name="fetch_bls_data", arguments={"series_ids": [SERIES]}, error="unknown series", started_s=0.4, turn=1
    )
    return Trace(
        run=plan.run,
        trial=plan.trial(0),
        attempt=2,
        outcome="finished",
        turns=(Turn(query="What is the CPI?", answer="One moment."), Turn(query="And?", answer="I cannot say.")),
        tool_calls=(resolve, fetch),
        served_calls=(resolve.model_copy(update={"started_s": 0.22}), resolve),
        shell_commands=(ShellCommand(command="ls -la", output="total 0\n\x1b[2Jgone", exit_code=0, duration_s=0.02),),
        requests=(
            ModelRequest(
                started_s=0.05,
                latency_s=0.15,
                waited_s=2.0,
                status=200,
                tries=("429, retry after 2 s",),
                model="sim-careful",
                input_tokens=1200,
                cached_tokens=1024,
                output_tokens=40,
            ),
            ModelRequest(started_s=0.5, latency_s=30.0, status=None, error="the stream ended half-way"),
        ),
        telemetry=Telemetry(complete=False, gaps=("the harness reports 2 tool calls, the tool gateway saw 1",)),
        versions={"python": "3.11.9", "codex": "0.163.0"},
        simulated=True,
        started_at=1769846709.0,
        duration_s=3.25,
    )


@pytest.fixture
def judged(trace: Trace) -> Result:
    label = Label(grader="tool-route", version="1", value="FAIL", reasons=(f"fetch_bls_data asked for {SERIES}",))
    return Result(trial=trace.trial, attempt=2, outcome="finished", verdict="failed", labels=(label,))


def test_a_trial_reads_as_stored(trace: Trace, judged: Result, snapshots: Path) -> None:
    assert printed(trace, judged) == (snapshots / "trace.txt").read_text(encoding="utf-8")


def test_a_trial_that_is_not_judged_says_so(trace: Trace) -> None:
    assert "Verdict: none yet" in printed(trace).splitlines()


def test_an_attempt_that_broke_down_before_its_first_turn_can_be_shown(plan: Plan) -> None:
    trace = Trace(
        run=plan.run,
        trial=plan.trial(3),
        attempt=1,
        outcome="infra_failed",
        failure="the MCP server did not come up\nin 20 s",
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=20.0,
        cost_usd=0.0,
    )
    lines = printed(trace).splitlines()
    assert "Outcome: infra_failed: the MCP server did not come up in 20 s" in lines
    assert "Telemetry: complete, the witnesses agree" in lines
    assert not [line for line in lines if line.startswith(("Turn", "Model requests", "SIMULATED"))]


def test_a_long_output_is_cut_with_its_count(trace: Trace) -> None:
    long = trace.model_copy(update={"shell_commands": (ShellCommand(command="yes", output="y\n" * 1000),)})
    assert "(1,400 more characters)" in printed(long)


def call(name: str = "f", arguments: JsonValue = None, result: JsonValue = 1, error: str | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, result=result, error=error)


SAME = "the tool gateway saw the same"
UNSEEN = "NOT seen by the tool gateway"
ALONE = "seen by the tool gateway ONLY"


@pytest.mark.parametrize(
    ("told", "served", "witnesses"),
    [
        ([], [], []),
        ([call()], [call()], [SAME]),
        ([call(arguments={"a": 1, "b": 2})], [call(arguments={"b": 2, "a": 1})], [SAME]),
        ([call()], [], [UNSEEN]),
        ([], [call()], [ALONE]),
        ([call(), call()], [call()], [SAME, UNSEEN]),
        ([call(arguments={"a": 1})], [call(arguments={"a": 2})], [UNSEEN, ALONE]),
        ([call(result=1)], [call(result=2)], ["the tool gateway saw the same call with ANOTHER result: 2"]),
        ([call(error="no")], [call(error="No.")], [SAME]),
        ([call()], [call(error="bad")], ["the tool gateway saw the same call with ANOTHER result: bad"]),
    ],
)
def test_each_call_is_held_against_the_tool_gateways_account(
    told: list[ToolCall], served: list[ToolCall], witnesses: list[str]
) -> None:
    assert [seen.witness for seen in witnessed(told, served)] == witnesses
