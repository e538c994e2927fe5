import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cases.policies import Answer, Fault, Move, Seen
from cases.policies.judges import (
    DOWN_CHANCE,
    LENIENT_CHANCE,
    LONG_WORDS,
    SIMULATED_JUDGES,
    Mark,
    Shown,
    check_judge_name,
    load_reader,
    shown_to,
    simulated_judges,
)
from cases.policies.seen import SeenTurn
from evalfarm.errors import SuiteError, UnknownName

DRAWS = 4000


class Marker:
    """A reader that fails what contains the word wrong."""

    def read(self, shown: Shown, answer: str) -> Mapping[str, Mark]:
        label = "FAIL" if "wrong" in answer else "PASS"
        return {name: Mark(label, answer, "R.") for name in shown.criteria}


JUDGES = simulated_judges(Marker())
LONG = " ".join(["wrong"] * LONG_WORDS)


def seen(**answers: str) -> Seen:
    document = {"rubric": "", "criteria": [{"criterion": "right", "text": "R."}], "conversation": [{"user": "Q?"}]}
    text = json.dumps({**document, "evidence": [], **answers})
    return Seen(model="m", instructions="", tools=(), turns=(SeenTurn(text),))


def said(move: Move) -> Any:
    assert isinstance(move, Answer)
    document = json.loads(move.text)
    return document["better"] if "better" in document else document["labels"][0]["label"]


def rate(judge: str, value: str, **answers: str) -> float:
    asked = seen(**answers)
    moves = [JUDGES[judge].move(asked, random.Random(seed)) for seed in range(DRAWS)]
    return sum(isinstance(move, Answer) and said(move) == value for move in moves) / DRAWS


@pytest.mark.parametrize("judge", ["sim-judge-sound", "sim-judge-first"])
def test_on_one_answer_these_are_sound(judge: str) -> None:
    draw = random.Random(0)
    assert [said(JUDGES[judge].move(seen(answer=one), draw)) for one in ("right", "wrong", LONG)] == [
        "PASS",
        "FAIL",
        "FAIL",
    ]


def test_the_lenient_one_passes_wrong_answers_at_its_known_rate_and_fails_no_right_one() -> None:
    assert rate("sim-judge-lenient", "PASS", answer="wrong") == pytest.approx(LENIENT_CHANCE, abs=0.03)
    assert rate("sim-judge-lenient", "PASS", answer="right") == 1.0


def test_the_one_that_favours_length_passes_whatever_is_long() -> None:
    assert rate("sim-judge-long", "PASS", answer=LONG) == 1.0
    assert rate("sim-judge-long", "FAIL", answer=LONG.partition(" ")[2]) == 1.0
    assert rate("sim-judge-long", "second", first="right", second=LONG) == 1.0


def test_the_one_that_favours_the_first_position_prefers_it_whatever_stands_there() -> None:
    assert rate("sim-judge-first", "first", first="wrong", second="right") == 1.0
    assert rate("sim-judge-first", "first", first="right", second="wrong") == 1.0


def test_of_two_answers_a_sound_one_prefers_the_better_in_either_order_and_neither_of_equals() -> None:
    assert rate("sim-judge-sound", "second", first="wrong", second="right") == 1.0
    assert rate("sim-judge-sound", "first", first="right", second="wrong") == 1.0
    assert rate("sim-judge-sound", "neither", first="right", second="right too") == 1.0


def test_the_one_that_is_down_is_so_a_third_of_the_time_and_else_sound() -> None:
    moves = [JUDGES["sim-judge-down"].move(seen(answer="right"), random.Random(seed)) for seed in range(DRAWS)]
    assert sum(isinstance(move, Fault) for move in moves) / DRAWS == pytest.approx(DOWN_CHANCE, abs=0.03)
    assert {said(move) for move in moves if isinstance(move, Answer)} == {"PASS"}


def test_a_request_that_is_no_judge_s_is_answered_in_words() -> None:
    asked = Seen(model="m", instructions="", tools=(), turns=(SeenTurn("What is the unemployment rate?"),))
    assert shown_to(asked) is None
    answers = {name: JUDGES[name].move(asked, random.Random(2)) for name in SIMULATED_JUDGES}
    assert {type(move) for move in answers.values()} <= {Answer, Fault}


def test_a_simulated_judge_that_there_is_not_is_refused_with_the_names() -> None:
    with pytest.raises(UnknownName, match="there is no simulated judge 'sim-judge-fair'") as caught:
        check_judge_name("sim-judge-fair")
    assert all(name in caught.value.hint for name in SIMULATED_JUDGES)


def test_a_file_without_a_reader_is_refused(tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("POLICY = None\n")
    with pytest.raises(SuiteError, match="the file defines no READER that can read"):
        load_reader(tmp_path / "judge.py")
    with pytest.raises(SuiteError, match=r"simulation\.judge names a file that does not exist"):
        load_reader(tmp_path / "none.py")
