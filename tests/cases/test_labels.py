import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cases.labels import Labels, read_labels_file, suite_beside
from cases.loader import load_suite
from cases.policies.judges import Shown, load_reader
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.judging import LabelledAnswer
from evalfarm.contracts.suite import Suite
from evalfarm.errors import SuiteError, UnknownName

LINE: dict[str, Any] = {
    "id": "a",
    "case": "eligible-ordinary",
    "purpose": "calibration",
    "kind": "short-correct",
    "answer": "Yes.",
    "evidence": ["DEMO-101", "POLICY-DEMO-v1"],
    "label": "PASS",
    "cites": "DEMO-101.final_sale",
    "because": "It is so.",
}


@pytest.fixture(scope="module")
def support() -> Any:
    return load_suite("support")


@pytest.fixture(scope="module")
def suite(support: Any) -> Suite:
    found: Suite = support.suite
    return found


@pytest.fixture(scope="module", params=["calibration", "held-out"])
def shipped(request: pytest.FixtureRequest, support: Any) -> Labels:
    return read_labels_file(support.folder / "labels" / f"{request.param}.jsonl", support.suite)


def written(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def mistake(tmp_path: Path, suite: Suite, *lines: dict[str, Any]) -> str:
    with pytest.raises(SuiteError) as caught:
        read_labels_file(written(tmp_path, *lines), suite)
    return str(caught.value).replace(str(tmp_path), "")


def test_a_file_is_read_with_its_digest_and_its_purpose(tmp_path: Path, suite: Suite) -> None:
    path = written(tmp_path, LINE)
    found = read_labels_file(path, suite)
    assert found == Labels(
        str(path), digest_bytes(path.read_bytes()), "calibration", (LabelledAnswer.model_validate(LINE),)
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"case": "eligible-ordinry"},
            "case: suite 'support' has no case 'eligible-ordinry'\n\nhint: did you mean 'eli",
        ),
        ({"evidence": ["POLICY-DEMO-1"]}, "evidence: there is no fixture 'POLICY-DEMO-1'\n\nhint: did you mean 'POLI"),
        (
            {"cites": "DEMO-101.final_sail"},
            "cites: no fixture has 'DEMO-101.final_sail'\n\nhint: did you mean 'DEMO-101.fin",
        ),
        ({"label": "FAIL", "fails": ["manners"]}, "fails: rubric 'return-desk' has no criterion 'manners'"),
        ({"label": "FAIL"}, "Value error, a FAIL names the criteria that it fails in `fails`, and nothing else does"),
        ({"earlier": ["Hello."]}, "earlier: case 'eligible-ordinary' has 0 earlier answers, and 1 are given"),
        ({"lable": "PASS"}, "lable: Extra inputs are not permitted"),
    ],
)
def test_a_label_that_the_suite_does_not_know_is_refused_with_file_line_and_what_to_do(
    change: dict[str, Any], told: str, tmp_path: Path, suite: Suite
) -> None:
    assert mistake(tmp_path, suite, LINE, {**LINE, "id": "b"} | change).startswith(f"/labels.jsonl:2: {told}")


def test_an_id_stands_once_and_held_out_answers_stand_in_a_file_of_their_own(tmp_path: Path, suite: Suite) -> None:
    told = mistake(tmp_path, suite, LINE, {**LINE, "purpose": "held-out"})
    assert "line 2: id: 'a' is the id of another answer too, in line 1" in told
    assert "line 2: purpose: answers for calibration and held-out ones stand in one file" in told


def test_an_empty_file_is_no_file_of_labels(tmp_path: Path, suite: Suite) -> None:
    assert mistake(tmp_path, suite).startswith("/labels.jsonl:1: it holds no answers")


def test_labels_belong_to_the_suite_in_a_folder_above_them(tmp_path: Path, support: Any) -> None:
    assert Path(suite_beside(support.folder / "labels" / "held-out.jsonl")) == support.folder
    with pytest.raises(UnknownName, match=r"no folder above .* holds a suite\.yaml"):
        suite_beside(tmp_path / "labels.jsonl")


def test_the_shipped_labels_are_many_varied_and_about_every_case(support: Any) -> None:
    paths = [support.folder / "labels" / f"{name}.jsonl" for name in ("calibration", "held-out")]
    both = [read_labels_file(path, support.suite) for path in paths]
    answers = [answer for labels in both for answer in labels.answers]
    assert len(answers) >= 120
    assert {answer.case for answer in answers} == {case.id for case in support.suite.cases}
    assert {
        "short-correct",
        "long-correct",
        "ignores-exclusion",
        "needless-clarification",
        "necessary-clarification",
        "honest-unavailability",
        "refund-claim",
        "wrong-reason",
    } <= {answer.kind for answer in answers}
    assert [labels.purpose for labels in both] == ["calibration", "held-out"]
    assert not {one.answer for one in both[0].answers} & {one.answer for one in both[1].answers}


def test_the_held_out_labels_can_show_five_percent_and_hold_long_and_short_of_both_kinds(support: Any) -> None:
    labels = read_labels_file(support.folder / "labels" / "held-out.jsonl", support.suite)
    counts = Counter(answer.label for answer in labels.answers)
    assert counts["FAIL"] >= 59
    assert counts["PASS"] >= 30
    for label in ("PASS", "FAIL"):
        words = [len(answer.answer.split()) for answer in labels.answers if answer.label == label]
        assert sum(count >= 45 for count in words) >= 15
        assert sum(count < 20 for count in words) >= 10


def test_the_support_reader_agrees_with_every_label_in_every_criterion(support: Any, shipped: Labels) -> None:
    reader = load_reader(support.folder / "judge.py")
    criteria = tuple(criterion.id for criterion in support.suite.rubrics[0].criteria)
    for labelled in (one for one in shipped.answers if one.label != "INCONCLUSIVE"):
        turns = [{"user": text} for text in support.suite.case(labelled.case).turns]
        fixtures = [support.suite.fixtures[name] for name in labelled.evidence]
        evidence = [{"tool": one.tool, "arguments": one.arguments, "result": one.result} for one in fixtures]
        shown = Shown(criteria, tuple(turns), tuple(evidence), (labelled.answer,))
        marks = reader.read(shown, labelled.answer)
        assert {name for name, mark in marks.items() if mark.label == "FAIL"} == set(labelled.fails), labelled.id
