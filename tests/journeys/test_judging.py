"""Judges as a user has them: asked once a run's trials are closed, calibrated, demanded by a gate, overruled."""

import json
from typing import Any

import pytest

from cases.loader import load_suite
from evalfarm.judgings import Judgings

pytestmark = pytest.mark.slow

LABELS = load_suite("support").folder / "labels"
ONE_CASE = ("support", "--harness", "loop", "--filter", "case=final-sale-12-days", "--workers", "1")


def judged(place: Any, model: str, judge: str, *words: str) -> str:
    """Run a model on one case, judged: the run's id."""
    ended = place.run("run", *ONE_CASE, "--model", model, "--judge", judge, *words)
    assert ended.code in (0, 3), ended.err
    return str(ended.err.split()[1].rstrip(":"))


def test_a_judge_adds_its_label_says_so_in_the_report_and_a_gate_takes_it_once_it_is_calibrated(place: Any) -> None:
    run = judged(place, "sim-careful", "sim-judge-sound", "--repeats", "3")
    labels = [{label.grader: label.value for label in result.labels} for result in place.results(run).values()]
    assert labels == [{"tool_route": "PASS", "answer": "PASS", "judge": "PASS"}] * 3
    report = place.run("report", run).out
    assert "Judged by sim-judge-sound: 3 PASS, 0 FAIL, 0 INCONCLUSIVE (3 judgings, $0.00" in " ".join(report.split())
    digests = place.store.get_manifest(run).digests
    assert {"judge/sim-judge-sound", "rubric/return-desk"} <= set(digests)

    gate = ("gate", run, "--at-least", "0.1", "--calibrated", "0.05")
    refused = place.run(*gate)
    assert (refused.code, refused.out) == (2, "")
    assert "is not calibrated on held-out labels" in refused.err
    held_out = ("--labels", str(LABELS / "held-out.jsonl"), "--repeats", "1", "--pairs", "0")
    assert place.run("calibrate", "sim-judge-sound", *held_out).code == 0
    assert place.run(*gate).code in (0, 3)
    assert place.run("regrade", run).out.count("→") == 0
    place.falls_quiet()


def test_a_judge_that_is_down_runs_no_trial_again_and_fails_nobody(place: Any) -> None:
    run = judged(place, "sim-careful", "sim-judge-down", "--repeats", "6")
    summary, results = place.summary(run), place.results(run)
    assert (summary.attempts, summary.failed, summary.infra_failed) == (6, 0, 0)
    kept = {index: Judgings(place.store.objects).opinions(run, index) for index in results}
    for index, result in results.items():
        reached = [attempt for attempt in kept[index] if not attempt.outage]
        assert [label.value for label in result.labels if label.grader == "judge"] == [
            "PASS" if reached else "INCONCLUSIVE"
        ]
        assert len(kept[index]) <= 3
        assert all(attempt.outage for attempt in kept[index][:-1])
    assert any(len(attempts) > 1 for attempts in kept.values())  # so this drew an outage at all
    place.falls_quiet()


def test_where_rules_and_judge_differ_the_answer_stays_open_until_somebody_decides(place: Any) -> None:
    run = judged(place, "sim-ignores-final-sale", "sim-judge-lenient", "--repeats", "5")
    found = json.loads(place.run("adjudicate", run, "--json").out)
    values = {
        label.value for result in place.results(run).values() for label in result.labels if label.grader == "judge"
    }
    assert values == {"PASS", "FAIL"}
    assert [one["labels"] for one in found] == [{"answer": "FAIL", "judge": "PASS"}]  # equal answers are one
    sheet = place.root / "open.yaml"
    place.run("adjudicate", run, "--export", str(sheet))
    text = (
        sheet.read_text().replace("decision: null", "decision: FAIL").replace("why: null", "why: It was a final sale.")
    )
    sheet.write_text(text)
    assert place.run("adjudicate", run, "--import", str(sheet), "--by", "Ada").code == 0
    assert json.loads(place.run("adjudicate", run, "--json").out) == []
    (kept,) = Judgings(place.store.objects).adjudications("support")
    assert (kept.by, kept.why, kept.value) == ("Ada", "It was a final sale.", "FAIL")
    place.falls_quiet()
