from collections.abc import Callable, Iterable

import pytest

from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import FirstBreak, Result, RunSummary
from evalfarm.reports.run import case_tables, findings
from evalfarm.reports.run.findings import Command

Summarized = Callable[[Iterable[Result]], RunSummary]


def all_passed(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.verdict == "passed"]


def test_the_five_counts_are_always_said(summary: RunSummary, summarized: Summarized) -> None:
    assert findings.counts(summary) == (
        "90 planned = 80 passed + 7 failed + 1 inconclusive + 1 infra failed + 1 not run"
    )
    assert findings.counts(summarized([])) == (
        "90 planned = 0 passed + 0 failed + 0 inconclusive + 0 infra failed + 90 not run"
    )


def test_the_weakest_arm_is_named_with_its_counts_before_its_rate(summary: RunSummary) -> None:
    assert findings.weakest_arm(summary) == (
        "Weakest: sim-careful · codex · plain: 9 of 15 trials passed, by case 60.0 % [23.1, 88.2]"
    )


def test_arms_that_are_equally_weak_are_counted(summarized: Summarized, results: list[Result]) -> None:
    failed = [result.model_copy(update={"verdict": "failed"}) for result in results]
    assert findings.weakest_arm(summarized(failed)) == (
        "Weakest: direct · plain, and 5 more arms like it: 0 of 15 trials passed, by case 0.0 % [0.0, 43.4]"
    )


def test_a_run_where_all_passed_says_so(summarized: Summarized, results: list[Result]) -> None:
    summary = summarized(all_passed(results))
    assert findings.weakest_arm(summary) == "Every decided trial passed, in 6 arms."


def test_a_run_where_nothing_was_decided_says_nothing_about_the_plugin(summarized: Summarized) -> None:
    summary = summarized([])
    assert findings.weakest_arm(summary) == "No trial was decided: this run says nothing about the plugin."
    assert findings.broken_levels(summary) == "No level broke in 15 readings (case × model × variant); 15 undecided."


def test_the_level_that_broke_is_counted(summary: RunSummary) -> None:
    assert findings.broken_levels(summary) == "Broke first: codex in 3 of 15 readings (case × model × variant)."


@pytest.mark.parametrize(
    ("level", "passed", "ended"),
    [
        ("loop", {"direct": "3/3", "loop": "1/3", "codex": "0/0"}, "loop"),
        (None, {"direct": "3/3", "loop": "3/3"}, "held"),
        (None, {"direct": "3/3", "loop": "0/0"}, "undecided"),
        (None, {"direct": "10/10"}, "held"),
    ],
)
def test_a_level_without_a_decided_trial_has_not_held(level: str | None, passed: dict[str, str], ended: str) -> None:
    reading = FirstBreak(case="c", model="m", variant="v", level=level, passed=passed)
    assert findings.end(reading) == ended


def test_what_limits_a_run_is_said_first(summary: RunSummary) -> None:
    assert findings.caveats(summary) == (
        "SIMULATED: a simulated model took part; its rates say nothing about a real model.",
        "SYNTHETIC: the data behind the plugin's server is made up.",
        "UNFINISHED: 1 trial not run yet; the rates are over the rest.",
        "Isolation: cell (each attempt in a sandbox of its own).",
    )


def test_a_real_and_finished_run_says_its_isolation_alone(summary: RunSummary) -> None:
    real = {"simulated": False, "synthetic": False, "finished": True, "isolation": "harness"}
    assert findings.caveats(summary.model_copy(update=real)) == (
        "Isolation: harness (only the product's own sandbox; attempts could see this machine).",
    )


def test_cases_to_look_at_come_arm_by_arm_with_their_trials(summary: RunSummary, plan: Plan) -> None:
    found = findings.cases_to_look_at(summary)
    assert [(findings.arm(case), case.case, findings.tally(case)) for case in found] == [
        ("sim-careful · codex · plain", "consumer-price-index", "3 failed of 3"),
        ("sim-careful · codex · plain", "employment-ambiguous", "3 failed of 3"),
        ("sim-flaky · codex · plain", "unemployment-rate", "1 failed of 3"),
        ("sim-flaky · codex · plain", "nonfarm-payroll", "1 inconclusive of 3"),
        ("sim-flaky · codex · plain", "consumer-price-index", "1 infra failed of 3"),
    ]
    shown = [plan.trial(index) for case in found for index in findings.trials_to_show(case)]
    assert [(trial.case, trial.repeat) for trial in shown[-3:]] == [
        ("unemployment-rate", 1),
        ("nonfarm-payroll", 2),
        ("consumer-price-index", 2),
    ]


def test_where_every_reading_held_none_is_called_another(summary: RunSummary) -> None:
    held = [reading for reading in summary.breaks if findings.end(reading) == findings.HELD]
    assert (case_tables.breaks(held).rows, case_tables.breaks(held).note) == ((), "All 12 readings held.")


def test_the_next_commands_fit_the_run(summary: RunSummary, summarized: Summarized, results: list[Result]) -> None:
    run = summary.run
    arms = Command(f"evalfarm compare {run}", "arm against arm, case by case")
    page = Command(f"evalfarm report {run} --html > report.html", "one page, with every trial")
    assert findings.next_commands(summary) == (
        Command(f"evalfarm resume {run}", "run what has not run yet"),
        Command(f"evalfarm show {run}/0", "that trial, step by step"),
        arms,
        page,
    )
    assert findings.next_commands(summarized(all_passed(results))) == (arms, page)


def test_the_shakiest_arm_is_the_one_whose_reruns_disagree_most(summary: RunSummary) -> None:
    assert findings.shakiest_arm(summary) == (
        "Shakiest: sim-flaky · codex · plain: 20.0 % flipped at 3 repeats, D 13.3 % [1.2, 65.2],"
        " spread no more than rerun noise."
    )


def test_where_nothing_flipped_no_arm_is_shaky(summarized: Summarized, results: list[Result]) -> None:
    steady = [result.model_copy(update={"verdict": "passed"}) for result in results]
    assert findings.shakiest_arm(summarized(steady)) == "No case flipped, in 6 arms at 3 repeats."


def test_one_repeat_says_nothing_of_steadiness(summarized: Summarized, results: list[Result]) -> None:
    once = [result for result in results if result.trial.repeat == 0]
    said = "Steadiness cannot be estimated: no case was decided twice in one arm."
    assert findings.shakiest_arm(summarized(once)) == said


def test_a_spread_is_judged_only_where_it_can_be(summary: RunSummary) -> None:
    spread = summary.cells[-1].repeat_spread
    changed = [
        spread.model_copy(update={"p": p, "more_than_noise": more})
        for p, more in ((0.7376, False), (0.001, True), (None, None))
    ]
    assert [findings.spread_verdict(told) for told in changed] == ["no (p 0.74)", "yes (p 0.001)", "n/a"]


def test_rows_from_elsewhere_say_so_and_name_what_they_can(summary: RunSummary) -> None:
    foreign = summary.model_copy(update={"manifest": None, "breaks": (), "notes": ("Noted.",)})
    cell = summary.cells[0].model_copy(update={"model": "-", "harness": "-", "variant": "-"})
    assert findings.caveats(foreign) == (
        "FOREIGN: these rows were not produced by evalfarm; what was run is not known.",
        "Noted.",
    )
    assert findings.identity(foreign) == "Rows of bls-20260131-080509, 91 attempts"
    assert (findings.next_commands(foreign), findings.broken_levels(foreign)) == ((), "")
    assert [findings.arm(cell), findings.arm(cell.model_copy(update={"model": "m"}))] == ["all trials", "m"]
