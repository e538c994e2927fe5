"""`evalfarm run bls --model sim-careful`: what a user sees first, at all three levels, through the real Codex."""

import json
from typing import Any

import jsonschema
import pytest

from evalfarm.reports.run.schema import summary_schema

pytestmark = pytest.mark.slow

REAL_WORLD_ID = "fetch_bls_data was asked for 'CUUR0000SA0', which is outside the expected set (nothing)"
TIED = "fetch_bls_data was asked for 'CES0000000001', 'LNS12000000', which are outside the expected set (nothing)"


@pytest.fixture(scope="module")
def ended(shared_place: Any) -> Any:
    return shared_place.run("run", "bls", "--model", "sim-careful", "--repeats", "1", "--label", "first")


@pytest.fixture(scope="module")
def run(ended: Any) -> str:
    assert ended.code == 0, ended.err
    return str(ended.err.split()[1].rstrip(":"))


def test_it_ends_well_and_leaves_nothing_running_and_nothing_outside_its_home(
    ended: Any, run: str, shared_place: Any
) -> None:
    assert ended.err == f"Run {run}: 30 trials; a simulated model takes part\n"
    assert ended.out.startswith("30 planned = 28 passed + 2 failed + 0 inconclusive + 0 infra failed + 0 not run\n")
    assert ended.out.endswith(f"\nPage: {shared_place.home}/reports/{run}/report.html\n")
    shared_place.falls_quiet()


def test_only_codex_without_guidance_fails_and_by_the_two_known_ways(run: str, shared_place: Any) -> None:
    summary = shared_place.summary(run)
    passed = {(cell.model, cell.harness, cell.variant): (cell.passed, cell.planned) for cell in summary.cells}
    assert passed == {
        ("none", "direct", "plain"): (5, 5),
        ("none", "direct", "guided"): (5, 5),
        ("sim-careful", "loop", "plain"): (5, 5),
        ("sim-careful", "loop", "guided"): (5, 5),
        ("sim-careful", "codex", "plain"): (3, 5),
        ("sim-careful", "codex", "guided"): (5, 5),
    }
    reasons = {(case.case, case.harness, case.variant): case.reasons for case in summary.cases if case.reasons}
    assert reasons == {
        ("consumer-price-index", "codex", "plain"): (REAL_WORLD_ID,),
        ("employment-ambiguous", "codex", "plain"): (TIED,),
    }
    assert {(b.case, b.variant): b.level for b in summary.breaks if b.level} == {
        ("consumer-price-index", "plain"): "codex",
        ("employment-ambiguous", "plain"): "codex",
    }


def test_every_trial_took_one_attempt_and_its_telemetry_is_complete(run: str, shared_place: Any) -> None:
    store = shared_place.store
    traces = [store.get_trace(run, index, 1) for index in range(30)]
    assert all(trace.telemetry.complete for trace in traces)
    assert {trace.simulated for trace in traces if trace.trial.arm.harness != "direct"} == {True}
    assert shared_place.summary(run).attempts == 30


def test_the_report_in_every_form_says_that_a_simulated_model_took_part(run: str, shared_place: Any) -> None:
    printed = {form: shared_place.run("report", run, *form) for form in ((), ("--json",), ("--html",), ("--markdown",))}
    assert {ended.code for ended in printed.values()} == {0}
    document = json.loads(printed["--json",].out)
    jsonschema.validate(document, json.loads(summary_schema()))
    assert (document["simulated"], document["synthetic"], document["isolation"]) == (True, True, "cell")
    for form in ((), ("--html",), ("--markdown",)):
        assert "simulated" in printed[form].out.lower()
    kept = shared_place.home / "reports" / run
    assert (kept / "summary.json").read_text(encoding="utf-8") == printed["--json",].out
    assert (kept / "report.html").read_text(encoding="utf-8") == printed["--html",].out
    assert (kept / "report.md").read_text(encoding="utf-8") == printed["--markdown",].out


def test_a_trial_can_be_shown(run: str, shared_place: Any) -> None:
    failed = next(index for index, result in shared_place.results(run).items() if result.verdict == "failed")
    shown = shared_place.run("show", f"{run}/{failed}")
    assert (shown.code, shown.err) == (0, "")
    assert "fetch_bls_data" in shown.out


def test_regrading_finds_every_verdict_as_it_was(run: str, shared_place: Any) -> None:
    regraded = shared_place.run("regrade", run)
    assert (regraded.code, regraded.err) == (0, "")
    assert regraded.out.endswith(
        "\nRegraded 30 trials, by tool_route 2 before and tool_route 2 now: 0 trials labelled otherwise,"
        " 0 verdicts changed. The run keeps what it was told.\n"
    )


def test_a_filter_runs_only_the_cases_that_carry_the_tag_and_the_newest_run_is_listed_first(
    run: str, shared_place: Any
) -> None:
    filtered = shared_place.run(
        "run", "bls", "--variant", "guided", "--harness", "direct", "--filter", "mechanism=coverage_gap", "--json"
    )
    document = json.loads(filtered.out)
    jsonschema.validate(document, json.loads(summary_schema()))
    assert (filtered.code, document["planned"], document["passed"]) == (0, 1, 1)
    assert {case["case"] for case in document["cases"]} == {"consumer-price-index"}
    assert document["manifest"]["filters"] == {"mechanism": "coverage_gap"}
    listed = json.loads(shared_place.run("runs", "--json").out)
    assert [manifest["run"] for manifest in listed] == [document["run"], run]


def test_a_finished_run_is_only_reported_when_it_is_resumed(run: str, shared_place: Any, ended: Any) -> None:
    resumed = shared_place.run("resume", "first")
    assert (resumed.code, resumed.err, resumed.out) == (0, "", ended.out)
