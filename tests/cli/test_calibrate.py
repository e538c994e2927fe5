"""Each simulated judge, calibrated on the shipped labels: its fault is named, and its known rate is in the interval."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.loader import load_suite
from cases.policies.judges import DOWN_CHANCE, LENIENT_CHANCE

LABELS = load_suite("support").folder / "labels"
HELD_OUT, CALIBRATION = str(LABELS / "held-out.jsonl"), str(LABELS / "calibration.jsonl")

Run = Callable[..., Any]


def calibrated(evalfarm: Run, *words: str, code: int) -> list[Any]:
    ended = evalfarm("calibrate", *words, "--json")
    assert (ended.code, ended.err) == (code, "")
    found: list[Any] = json.loads(ended.out)
    return found


def names(found: Any) -> list[str]:
    return [finding.partition(":")[0] for finding in found["findings"]]


def test_the_sound_judge_has_no_fault_and_may_pass_a_gate_at_five_percent(evalfarm: Run) -> None:
    (found,) = calibrated(evalfarm, "sim-judge-sound", "--labels", HELD_OUT, code=0)
    assert found["findings"] == []
    rates = found["overall"]
    assert [(rate["hits"], rate["of"]) for rate in (rates["false_accept"], rates["false_reject"])] == [(0, 80), (0, 30)]
    assert found["false_accept_at_most"] < 0.05
    assert (found["kappa"]["value"], found["self_disagreement"]["value"], found["pairs"]["right"]["value"]) == (1, 0, 1)
    assert (found["disputed"], found["uses"]) == (1, {"times": 1, "judges": 1, "versions": 1})


def test_the_lenient_judge_is_found_at_its_known_rate(evalfarm: Run) -> None:
    (found,) = calibrated(evalfarm, "sim-judge-lenient", "--labels", HELD_OUT, "--pairs", "0", code=1)
    accept = found["overall"]["false_accept"]
    assert accept["low"] <= LENIENT_CHANCE <= accept["high"]
    assert found["overall"]["false_reject"]["hits"] == 0
    assert names(found) == ["LENIENT", "UNSTEADY"]  # it draws anew for each judging


@pytest.mark.parametrize("labels", [HELD_OUT, CALIBRATION])
def test_the_judge_that_favours_length_is_found(evalfarm: Run, labels: str) -> None:
    (found,) = calibrated(evalfarm, "sim-judge-long", "--labels", labels, "--repeats", "1", "--pairs", "0", code=1)
    assert "FAVOURS LENGTH" in names(found)
    short, middle, long = found["by_length"]
    assert (short["false_accept"]["hits"], middle["false_accept"]["hits"]) == (0, 0)
    assert long["false_accept"]["hits"] == found["overall"]["false_accept"]["hits"] > 0


@pytest.mark.parametrize("labels", [HELD_OUT, CALIBRATION])
def test_the_judge_that_favours_the_first_position_is_found(evalfarm: Run, labels: str) -> None:
    (found,) = calibrated(evalfarm, "sim-judge-first", "--labels", labels, "--repeats", "1", code=1)
    assert names(found) == ["FAVOURS THE FIRST POSITION"]
    assert found["pairs"]["order_decided"]["value"] == 1


@pytest.mark.parametrize("labels", [HELD_OUT, CALIBRATION])
def test_the_judge_that_is_down_is_found_at_its_known_rate_and_errs_in_nothing_else(evalfarm: Run, labels: str) -> None:
    (found,) = calibrated(evalfarm, "sim-judge-down", "--labels", labels, "--repeats", "1", "--pairs", "9", code=1)
    assert found["failed"]["low"] <= DOWN_CHANCE <= found["failed"]["high"]
    assert names(found) == ["UNRELIABLE"]
    assert found["overall"]["false_accept"]["hits"] == found["overall"]["false_reject"]["hits"] == 0


def test_several_judges_are_held_against_each_other_too(evalfarm: Run) -> None:
    words = ("sim-judge-sound", "sim-judge-lenient", "--labels", CALIBRATION, "--repeats", "1", "--pairs", "0")
    sound, lenient = calibrated(evalfarm, *words, code=1)
    (other,) = sound["other_judges"]
    assert (other["other"], other["answers"]) == ("sim-judge-lenient", 67)
    # The sound one says what people say, so the two differ where the lenient one and people do.
    assert other["kappa"]["value"] == pytest.approx(lenient["kappa"]["value"], abs=0.05)
    assert sound["uses"]["times"] == 1
    assert lenient["uses"] == {"times": 2, "judges": 2, "versions": 1}


def test_the_report_opens_with_the_fault_and_says_how_often_the_labels_were_used(evalfarm: Run) -> None:
    words = ("sim-judge-lenient", "--labels", HELD_OUT, "--repeats", "1", "--pairs", "0")
    evalfarm("calibrate", *words)
    ended = evalfarm("calibrate", *words)
    first, second, *rest = ended.out.splitlines()
    assert first == "sim-judge-lenient: 1 fault"
    assert second.startswith("LENIENT: passes ")
    assert "These labels were used 2 times, by 1 judge, this one in 1 version." in rest
    assert any(line.strip().startswith("evalfarm adjudicate ") for line in rest)
    assert evalfarm("calibrate", *words, "--markdown").out.startswith("**sim-judge-lenient: 1 fault**")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sim-judge-fair", "--labels", HELD_OUT), "Error: there is no simulated judge 'sim-judge-fair'"),
        (("gpt-5", "--labels", HELD_OUT), "Error: the judge 'gpt-5' is a real model, and OPENAI_API_KEY is not set"),
        (
            ("sim-judge-sound", "--labels", HELD_OUT, "--suite", "bls"),
            "case: suite 'bls' has no case 'eligible-ordinary'",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_refused_before_a_judge_is_asked(
    evalfarm: Run, words: tuple[str, ...], told: str
) -> None:
    ended = evalfarm("calibrate", *words)
    assert ended.code in (2, 4)
    assert told in ended.err
    assert ended.out == ""


def test_a_suite_that_has_no_reader_takes_no_simulated_judge(evalfarm: Run, tmp_path: Path) -> None:
    text = (LABELS.parent / "suite.yaml").read_text().replace("  judge: judge.py\n", "")
    for name in ("policy.py", "server.py", "fixtures.json", "answers.py"):
        (tmp_path / name).write_text((LABELS.parent / name).read_text())
    (tmp_path / "suite.yaml").write_text(text)
    ended = evalfarm("calibrate", "sim-judge-sound", "--labels", HELD_OUT, "--suite", str(tmp_path))
    assert ended.code == 2
    assert "suite 'support' says nothing of how a simulated judge reads its answers" in ended.err


def test_the_rules_are_held_against_people_and_against_judges_like_a_judge(evalfarm: Run) -> None:
    rules, sound = calibrated(
        evalfarm, "rules", "sim-judge-sound", "--labels", HELD_OUT, "--repeats", "1", "--pairs", "0", code=0
    )
    assert (rules["judge"]["model"], rules["judge"]["rubrics"], rules["by_criterion"]) == ("rules", {}, [])
    rates = rules["overall"]
    assert [(rate["hits"], rate["of"]) for rate in (rates["false_accept"], rates["false_reject"])] == [(0, 75), (0, 28)]
    assert (rules["abstained"]["hits"], rules["requests"], rules["cost_usd"]) == (7, 0, 0)
    assert (rules["other_judges"][0]["other"], sound["other_judges"][0]["raw"]) == ("sim-judge-sound", 1)
    printed = evalfarm("calibrate", "rules", "--labels", HELD_OUT).out
    assert "False acceptance 0 of 75: with 95 % confidence at most 3.9 %; false rejection 0 of 28." in printed
    assert "facts, read by version 2 of the rules" in printed
