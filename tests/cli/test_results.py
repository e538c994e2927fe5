import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.naming import named_run, new_run_id
from evalfarm.cli.running.runs import exit_code_of
from evalfarm.contracts.run import Arm, Plan, Telemetry, Trace
from evalfarm.contracts.suite import Case, DirectCall, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, Result, RunSummary
from evalfarm.errors import UnknownName
from evalfarm.store import Store
from graders.grade import result_of
from scheduler.planner import Measured, manifest_of

Run = Callable[..., Any]
SUITE = Suite(
    suite="shop",
    version="1",
    plugin=Plugin(name="Shop"),
    server=Server(python="server.py"),
    cases=(Case(id="stock", direct=DirectCall(tool="stock")), Case(id="price", direct=DirectCall(tool="price"))),
)


def planned(run: str) -> Plan:
    arm = Arm(model="none", harness="direct", variant="plain")
    return Plan(run=run, suite=SUITE, arms=(arm,), cases=("stock", "price"), repeats=1)


def add_run(store: Store, run: str, *, at: float, label: str | None = None, finished: bool = True) -> Plan:
    """A stored run of two trials: the first with a trace, the second closed without one."""
    plan = planned(run)
    manifest = manifest_of(
        plan, Measured(versions={}, digests={"grader": "g"}, simulated=False), created_at=at, label=label, filters={}
    )
    store.put_plan(plan)
    store.put_manifest(manifest)
    trial, lost = plan.trial(0), plan.trial(1)
    trace = Trace(
        run=run,
        trial=trial,
        attempt=2,
        outcome="finished",
        telemetry=Telemetry(complete=True),
        started_at=at,
        duration_s=0.5,
    )
    store.put_trace(trace)
    results = [
        result_of(SUITE, trace),
        Result(trial=lost, attempt=3, outcome="infra_failed", verdict="infra_failed", failure="attempt 3 was lost"),
    ]
    store.put_segment(run, 0, results)
    if finished:
        store.put_summary(summarize(manifest, plan, results, attempts=4, finished=True))
    return plan


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/home/store")


def test_no_runs_yet_is_said_with_how_to_start_one(evalfarm: Run) -> None:
    ended = evalfarm("runs")
    assert (ended.code, ended.out) == (0, "No runs yet. Start one: evalfarm run bls --model sim-careful\n")
    assert json.loads(evalfarm("runs", "--json").out) == []


def test_runs_are_listed_newest_first(evalfarm: Run, store: Store) -> None:
    for run, at in (("shop-2", 20.0), ("shop-3", 30.0), ("shop-1", 10.0)):
        add_run(store, run, at=at, label="night" if run == "shop-2" else None, finished=run != "shop-3")
    assert [manifest["run"] for manifest in json.loads(evalfarm("runs", "--json").out)] == [
        "shop-3",
        "shop-2",
        "shop-1",
    ]
    assert [line.split() for line in evalfarm("runs").out.splitlines()[1:]] == [
        ["shop-3", "1970-01-01", "00:00:30", "shop", "2", "not", "finished"],
        ["shop-2", "night", "1970-01-01", "00:00:20", "shop", "2", "1", "0"],
        ["shop-1", "1970-01-01", "00:00:10", "shop", "2", "1", "0"],
    ]


def test_a_label_stands_for_the_newest_run_that_carries_it(evalfarm: Run, store: Store) -> None:
    for run, at in (("shop-1", 10.0), ("shop-3", 30.0), ("shop-2", 20.0)):
        add_run(store, run, at=at, label="night")
    assert json.loads(evalfarm("report", "night", "--json").out)["run"] == "shop-3"
    assert json.loads(evalfarm("report", "shop-1", "--json").out)["run"] == "shop-1"


def test_a_report_comes_in_four_forms(evalfarm: Run, store: Store) -> None:
    add_run(store, "shop-1", at=10.0)
    forms = {form: evalfarm("report", "shop-1", *form.split()).out for form in ("", "--json", "--html", "--markdown")}
    assert RunSummary.model_validate_json(forms["--json"]) == store.get_summary("shop-1")
    assert forms["--html"].startswith("<!doctype html>")
    assert forms["--markdown"].startswith("## Run shop-1 of suite shop 1")
    assert forms[""].startswith("2 planned = 1 passed + 0 failed + 0 inconclusive + 1 infra failed + 0 not run\n")


def test_an_unfinished_run_has_no_report_and_is_told_how_to_go_on(evalfarm: Run, store: Store) -> None:
    add_run(store, "shop-1", at=10.0, finished=False)
    for command in ("report", "regrade"):
        ended = evalfarm(command, "shop-1")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == (
            "Error: run 'shop-1' is not finished, so it has no report\n\nhint: go on with it: evalfarm resume shop-1\n"
        )


def test_a_trial_is_shown_by_its_last_attempt_or_the_one_named(evalfarm: Run, store: Store) -> None:
    plan = add_run(store, "shop-1", at=10.0)
    shown = evalfarm("show", "shop-1/0", "--json")
    assert Trace.model_validate_json(shown.out) == store.get_trace("shop-1", 0, 2)
    assert evalfarm("show", "shop-1/0/2", "--json") == shown
    assert plan.trial(0).case in evalfarm("show", "shop-1/0").out


@pytest.mark.parametrize(
    ("trial", "message", "hint"),
    [
        ("shop-1/0/1", "run 'shop-1' holds no trace of trial 0, attempt 1", "its attempts: 2"),
        ("shop-1/1", "run 'shop-1' holds no trace of trial 1", "it has not run yet"),
        ("shop-1/2", "run 'shop-1' has no trial 2", "its trials are 0 to 1"),
        ("shop-2/0", "there is no run 'shop-2' in {store}", "the newest runs: shop-1"),
    ],
)
def test_a_trial_or_attempt_that_is_not_there_is_told_with_what_is(
    evalfarm: Run, store: Store, trial: str, message: str, hint: str
) -> None:
    add_run(store, "shop-1", at=10.0)
    ended = evalfarm("show", trial)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"Error: {message.format(store=store.url)}\n\nhint: {hint}\n"


def test_a_trial_closed_without_a_trace_keeps_its_result_when_regraded(evalfarm: Run, store: Store) -> None:
    add_run(store, "shop-1", at=10.0)
    before = store.get_summary("shop-1")
    ended = evalfarm("regrade", "shop-1")
    assert ended.code == 0
    assert ended.out.endswith(
        "\nRegraded 2 trials, by tool_route 2 before and tool_route 2 now: 0 trials labelled otherwise,"
        " 0 verdicts changed. The run keeps what it was told.\n"
    )
    assert store.get_summary("shop-1") == before


def test_regrading_shows_old_and_new_labels_side_by_side_and_changes_nothing(
    evalfarm: Run, store: Store, tmp_path: Path
) -> None:
    plan = add_run(store, "shop-1", at=10.0)
    trace = store.get_trace("shop-1", 0, 2)
    earlier = Label(grader="tool_route", version="1", value="FAIL", reasons=("as it was judged then",))
    failed = result_of(SUITE, trace).model_copy(update={"verdict": "failed", "labels": (earlier,)})
    other = plan.model_copy(update={"run": "shop-2"})
    store.put_plan(other)
    manifest = store.get_manifest("shop-1").model_copy(update={"run": "shop-2"})
    store.put_manifest(manifest)
    store.put_trace(trace.model_copy(update={"run": "shop-2"}))
    store.put_segment("shop-2", 0, [failed])
    summary = summarize(manifest, other, [failed], attempts=1, finished=True)
    store.put_summary(summary)
    kept = {path: path.read_bytes() for path in (tmp_path / "home/store").rglob("*") if path.is_file()}
    ended = evalfarm("regrade", "shop-2")
    assert ended.out.endswith(
        "\nRegraded 1 trial, by tool_route 1 before and tool_route 2 now: 1 trial labelled otherwise,"
        " 1 verdict changed. The run keeps what it was told.\n"
        f"  trial 0 ({trace.trial.case}): failed → passed\n"
        "    tool_route: FAIL (1) → PASS (2)\n"
    )
    now = {path: path.read_bytes() for path in (tmp_path / "home/store").rglob("*") if path.is_file()}
    assert {path: now[path] for path in kept} == kept
    assert [path.parent.name for path in now.keys() - kept.keys()] == ["regrades"]


def test_two_runs_of_one_second_have_two_names() -> None:
    assert new_run_id("shop", 0.0, frozenset()) == "shop-19700101-000000"
    taken = frozenset({"shop-19700101-000000", "shop-19700101-000000-2"})
    assert new_run_id("shop", 0.0, taken) == "shop-19700101-000000-3"


def test_commands_that_name_a_run_at_the_same_moment_get_a_run_each(tmp_path: Path) -> None:
    start, names = threading.Barrier(8), list[str]()

    def name() -> None:
        store = Store(tmp_path.as_uri())
        start.wait()
        with named_run(planned("unnamed"), "shop", 0.0, store) as mine:
            names.append(mine.run)

    threads = [threading.Thread(target=name) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stem = "shop-19700101-000000"
    assert sorted(names) == [stem, *(f"{stem}-{number}" for number in range(2, 9))]


def test_the_name_of_a_run_that_could_not_begin_is_let_go_and_that_of_one_that_did_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path.as_uri())
    for begins in (False, True):
        with suppress(KeyboardInterrupt), named_run(planned("unnamed"), "shop", 0.0, store) as mine:
            if begins:
                measured = Measured(versions={}, digests={}, simulated=True)
                store.put_manifest(manifest_of(mine, measured, created_at=0.0, label=None, filters={}))
            raise KeyboardInterrupt
        assert store.names_of_runs() == ({"shop-19700101-000000"} if begins else frozenset())


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"passed": 1, "failed": 1}, 0),
        ({"inconclusive": 2}, 3),
        ({"infra_failed": 1, "inconclusive": 1}, 4),
        ({"not_run": 2}, 4),
    ],
)
def test_a_run_s_exit_code_says_whether_all_was_decided_not_whether_it_went_well(
    store: Store, counts: dict[str, int], code: int
) -> None:
    add_run(store, "shop-1", at=10.0)
    summary = store.get_summary("shop-1")
    assert summary is not None
    none = dict.fromkeys(("passed", "failed", "inconclusive", "infra_failed", "not_run"), 0)
    assert exit_code_of(summary.model_copy(update=none | counts)) == code


def test_a_run_nobody_made_is_no_run(store: Store) -> None:
    with pytest.raises(UnknownName):
        store.get_plan("shop-9")
