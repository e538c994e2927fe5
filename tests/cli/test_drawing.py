"""Answers drawn at random from a judged run, labelled by people without the judge's label, to a pass rate."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.loader import load_suite
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.judging import Adjudication
from evalfarm.contracts.run import Arm, Plan, Telemetry, Trace, Turn
from evalfarm.contracts.verdict import Label, LabelValue, Result
from evalfarm.judgings import Judgings
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.judge.prompt import judging_digests
from scheduler.planner import Measured, manifest_of

Run = Callable[..., Any]
SUITE = load_suite("support").suite
CASES = tuple(case.id for case in SUITE.cases[:10])


@pytest.fixture
def store() -> Store:
    return Store(load_settings().store_url)


@pytest.fixture
def run(store: Store) -> str:
    """A finished run of ten cases, twice each, every answer in words of its own. The judge fails the first four."""
    arm = Arm(model="m", harness="loop", variant="plain")
    plan = Plan(run="support-1", suite=SUITE, arms=(arm,), cases=CASES, repeats=2, judges=("j",))
    digests = {"grader": "g"} | judging_digests(plan.judges, SUITE.rubrics)
    measured = Measured(versions={}, digests=digests, simulated=False)
    manifest = manifest_of(plan, measured, created_at=1.0, label="desk", filters={})
    store.put_plan(plan)
    store.put_manifest(manifest)
    results = [_kept(store, plan, index, "FAIL" if index < 4 else "PASS") for index in range(20)]
    store.put_segment(plan.run, 0, results)
    store.put_summary(summarize(manifest, plan, results, attempts=20, finished=True))
    return plan.run


def _kept(store: Store, plan: Plan, index: int, value: LabelValue) -> Result:
    trial = plan.trial(index)
    trace = Trace(
        run=plan.run,
        trial=trial,
        attempt=1,
        outcome="finished",
        turns=(Turn(query="?", answer=f"Answer {index}."),),
        telemetry=Telemetry(complete=True),
        started_at=1.0,
        duration_s=0.5,
    )
    store.put_trace(trace)
    reasons = () if value == "PASS" else ("conditions: it is not so",)
    labels = (
        Label(grader="answer", version="1", value="PASS"),
        Label(grader="judge", version="1", value=value, reasons=reasons),
    )
    return Result(trial=trial, attempt=1, outcome="finished", verdict="passed", labels=labels)


def written(evalfarm: Run, path: Path, *words: str) -> list[dict[str, Any]]:
    """The answers of a sheet that a draw wrote."""
    ended = evalfarm("adjudicate", "desk", "--draw", *words, "--export", str(path))
    assert ended.code == 0, ended.err
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())["answers"]
    return found


def fill(path: Path, decisions: Mapping[int, str]) -> None:
    """Decide on the answers of these trials; all others pass, but those that are named with nothing."""
    data = yaml.safe_load(path.read_text())
    for line in data["answers"]:
        trial = int(line["place"].rpartition("/")[2])
        if decision := decisions.get(trial, "PASS"):
            line |= {"decision": decision, "why": "It is so."}
    path.write_text(yaml.safe_dump(data))


def rates(evalfarm: Run) -> list[dict[str, Any]]:
    ended = evalfarm("adjudicate", "desk", "--rate", "--json")
    assert ended.code == 0, ended.err
    found: list[dict[str, Any]] = json.loads(ended.out)
    return found


def test_a_draw_takes_what_the_judge_failed_and_some_of_the_rest_and_is_kept(
    evalfarm: Run, run: str, store: Store
) -> None:
    ended = evalfarm("adjudicate", "desk", "--draw", "12", "--seed", "3")
    assert ended.code == 0, ended.err
    assert "12 answers of run support-1 drawn at random within the judge's labels, seed 3" in ended.out
    assert "4 of 4" in ended.out
    assert "8 of 16" in ended.out
    (kept,) = Judgings(store.objects).draws(run)
    assert (kept.each, kept.seed, set(kept.arms[0].failed.drawn)) == (12, 3, {0, 1, 2, 3})
    assert json.loads(evalfarm("adjudicate", run, "--draw", "12", "--json").out) == kept.model_dump(mode="json")


def test_a_reviewer_is_shown_no_label_and_no_order_that_tells_it(evalfarm: Run, run: str, tmp_path: Path) -> None:
    lines = written(evalfarm, tmp_path / "labels.yaml", "12")
    assert {(line["labels"], tuple(line["because"])) for line in lines} == {("", ())}
    trials = [int(line["place"].rpartition("/")[2]) for line in lines]
    assert trials == sorted(trials)
    assert len(trials) == 12
    assert "judge" not in (tmp_path / "labels.yaml").read_text()


def test_labels_of_a_whole_draw_give_the_rate_of_each_arm_with_its_interval(
    evalfarm: Run, run: str, store: Store, tmp_path: Path
) -> None:
    sheet = tmp_path / "labels.yaml"
    trials = [int(line["place"].rpartition("/")[2]) for line in written(evalfarm, sheet, "12")]
    passed = [trial for trial in trials if trial >= 4]
    fill(sheet, {0: "FAIL", 1: "FAIL", 2: "FAIL", passed[0]: "FAIL", passed[1]: "DISPUTED"})
    ended = evalfarm("adjudicate", run, "--import", str(sheet), "--by", "Ada")
    assert ended.code == 0, ended.err
    assert ended.out == "Kept 12 of 12 open decisions, by Ada.\n"
    (one,) = rates(evalfarm)
    assert (one["arm"], one["each"], one["seed"], one["disputed"]) == ("m · loop · plain", 12, 0, 1)
    assert (one["judged"]["hits"], one["judged"]["of"]) == (16, 20)
    assert (one["of_passed"]["hits"], one["of_passed"]["of"]) == (6, 7)
    assert (one["of_failed"]["hits"], one["of_failed"]["of"]) == (1, 4)
    assert one["rate"]["value"] == pytest.approx(0.8 * 6 / 7 + 0.2 * 1 / 4)
    assert 0 < one["rate"]["low"] < one["rate"]["value"] < one["rate"]["high"] < 1
    printed = " ".join(evalfarm("adjudicate", run, "--rate").out.split())
    assert "m · loop · plain: 73.6 % [" in printed
    assert "from 11 labels drawn at random (seed 0); the judge says 80.0 %" in printed
    # Rules and judge differ on the four that the judge failed; that is kept with a decision, whoever was shown it.
    apart = {one.answer for one in Judgings(store.objects).adjudications("support") if one.labels}
    assert apart == {f"Answer {index}." for index in range(4)}


def test_labels_that_people_chose_give_no_rate(evalfarm: Run, run: str, store: Store) -> None:
    for index in range(20):
        decision = Adjudication(
            suite="support",
            suite_version=SUITE.version,
            case=CASES[index % 10],
            answer=f"Answer {index}.",
            labels={},
            value="PASS",
            why="It is so.",
            by="Ada",
            at=1.0,
        )
        Judgings(store.objects).put_adjudication(decision)
    ended = evalfarm("adjudicate", run, "--rate")
    assert (ended.code, ended.out) == (2, "")
    said = " ".join(ended.err.split())
    assert (
        "no answers of run 'support-1' were drawn at random, so people's labels say nothing of its other answers"
        in said
    )
    assert "evalfarm adjudicate support-1 --draw 60 --export labels.yaml" in said


def test_a_draw_of_which_some_are_left_gives_no_rate_until_they_are_decided(
    evalfarm: Run, run: str, tmp_path: Path
) -> None:
    sheet = tmp_path / "labels.yaml"
    trials = [int(line["place"].rpartition("/")[2]) for line in written(evalfarm, sheet, "12")]
    fill(sheet, {trials[5]: "", trials[6]: ""})
    assert evalfarm("adjudicate", run, "--import", str(sheet)).code == 0
    ended = evalfarm("adjudicate", run, "--rate")
    assert (ended.code, ended.out) == (2, "")
    said = " ".join(ended.err.split())
    assert "2 of the 12 answers drawn from run 'support-1' are not decided" in said
    assert "those that were decided first are no random draw" in said
    again = written(evalfarm, sheet, "12")
    assert [line["place"] for line in again] == [f"support-1/{trials[5]}", f"support-1/{trials[6]}"]
    fill(sheet, {})
    assert evalfarm("adjudicate", run, "--import", str(sheet)).code == 0
    assert len(rates(evalfarm)) == 1


def test_a_longer_draw_adds_to_a_shorter_one_and_counts_once_it_is_whole(
    evalfarm: Run, run: str, tmp_path: Path
) -> None:
    sheet = tmp_path / "labels.yaml"
    written(evalfarm, sheet, "10", "--seed", "3")
    fill(sheet, {})
    assert evalfarm("adjudicate", run, "--import", str(sheet)).code == 0
    added = written(evalfarm, sheet, "14")
    assert len(added) == 4
    assert [one["each"] for one in rates(evalfarm)] == [10]
    fill(sheet, {})
    assert evalfarm("adjudicate", run, "--import", str(sheet)).code == 0
    assert [one["each"] for one in rates(evalfarm)] == [14]


def test_another_seed_is_refused(evalfarm: Run, run: str) -> None:
    evalfarm("adjudicate", run, "--draw", "10", "--seed", "3")
    ended = evalfarm("adjudicate", run, "--draw", "12", "--seed", "4")
    assert ended.code == 2
    said = " ".join(ended.err.split())
    assert "answers of run 'support-1' were drawn with seed 3; another one would be a choice between draws" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--draw", "10", "--rate"), "--draw and --rate are two things"),
        (("--draw", "10", "--import", "x"), "--draw and --import are two things"),
        (("--draw", "10", "--labels", "x"), "--draw and --labels are two things"),
        (("--rate", "--export", "x"), "--rate and --export are two things"),
        (("--seed", "0"), "--seed is of a draw, and nothing is drawn"),
    ],
)
def test_options_of_which_one_would_go_unheard_are_refused(
    evalfarm: Run, run: str, words: tuple[str, ...], said: str
) -> None:
    ended = evalfarm("adjudicate", run, *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
