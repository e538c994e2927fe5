"""`evalfarm export`: the rows of the console and whole conversations, as files."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.analysis.conversations.sources import export, run_source
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.analysis.summary.rows import Rows
from evalfarm.cli.conversations.export import for_terminal
from evalfarm.cli.conversations.scoring import read_subject
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.store import Store
from graders.grade import result_of
from scheduler.planner import Measured, manifest_of

Run = Callable[..., Any]
HOSTILE = "=1\x1b]0;owned\x07\x9b31m\u202e<script>|\r\n"


def add_run(store: Store, run: str, suite: str = "shop", version: str = "1.0.0") -> Plan:
    """A finished run of two trials, scored; in the first a tool is called with a name that would steer a terminal."""
    asked = Suite(
        suite=suite,
        version="1",
        plugin=Plugin(name="Shop", version=version),
        server=Server(python="server.py"),
        cases=(Case(id="a", turns=("How many?",)), Case(id="b", turns=("How much?",))),
    )
    arm = Arm(model="m", harness="loop", variant="plain")
    plan = Plan(run=run, suite=asked, arms=(arm,), cases=("a", "b"), repeats=1)
    manifest = manifest_of(
        plan, Measured(versions={}, digests={}, simulated=False), created_at=0.0, label=None, filters={}
    )
    store.put_plan(plan)
    store.put_manifest(manifest)
    calls = (ToolCall(name=HOSTILE, arguments={"id": HOSTILE}, result=HOSTILE),)
    results = []
    for index in range(plan.size):
        trace = Trace(
            run=run,
            trial=plan.trial(index),
            attempt=1,
            outcome="finished",
            turns=(Turn(query="How many?", answer=HOSTILE * 9),),
            tool_calls=calls if index == 0 else (),
            session=f"thread-{index}",
            telemetry=Telemetry(complete=True),
            started_at=float(index),
            duration_s=1.0,
        )
        store.put_trace(trace)
        results.append(result_of(asked, trace))
    store.put_segment(run, 0, results)
    store.put_summary(summarize(manifest, plan, results, attempts=2, finished=True))
    read_subject(store, run)
    return plan


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/home/store")


def test_a_dataset_is_written_in_every_format_and_says_the_same(store: Store, evalfarm: Run, tmp_path: Path) -> None:
    add_run(store, "shop-1")
    add_run(store, "other-1", suite="other")
    found = json.loads(evalfarm("export", "conversations", "--json", "--filter", "suite=shop").out)
    assert [row["conversation"] for row in found] == ["shop-1/0/1", "shop-1/1/1"]
    lines = evalfarm("export", "conversations", "--format", "jsonl", "--filter", "run=shop-1").out
    assert [json.loads(line) for line in lines.splitlines()] == found
    table = evalfarm("export", "conversations", "--filter", "run=shop-1").out
    assert [row["conversation"] for row in csv.DictReader(io.StringIO(table))] == ["shop-1/0/1", "shop-1/1/1"]
    file = tmp_path / "x.parquet"
    written = evalfarm("export", "conversations", "--format", "parquet", "--filter", "run=shop-1", "-o", str(file))
    assert (written.out, written.err) == ("", f"Written to {file}.\n")
    with Rows() as rows:
        kept = rows.records("SELECT to_json(t) FROM read_parquet(?) AS t", [str(file)])
    assert [json.loads(document) for (document,) in kept] == found
    assert [entry.name for entry in tmp_path.iterdir() if "evalfarm-" in entry.name] == []


def test_whole_conversations_are_asked_for_by_run_and_by_session(store: Store, evalfarm: Run) -> None:
    for run in ("shop-1", "shop-2"):
        add_run(store, run)
    whole = list(export(run_source(store, "shop-2")))
    assert evalfarm("export", "bundles", "--filter", "run=shop-2").out.splitlines() == whole
    assert (
        evalfarm("export", "bundles", "--filter", "run=shop-2", "--filter", "session=thread-1").out == whole[1] + "\n"
    )
    window = ("--filter", "from=1970-01-01T00:00:01", "--preview")
    assert evalfarm("export", "bundles", *window).out == "2 conversations\n"


def test_a_preview_gives_the_count_alone(store: Store, evalfarm: Run) -> None:
    add_run(store, "shop-1")
    assert evalfarm("export", "versions", "--preview").out == "1 row of versions\n"
    assert json.loads(evalfarm("export", "runs", "--preview", "--json").out) == {"of": "runs", "count": 1}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("versions", "--filter", "suite"), "the filter 'suite' says no value"),
        (("versions", "--filter", "colour=red"), "there is no parameter 'colour'"),
        (("versions", "--filter", "from=2026-01-01"), "there is no parameter 'from'"),
        (("versions", "--filter", "days=0"), "days cannot be so"),
        (("bundles", "--format", "csv"), "whole conversations are no csv"),
        (("bundles", "--filter", "to=tomorrow"), "to is no moment"),
        (("versions", "-o", "nowhere/x.csv"), "nowhere/x.csv cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_named(evalfarm: Run, words: tuple[str, ...], told: str) -> None:
    ended = evalfarm("export", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"Error: {told}")


def test_on_a_terminal_nothing_steers_it_and_json_keeps_its_value() -> None:
    text = json.dumps([HOSTILE], ensure_ascii=False)
    # Cut in the middle of a character, as pieces of a file are.
    pieces = [text.encode()[:22], text.encode()[22:]]
    shown = "".join(for_terminal(pieces, "json"))
    assert json.loads(shown) == [HOSTILE]
    assert "".join(for_terminal([b"\xff\x1b[2J\n"], "csv")) == "\ufffd\\x1b[2J\n"
    assert not set("\x1b\x07\x9b\u202e") & set(shown)


@pytest.mark.slow
def test_a_terminal_is_seen_to_be_one(store: Store) -> None:
    add_run(store, "shop-1")
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "evalfarm", "export", "tools"]
    with subprocess.Popen(argv, stdout=theirs) as writing:
        os.close(theirs)
        seen = b""
        while piece := _read(ours):
            seen += piece
        assert writing.wait(60) == 0
    os.close(ours)
    assert b"'=1\\x1b]0;owned\\x07\\x9b31m\\u202e" in seen
    assert b"\x1b" not in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # whoever wrote to it is gone
        return b""
