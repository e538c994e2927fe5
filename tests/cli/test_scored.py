"""Both implementations of the rules over a run that was summed up: they agree, or whoever asked learns of the rows."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import pytest

from evalfarm.analysis.conversations import tables
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.analysis.summary.rows import Rows
from evalfarm.broker import make_app
from evalfarm.cli.beside.aside import Aside
from evalfarm.cli.beside.scored import RunScoring, score_run
from evalfarm.cli.beside.scoring_along import ScoringAlong
from evalfarm.cli.beside.scoring_behind import ScoringBehind
from evalfarm.cli.services.tending import Tender
from evalfarm.cli.standing import Farm
from evalfarm.contracts.conversation import Conversation
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Result
from evalfarm.conversations import Conversations
from evalfarm.errors import ExitCode, RulesDisagree
from evalfarm.runstate import Client, Ledger
from evalfarm.settings import load_settings
from evalfarm.store import Store
from scheduler.planner import Measured, manifest_of
from scheduler.runs import Scheduler

_RIGHT = Path(tables.__file__).with_name("rules.sql").read_text(encoding="utf-8")
_WRONG = _RIGHT.replace("coalesce(repeated_calls, 0) AS", "coalesce(repeated_calls, 0) + 1 AS")
_PATIENCE_S = 300.0
_ROOT = Path(__file__).parents[2]


def wrong(rules: ConversationRules) -> Scorer:
    """The rules as SQL with a fault in them: one call too many is counted as repeated."""
    return Scorer(rules, _WRONG)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/store")


@pytest.fixture
def plan(store: Store) -> Plan:
    """A stored run of twelve trials that all passed, each with a conversation."""
    suite = Suite(
        suite="shop",
        version="1",
        plugin=Plugin(name="Shop"),
        server=Server(python="server.py"),
        cases=tuple(Case(id=f"c{number}", turns=("How many?",)) for number in range(3)),
    )
    arm = Arm(model="m", harness="loop", variant="plain")
    plan = Plan(run="shop-1", suite=suite, arms=(arm,), cases=tuple(case.id for case in suite.cases), repeats=4)
    store.put_plan(plan)
    measured = Measured(versions={}, digests={}, simulated=False)
    store.put_manifest(manifest_of(plan, measured, created_at=1.0, label=None, filters={}))
    traces = [trace_of(plan, index) for index in range(plan.size)]
    for trace in traces:
        store.put_trace(trace)
    results = [Result(trial=trace.trial, attempt=1, outcome="finished", verdict="passed") for trace in traces]
    store.put_segment(plan.run, 0, results)
    store.objects.write(f"runs/{plan.run}/summary.json", b"{}")  # when it was summed up is all that is asked of it
    return plan


def trace_of(plan: Plan, index: int) -> Trace:
    return Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        turns=(Turn(query="How many?", answer="a" * 200),),
        tool_calls=(ToolCall(name="stock", arguments={"id": 1}, result={"count": 3}),),
        telemetry=Telemetry(complete=True),
        started_at=1_000_000.0 + index,
        duration_s=1.0,
    )


def rows_of(parquet: Path) -> list[Conversation]:
    with Rows.stored(parquet) as rows:
        return [Conversation.model_validate_json(text) for (text,) in rows.records("SELECT to_json(r) FROM rows AS r")]


def test_a_run_is_scored_once_after_it_was_summed_up(store: Store, plan: Plan) -> None:
    kept = Conversations(store.objects)
    assert not kept.are_scored("shop-1")
    score_run(store, "shop-1")
    assert kept.are_scored("shop-1")
    score_run(store, "shop-1", wrong)  # is not asked: all of it is scored
    store.objects.write("runs/shop-1/summary.json", b"{ }", create=False)
    with pytest.raises(RulesDisagree):
        score_run(store, "shop-1", wrong)


def test_rules_that_disagree_are_told_with_their_rows_and_no_row_is_kept(store: Store, plan: Plan) -> None:
    with pytest.raises(RulesDisagree) as told:
        score_run(store, "shop-1", wrong)
    first, *rows, last = told.value.message.splitlines()
    assert first == "the rules over conversations disagree between Python and SQL, so no figure holds"
    assert rows == [f"  shop-1/{index}/1, repeated_calls: 0 in Python, 1 in SQL" for index in range(10)]
    assert last == "  and more"
    assert told.value.hint.startswith("report these rows; `evalfarm show CONVERSATION --json`")
    assert told.value.exit_code == ExitCode.INTERNAL
    assert Conversations(store.objects).rows("runs/shop-1") is None


def test_a_run_that_is_scored_as_its_segments_come_has_the_rows_of_one_that_is_scored_at_its_end(
    store: Store, plan: Plan, tmp_path: Path
) -> None:
    score_run(store, "shop-1")
    kept, file = Conversations(store.objects), tmp_path / "store" / "runs" / "shop-1" / "conversations.parquet"
    at_once = rows_of(file)
    results = store.segment("shop-1", 0)
    store.objects.delete("runs/shop-1/segments/000000.jsonl.zst")
    store.objects.delete("runs/shop-1/conversations.parquet")
    with closing(RunScoring(store, "shop-1")) as scoring:
        for k in range(3):
            store.put_segment("shop-1", k, results[4 * k : 4 * k + 4])
            scoring.go_on()
        assert kept.rows("runs/shop-1") is None
        scoring.finish()
    assert (len(at_once), rows_of(file)) == (plan.size, at_once)


class Followed(Aside):
    """Notes what it is told to do."""

    def __init__(self) -> None:
        super().__init__(load_settings({}))
        self.told: list[str] = []

    def score_so_far(self, run: str) -> None:
        self.told.append(f"score {run}")

    def rest(self, *, at_once: bool = False) -> None:
        self.told.append("rest")


def test_a_run_is_followed_segment_by_segment_until_they_come_seldom() -> None:
    aside, now = Followed(), [0.0]
    along = ScoringAlong(aside, "shop-1", lambda: now[0])
    seen = []
    for at_s, closed in ((0, 999), (5, 1_000), (6, 1_400), (60, 2_100), (119, 2_500), (121, 2_600), (130, 3_000)):
        now[0] = float(at_s)
        along.look(closed)
        seen.append(tuple(aside.told))
        aside.told.clear()
    assert seen == [(), ("score shop-1",), (), ("score shop-1",), (), ("rest",), ()]


@pytest.mark.slow
def test_the_process_beside_goes_on_with_what_it_has_scored_of_a_run_and_leaves_no_file(
    store: Store, plan: Plan, tmp_path: Path
) -> None:
    results = store.segment("shop-1", 0)
    store.objects.delete("runs/shop-1/segments/000000.jsonl.zst")
    store.put_segment("shop-1", 0, results[:8])
    settings = load_settings({"EVALFARM_HOME": str(tmp_path)})
    with Aside(settings) as aside:
        aside.score_so_far("shop-1")
        aside.score_so_far("shop-9")  # is not there: nobody waits for what comes of it
        store.put_segment("shop-1", 1, results[8:])
        aside.score("shop-1")
        (room,) = (path for path in (tmp_path / "cells").iterdir())
        assert list(room.glob("*/*")) == []
    assert list((tmp_path / "cells").iterdir()) == []
    file = tmp_path / "store" / "runs" / "shop-1" / "conversations.parquet"
    assert [row.conversation for row in rows_of(file)] == [f"shop-1/{index}/1" for index in range(12)]


@pytest.mark.slow
def test_what_a_scheduler_seals_is_scored_behind_it_and_what_goes_wrong_is_said(
    store: Store, plan: Plan, tmp_path: Path
) -> None:
    said: SimpleQueue[str] = SimpleQueue()
    behind = ScoringBehind(load_settings({"EVALFARM_HOME": str(tmp_path)}), said.put)
    behind.begin("shop-9")
    assert said.get(timeout=_PATIENCE_S).startswith(
        "run shop-9 is sealed, and its conversations are not scored: no run 'shop-9' in "
    )
    behind.begin("shop-1")
    deadline = time.monotonic() + _PATIENCE_S
    while not Conversations(store.objects).are_scored("shop-1"):
        assert (time.monotonic() < deadline, said.empty()) == (True, True)
        time.sleep(0.02)


@pytest.mark.slow
def test_a_scheduler_has_a_run_scored_when_it_has_sealed_it_and_once(
    store: Store, plan: Plan, tmp_path: Path, redis_url: str, client: Client
) -> None:
    opened = plan.model_copy(update={"run": "shop-2"})
    tending = Scheduler(store, client, make_app(redis_url), lambda *_: pytest.fail("there is nothing to grade"))
    measured = Measured(versions={}, digests={}, simulated=False)
    tending.open_run(opened, manifest_of(opened, measured, created_at=2.0, label=None, filters={}), {})
    Ledger(client, "shop-2").cancel()
    settings, scored = load_settings({"EVALFARM_HOME": str(tmp_path)}), list[str]()
    tender = Tender(Farm(settings, store, client, redis_url, Aside(settings)), tending, print, score=scored.append)
    assert [tender.look(), tender.look(), scored] == ["", "", ["shop-2"]]


@pytest.fixture
def faulty(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `evalfarm WORDS…` of a copy of the product whose SQL has a fault."""
    for package in ("evalfarm", "cases", "scheduler", "worker", "graders"):
        shutil.copytree(_ROOT / package, tmp_path / "copy" / package, ignore=shutil.ignore_patterns("__pycache__"))
    rules = tmp_path / "copy" / "evalfarm" / "analysis" / "conversations" / "rules.sql"
    rules.write_text(_WRONG, encoding="utf-8")

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "evalfarm", *words],
            env=os.environ | {"EVALFARM_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path / "copy")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )

    return run


@pytest.mark.slow
def test_a_run_whose_rules_disagree_is_reported_and_fails_loudly_and_so_does_resuming_it(
    faulty: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    ended = faulty("run", "bls", "--harness", "direct", "--workers", "1", "--repeats", "10")  # more than a segment
    assert (ended.returncode, "Page: " in ended.stdout) == (ExitCode.INTERNAL, True)
    told = ended.stderr.partition("Error: ")[2].splitlines()
    assert told[0] == "the rules over conversations disagree between Python and SQL, so no figure holds"
    assert told[1].endswith("repeated_calls: 0 in Python, 1 in SQL")
    (run,) = os.listdir(tmp_path / "home" / "store" / "runs")
    again = faulty("resume", run)
    assert (again.returncode, again.stdout) == (ExitCode.INTERNAL, ended.stdout)
