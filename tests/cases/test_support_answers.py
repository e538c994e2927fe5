"""Answers of the return desk in unexpected words, right ones and wrong ones dressed as right, before the rules."""

import json
from collections import Counter
from pathlib import Path

import pytest

from cases.answer_functions import load_functions
from cases.labels import read_labels_file
from cases.loader import load_suite
from evalfarm.contracts.judging import LabelledAnswer, Opinion
from graders.judge.exhibits import labelled_exhibit
from graders.labelled import opinion_of_rules, rules_identity

SUPPORT = load_suite("support")
FUNCTIONS = load_functions(SUPPORT.suite, SUPPORT.folder)
LABELS = {
    purpose: read_labels_file(SUPPORT.folder / "labels" / f"{purpose}.jsonl", SUPPORT.suite).answers
    for purpose in ("calibration", "held-out")
}
LIKE = {answer.case: answer for answers in LABELS.values() for answer in answers}
UNEXPECTED = [
    json.loads(line)
    for line in (Path(__file__).parent / "unexpected-answers.jsonl").read_text(encoding="utf-8").splitlines()
]


def said_of(answer: LabelledAnswer) -> Opinion:
    return opinion_of_rules(SUPPORT.suite, answer, labelled_exhibit(SUPPORT.suite, answer), FUNCTIONS)


@pytest.mark.parametrize("row", UNEXPECTED, ids=lambda row: f"{row['case']}: {row['answer'][:60]}")
def test_an_answer_in_unexpected_words_is_read_or_left_open(row: dict[str, str]) -> None:
    opinion = said_of(LIKE[row["case"]].model_copy(update={"answer": row["answer"]}))
    assert (opinion.value, opinion.labels[0].reason if row["rules"] == "PASS" else "") == (row["rules"], "")


def test_none_of_them_is_misread() -> None:
    """What people pass the rules never fail, and the other way round; what they cannot read they leave open."""
    assert {(row["people"], row["rules"]) for row in UNEXPECTED} == {
        ("PASS", "PASS"),
        ("PASS", "INCONCLUSIVE"),
        ("FAIL", "FAIL"),
        ("FAIL", "INCONCLUSIVE"),
    }


@pytest.mark.parametrize(
    ("purpose", "matrix"),
    [
        (
            "calibration",
            {("PASS", "PASS"): 29, ("FAIL", "FAIL"): 37, ("INCONCLUSIVE", "FAIL"): 1},
        ),
        (
            "held-out",
            {
                ("PASS", "PASS"): 28,
                ("PASS", "INCONCLUSIVE"): 2,
                ("FAIL", "FAIL"): 75,
                ("FAIL", "INCONCLUSIVE"): 5,
                ("INCONCLUSIVE", "INCONCLUSIVE"): 1,
            },
        ),
    ],
)
def test_people_and_rules_on_the_shipped_labels(purpose: str, matrix: dict[tuple[str, str], int]) -> None:
    assert Counter((answer.label, said_of(answer).value) for answer in LABELS[purpose]) == matrix


def test_rules_are_other_rules_with_other_facts_words_or_functions() -> None:
    suite = SUPPORT.suite
    without = suite.model_copy(update={"cases": suite.cases[1:]})
    digests = {rules_identity(*one).digest for one in ((suite, "a"), (suite, "b"), (without, "a"), (suite, "a"))}
    assert len(digests) == 3
