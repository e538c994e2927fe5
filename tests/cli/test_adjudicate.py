import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.answer_functions import load_functions
from cases.loader import load_suite
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.reading.sources import read_source
from evalfarm.contracts.judging import CriterionLabel, Opinion, TrialOpinions
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.verdict import LabelValue, Result
from evalfarm.judgings import Judgings
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.grade import result_of
from graders.judge.panel import conclude
from graders.judge.prompt import judging_digests
from scheduler.planner import Measured, manifest_of

Run = Callable[..., Any]
SUPPORT = load_suite("support")
LABELS = SUPPORT.folder / "labels"
WRONG = "It arrived 12 days ago, so it qualifies for a return."


@pytest.fixture
def store() -> Store:
    return Store(load_settings().store_url)


@pytest.fixture
def run(store: Store) -> str:
    """A finished run of one case: its first answer is wrong and the judge passes it, its second is right."""
    suite = SUPPORT.suite
    arm = Arm(model="m", harness="loop", variant="plain")
    plan = Plan(run="support-1", suite=suite, arms=(arm,), cases=("final-sale-12-days",), repeats=2, judges=("j",))
    digests = {"grader": "g"} | judging_digests(plan.judges, suite.rubrics)
    measured = Measured(versions={}, digests=digests, simulated=False)
    manifest = manifest_of(plan, measured, created_at=1.0, label="desk", filters={})
    store.put_plan(plan)
    store.put_manifest(manifest)
    answers = (WRONG, "No. DEMO-102 is a final-sale item, so it does not qualify for a return.")
    results = [_judged(store, plan, index, answer, "PASS") for index, answer in enumerate(answers)]
    store.put_segment(plan.run, 0, results)
    store.put_summary(summarize(manifest, plan, results, attempts=2, finished=True))
    return plan.run


def _judged(store: Store, plan: Plan, index: int, answer: str, value: LabelValue) -> Result:
    fixtures = [plan.suite.fixtures[name] for name in ("DEMO-102", "POLICY-DEMO-v1")]
    calls = tuple(ToolCall(name=one.tool, arguments=one.arguments, result=one.result) for one in fixtures)
    trace = Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        turns=(Turn(query=plan.suite.case("final-sale-12-days").turns[0], answer=answer),),
        tool_calls=calls,
        served_calls=calls,
        telemetry=Telemetry(complete=True),
        started_at=1.0,
        duration_s=0.5,
    )
    store.put_trace(trace)
    label = CriterionLabel(criterion="conditions", value=value, quote="12 days")
    opinions = TrialOpinions(
        run=plan.run, index=index, judged=1, attempt=1, opinions=(Opinion(judge="j", labels=(label,)),)
    )
    functions = load_functions(SUPPORT.suite, SUPPORT.folder)
    return conclude(plan, result_of(plan.suite, trace, functions), [opinions], "")


def listed(evalfarm: Run, *words: str) -> list[Any]:
    ended = evalfarm("adjudicate", *words, "--json")
    assert ended.code == 0, ended.err
    found: list[Any] = json.loads(ended.out)
    return found


def fill(path: Path, **change: str) -> None:
    head, _, _ = path.read_text().partition("answers:")
    data = yaml.safe_load(path.read_text())
    data["answers"][0].update(change)
    path.write_text(head + yaml.safe_dump(data, sort_keys=False))


def test_the_open_disagreements_of_a_run_are_listed_with_case_answer_labels_and_cited_field(
    evalfarm: Run, run: str
) -> None:
    (one,) = listed(evalfarm, "desk")
    assert (one["place"], one["case"], one["answer"]) == ("support-1/0", "final-sale-12-days", WRONG)
    assert one["labels"] == {"answer": "FAIL", "judge": "PASS"}
    assert "DEMO-102.final_sale" in one["cites"]
    printed = evalfarm("adjudicate", run).out
    assert "1 answer on which labels disagree" in printed


def test_a_file_of_labels_stands_beside_the_automatic_ones(evalfarm: Run, run: str) -> None:
    (one,) = listed(evalfarm, run, "--labels", str(LABELS / "calibration.jsonl"))
    assert one["labels"] == {"answer": "FAIL", "judge": "PASS", "people": "FAIL"}


def test_a_decision_by_file_is_kept_with_who_when_and_why_and_closes_the_disagreement(
    evalfarm: Run, run: str, store: Store, tmp_path: Path
) -> None:
    sheet = tmp_path / "open.yaml"
    assert evalfarm("adjudicate", run, "--export", str(sheet)).out == f"Wrote 1 open disagreements to {sheet}.\n"
    fill(sheet, decision="FAIL", why="It was a final sale.")
    ended = evalfarm("adjudicate", run, "--import", str(sheet), "--by", "Ada")
    assert (ended.code, ended.out) == (0, "Kept 1 of 1 open decisions, by Ada.\n")
    (kept,) = Judgings(store.objects).adjudications("support")
    assert (kept.value, kept.why, kept.by, kept.answer) == ("FAIL", "It was a final sale.", "Ada", WRONG)
    assert kept.at > 0
    assert kept.labels == {"answer": "FAIL", "judge": "PASS"}
    assert listed(evalfarm, run) == []


def test_a_file_that_was_taken_in_before_is_refused(evalfarm: Run, run: str, tmp_path: Path) -> None:
    sheet = tmp_path / "open.yaml"
    evalfarm("adjudicate", run, "--export", str(sheet))
    fill(sheet, decision="FAIL", why="So.")
    evalfarm("adjudicate", run, "--import", str(sheet))
    ended = evalfarm("adjudicate", run, "--import", str(sheet))
    assert ended.code == 2
    assert "answers[0].subject: this answer is not open here" in ended.err


def test_a_disputed_reference_drops_out_of_calibration(evalfarm: Run, tmp_path: Path) -> None:
    words = ("sim-judge-lenient", "--labels", str(LABELS / "calibration.jsonl"), "--repeats", "1", "--pairs", "0")
    (before,) = json.loads(evalfarm("calibrate", *words, "--json").out)
    disagreed = listed(evalfarm, before["id"])
    assert len(disagreed) == before["overall"]["false_accept"]["hits"]
    sheet = tmp_path / "open.yaml"
    evalfarm("adjudicate", before["id"], "--export", str(sheet))
    fill(sheet, decision="DISPUTED", why="We cannot agree.")
    assert evalfarm("adjudicate", before["id"], "--import", str(sheet)).code == 0
    (after,) = json.loads(evalfarm("calibrate", *words, "--json").out)
    assert (after["disputed"], after["adjudicated"]) == (before["disputed"] + 1, 1)
    assert after["overall"]["false_accept"]["of"] == before["overall"]["false_accept"]["of"] - 1
    assert len(listed(evalfarm, before["id"])) == len(disagreed) - 1


def test_a_gate_that_demands_a_calibrated_judge_refuses_without_one_and_goes_on_with_one(
    evalfarm: Run, run: str
) -> None:
    ended = evalfarm("gate", run, "--at-least", "0.1", "--calibrated", "0.05")
    assert (ended.code, ended.out) == (2, "")
    assert "the judge j of run 'support-1' is not calibrated on held-out labels" in ended.err
    assert "evalfarm calibrate j --labels HELD-OUT.jsonl" in ended.err
    assert evalfarm("gate", run, "--at-least", "0.1").code in (0, 3)


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """A terminal at which these lines are typed."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{word}\n" for word in words)))


def test_a_walk_on_the_terminal_shows_what_it_takes_to_decide_and_keeps_each_decision_at_once(
    evalfarm: Run, run: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "x", "f", "Final sale excludes it.")
    ended = evalfarm("adjudicate", run, "--by", "Ada")
    assert ended.code == 0, ended.err
    for told in (WRONG, "DEMO-102 arrived 12 days ago. Can I request a return?", "answer FAIL, judge PASS", "Rests on"):
        assert told in " ".join(ended.out.split())
    (kept,) = Judgings(store.objects).adjudications("support")
    assert (kept.value, kept.why, kept.by) == ("FAIL", "Final sale excludes it.", "Ada")
    assert listed(evalfarm, run) == []


@pytest.mark.parametrize("letter", ["s", "q"])
def test_what_is_skipped_or_left_stays_open(
    evalfarm: Run, run: str, store: Store, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    typed(monkeypatch, letter)
    assert evalfarm("adjudicate", run, "--by", "Ada").code == 0
    assert Judgings(store.objects).adjudications("support") == ()
    assert len(listed(evalfarm, run)) == 1


def test_a_comparison_reads_a_run_with_the_answers_that_are_still_open(
    evalfarm: Run, run: str, store: Store, tmp_path: Path
) -> None:
    assert read_source(store, run).summary.disagreements == ("support-1/0",)
    sheet = tmp_path / "open.yaml"
    evalfarm("adjudicate", run, "--export", str(sheet))
    fill(sheet, decision="FAIL", why="It was a final sale.")
    evalfarm("adjudicate", run, "--import", str(sheet))
    assert read_source(store, run).summary.disagreements == ()


def test_there_is_no_such_run(evalfarm: Run) -> None:
    ended = evalfarm("adjudicate", "nothing")
    assert ended.code == 2
    assert "there is no run 'nothing'" in ended.err
