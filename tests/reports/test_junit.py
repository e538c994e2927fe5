from xml.etree.ElementTree import fromstring

from evalfarm.analysis.judgement.gate import GateQuestion, judge_run
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.junit import render
from tests.made_runs import CODEX, LOOP, made_case, made_run, made_source


def with_cells(summary: RunSummary) -> RunSummary:
    """A summary whose cells are named, as a run's are; their figures are not looked at."""
    names = dict.fromkeys((case.model, case.harness, case.variant) for case in summary.cases)
    cells = tuple(
        type("Cell", (), {"model": model, "harness": harness, "variant": variant}) for model, harness, variant in names
    )
    return summary.model_copy(update={"cells": cells})


RUN = with_cells(
    made_run(
        "r1",
        made_case("good", LOOP, 3, 3, latency_s=1.25),
        made_case("bad", LOOP, 1, 3, reasons=("a <wrong> tool\x1b[2J & more",)),
        made_case("away", CODEX, 2, 2, planned=3, reasons=("the provider was down",)),
        made_case("nothing", CODEX, 0, 0, planned=0),
    )
)


def test_a_case_fails_errs_or_is_skipped_as_its_trials_did() -> None:
    assert (
        render(RUN)
        == """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="small: r1" tests="4" failures="1" errors="1" skipped="1">
  <testsuite name="m / loop / plain" tests="2" failures="1" errors="0" skipped="0">
    <testcase name="good" time="1.250" classname="m / loop / plain" />
    <testcase name="bad" time="0.000" classname="m / loop / plain">
      <failure message="2 of 3 trials failed">a &lt;wrong&gt; tool\ufffd[2J &amp; more</failure>
    </testcase>
  </testsuite>
  <testsuite name="m / codex / plain" tests="2" failures="0" errors="1" skipped="1">
    <testcase name="away" time="0.000" classname="m / codex / plain">
      <error message="infrastructure failed 1 of 3 trials">the provider was down</error>
    </testcase>
    <testcase name="nothing" time="0.000" classname="m / codex / plain">
      <skipped message="none of 0 trials was decided" />
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_a_gate_is_a_suite_of_its_own() -> None:
    tonight = made_source("tonight", {LOOP: [3] * 10, CODEX: [0] * 10})
    gate = judge_run(tonight, [], None, GateQuestion(at_least=0.5))
    root = fromstring(render(with_cells(tonight.summary), gate))
    (suite,) = [suite for suite in root if suite.get("name") == "gate"]
    assert [(case.get("name"), [kind.tag for kind in case]) for case in suite] == [
        ("m · loop · plain", []),
        ("m · codex · plain", ["failure"]),
    ]
    assert (root.get("tests"), root.get("failures")) == ("22", "11")
