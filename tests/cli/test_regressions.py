"""`lock`, `promote` and `run --affected-by` as a user types them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.loader import SHIPPED, LoadedSuite, file_digests, load_suite, select_cases
from cases.regressions import read_regressions
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.running.runs import chosen_cases
from evalfarm.contracts.run import Telemetry, ToolCall, Trace, Turn
from evalfarm.errors import UsageError
from evalfarm.store import Store
from graders.grade import result_of
from scheduler.planner import Axes, Measured, manifest_of, plan_run

Run = Callable[..., Any]
CASE = "order-unavailable"
CALLS = (
    ToolCall(
        name="lookup_order",
        arguments={"order_id": "DEMO-105"},
        result={"status": "unavailable", "order_id": "DEMO-105"},
    ),
)


@pytest.fixture
def support(tmp_path: Path) -> Path:
    """A copy of the support suite, without a lock."""
    folder = Path(shutil.copytree(SHIPPED / "support", tmp_path / "support"))
    (folder / "suite.lock").unlink()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/home/store")


def add_run(store: Store, loaded: LoadedSuite, run: str, *, at: float, answer: str) -> None:
    """A finished run of one trial of one case, with this answer."""
    axes = Axes(models=("sim-careful",), harnesses=("loop",))
    plan = plan_run(loaded.suite, axes, run=run, cases=[CASE], files=file_digests(loaded))
    manifest = manifest_of(
        plan, Measured(versions={}, digests={}, simulated=True), created_at=at, label=None, filters={}
    )
    for data in loaded.files.values():
        store.put_blob(data)
    store.put_plan(plan)
    store.put_manifest(manifest)
    trace = Trace(
        run=run,
        trial=plan.trial(0),
        attempt=1,
        outcome="finished",
        turns=(Turn(query="Is DEMO-105 still eligible for a return?", answer=answer),),
        tool_calls=CALLS,
        served_calls=CALLS,
        telemetry=Telemetry(complete=True),
        started_at=at,
        duration_s=0.1,
    )
    store.put_trace(trace)
    results = [result_of(loaded.suite, trace)]
    store.put_segment(run, 0, results)
    store.put_summary(summarize(manifest, plan, results, attempts=1, finished=True))


def test_a_lock_is_written_and_says_how_much_it_grew(evalfarm: Run, support: Path) -> None:
    first, again = evalfarm("lock", str(support)), evalfarm("lock", str(support))
    assert (first.code, first.out) == (0, f"{support}/suite.lock: 30 versions added\n")
    assert (again.code, again.out) == (0, f"{support}/suite.lock: 0 versions added\n")
    told = json.loads(evalfarm("lock", str(support), "--json").out)
    assert told == {"lock": f"{support}/suite.lock", "added": []}


def test_a_resolved_failure_joins_the_regression_set_with_all_that_it_rests_on(
    evalfarm: Run, support: Path, store: Store
) -> None:
    loaded = load_suite(str(support))
    add_run(store, loaded, "r-1", at=10.0, answer="It was delivered 10 days ago, so it qualifies.")
    unresolved = evalfarm("promote", "r-1/0", "--suite", str(support))
    assert (unresolved.code, unresolved.err) == (
        2,
        "Error: no later trial of case 'order-unavailable', version '2', passed: the failure is not resolved yet\n\n"
        "hint: mend it, then evalfarm run SUITE --filter case=order-unavailable\n",
    )
    add_run(store, loaded, "r-2", at=20.0, answer="The data for DEMO-105 is unavailable.")
    promoted = evalfarm("promote", "r-1/0", "--suite", str(support), "--note", "it made the facts up")
    kept = support / "suite.regressions.jsonl"
    assert (promoted.code, promoted.out) == (0, f"{kept}: case order-unavailable added; resolved by r-2/0\n")
    (regression,) = read_regressions(kept)
    assert (regression.case, regression.fixture_version, regression.note) == (CASE, "2", "it made the facts up")
    assert (regression.turns[0].answer, regression.evidence) == (
        "It was delivered 10 days ago, so it qualifies.",
        CALLS,
    )
    assert [(label.grader, label.value) for label in regression.labels] == [("tool_route", "PASS"), ("answer", "FAIL")]
    assert regression.reference == loaded.suite.case(CASE).reference
    assert [(one.run, one.trial, one.attempt) for one in (regression.failed, regression.passed)] == [
        ("r-1", 0, 1),
        ("r-2", 0, 1),
    ]
    grown = load_suite(str(support))
    assert select_cases(grown.suite, {"regression": "yes"}, grown.regressions) == (CASE,)


def test_a_failure_is_promoted_once_and_only_a_failure(evalfarm: Run, support: Path, store: Store) -> None:
    loaded = load_suite(str(support))
    add_run(store, loaded, "r-1", at=10.0, answer="It qualifies.")
    add_run(store, loaded, "r-2", at=20.0, answer="The data for DEMO-105 is unavailable.")
    assert evalfarm("promote", "r-2/0", "--suite", str(support)).err.startswith(
        "Error: trial r-2/0 is passed, and only a failure can be promoted\n"
    )
    assert evalfarm("promote", "r-1/0", "--suite", str(support), "--resolved-by", "r-1/0").err.startswith(
        "Error: trial r-1/0 did not pass, so it resolves nothing\n"
    )
    assert evalfarm("promote", "r-1/0", "--suite", str(support)).code == 0
    before = (support / "suite.regressions.jsonl").read_bytes()
    again = evalfarm("promote", "r-1/0", "--suite", str(support))
    assert again.code == 2
    assert "trial 0 of run 'r-1' is in" in again.err
    assert (support / "suite.regressions.jsonl").read_bytes() == before


def test_a_change_and_a_filter_choose_the_cases_of_both(support: Path) -> None:
    loaded = load_suite(str(support))
    assert chosen_cases(loaded, {"category": "conversation"}, None) == ("turns-to-another-order", "id-comes-later")
    assert chosen_cases(loaded, {"category": "conversation"}, "policy:DEMO-106") == ("turns-to-another-order",)
    with pytest.raises(UsageError, match="none of the 2 cases chosen is touched by policy:DEMO-102"):
        chosen_cases(loaded, {"category": "conversation"}, "policy:DEMO-102")


def test_what_a_suite_s_author_wrote_cannot_steer_the_terminal(evalfarm: Run, support: Path) -> None:
    path = support / "suite.yaml"
    path.write_text(path.read_text().replace("category: eligible\n", 'category: "\\e[31mred"\n', 1))
    ended = evalfarm("run", str(support), "--model", "sim-careful")
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "\\x1b[31mred" in ended.err
