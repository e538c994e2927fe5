"""Simulated judges: a suite's own reader of answers, made to err in a known way.

A judge is a model that is asked for labels in a fixed form, so a simulated judge is a policy like any other. It sees
the exhibit, the rubric and nothing else. What it knows of the subject comes from the suite's reader, which is
written to be sound; each judge here has one fault on top, with a known rate, for a calibration to find.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from cases.policies.scripted import imported
from cases.policies.seen import Answer, Fault, Move, Policy, Seen
from evalfarm.errors import SuiteError, UnknownName

LENIENT_CHANCE = 0.4
"""Of a wrong answer, that `sim-judge-lenient` passes it."""

LONG_WORDS = 45
"""Words from which on `sim-judge-long` passes whatever is said."""

DOWN_CHANCE = 1 / 3
"""Of a request, that `sim-judge-down` is out of reach for it, however often it is sent again."""

Decision = Literal["PASS", "FAIL", "ABSTAIN"]


@dataclass(frozen=True)
class Mark:
    """A reader's decision on one criterion, with the words that it rests on."""

    label: Decision
    quote: str
    reason: str


@dataclass(frozen=True)
class Shown:
    """What a judge is shown, as plain JSON values."""

    criteria: tuple[str, ...]  #: their ids
    conversation: tuple[dict[str, str], ...]  #: `user` and, but for the last, `assistant`
    evidence: tuple[dict[str, Any], ...]  #: `tool`, `arguments`, and `result` or `error`
    answers: tuple[str, ...]  #: one to label, or two to choose from


class Reader(Protocol):
    """What a suite knows of its answers. Pure."""

    def read(self, shown: Shown, answer: str) -> Mapping[str, Mark]:
        """A mark for every criterion that is shown."""
        ...


@dataclass(frozen=True)
class Sound:
    """Says what the reader says; of two answers, that the one which fails fewer criteria is better."""

    reader: Reader

    def move(self, seen: Seen, draw: random.Random) -> Move:  # noqa: ARG002 - it leaves nothing to chance
        """Labels, or a preference."""
        shown = shown_to(seen)
        if shown is None:
            return Answer("I was shown nothing that I could judge.")
        read = [self.reader.read(shown, answer) for answer in shown.answers]
        return labels(read[0]) if len(read) == 1 else preference(shown, *map(_fails, read))


@dataclass(frozen=True)
class Lenient:
    """Passes a wrong answer with `LENIENT_CHANCE`; else sound."""

    reader: Reader

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """Labels, or a preference."""
        generous = draw.random() < LENIENT_CHANCE
        return Sound(_Passing(self.reader, lambda _: generous)).move(seen, draw)


@dataclass(frozen=True)
class Long:
    """Passes every answer of `LONG_WORDS` words or more, and prefers the longer of two; else sound."""

    reader: Reader

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """Labels, or a preference."""
        shown = shown_to(seen)
        if shown is not None and len(shown.answers) == 2:
            lengths = [-len(answer.split()) for answer in shown.answers]
            return preference(shown, *lengths)
        return Sound(_Passing(self.reader, lambda answer: len(answer.split()) >= LONG_WORDS)).move(seen, draw)


@dataclass(frozen=True)
class First:
    """Prefers the first of two answers, whichever it is; on one answer it is sound."""

    reader: Reader

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """Labels, or the first."""
        shown = shown_to(seen)
        if shown is not None and len(shown.answers) == 2:
            return preference(shown, 0, 1)
        return Sound(self.reader).move(seen, draw)


@dataclass(frozen=True)
class Down:
    """Out of reach for `DOWN_CHANCE` of all requests; else sound."""

    reader: Reader

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """A fault, or labels, or a preference."""
        return Fault(503) if draw.random() < DOWN_CHANCE else Sound(self.reader).move(seen, draw)


@dataclass(frozen=True)
class _Passing:
    """A reader that passes the answers which a rule says, and reads the others."""

    reader: Reader
    rule: Callable[[str], bool]

    def read(self, shown: Shown, answer: str) -> Mapping[str, Mark]:
        read = self.reader.read(shown, answer)
        if not self.rule(answer):
            return read
        return {name: Mark("PASS", _opening(answer), "It reads well.") for name in read}


_JUDGES: dict[str, Callable[[Reader], Policy]] = {
    "sim-judge-sound": Sound,
    "sim-judge-lenient": Lenient,
    "sim-judge-long": Long,
    "sim-judge-first": First,
    "sim-judge-down": Down,
}
SIMULATED_JUDGES: tuple[str, ...] = tuple(_JUDGES)


def simulated_judges(reader: Reader) -> dict[str, Policy]:
    """Every simulated judge over a suite's reader."""
    return {name: fault(reader) for name, fault in _JUDGES.items()}


def check_judge_name(model: str) -> None:
    """Raises UnknownName, listing the names, for a simulated judge that there is not."""
    if model not in _JUDGES:
        raise UnknownName(f"there is no simulated judge {model!r}", f"the simulated judges: {', '.join(_JUDGES)}")


def load_reader(path: Path) -> Reader:
    """The reader of a suite: `READER` in a Python file. Raises SuiteError where there is none."""
    shape = "define READER = …, an object with the method read(shown, answer), as cases.policies.Reader describes"
    if not path.is_file():
        raise SuiteError(f"{path}: simulation.judge names a file that does not exist", hint=f"create it and {shape}")
    reader: object = getattr(imported(path), "READER", None)
    if not callable(getattr(reader, "read", None)):
        raise SuiteError(f"{path}: the file defines no READER that can read", hint=shape)
    found: Reader = reader  # type: ignore[assignment]  # a user's object: only its method could be checked
    return found


def shown_to(seen: Seen) -> Shown | None:
    """What a request shows to a judge; None: it is no judge's request."""
    try:
        document = json.loads(seen.turn.question)
        answers = [document["answer"]] if "answer" in document else [document["first"], document["second"]]
        return Shown(
            criteria=tuple(criterion["criterion"] for criterion in document["criteria"]),
            conversation=tuple(document["conversation"]),
            evidence=tuple(document["evidence"]),
            answers=tuple(answers),
        )
    except (ValueError, KeyError, TypeError):
        return None


def labels(marks: Mapping[str, Mark]) -> Answer:
    """Labels in the form that a judge is asked for."""
    given = [
        {"criterion": name, "quote": mark.quote, "reason": mark.reason, "label": mark.label}
        for name, mark in marks.items()
    ]
    return Answer(json.dumps({"labels": given}, ensure_ascii=False), reasoning_tokens=32)


def preference(shown: Shown, first: float, second: float) -> Answer:
    """A choice in the form that a judge is asked for: the answer whose number is smaller; neither where they tie."""
    better = "neither" if first == second else "first" if first < second else "second"
    quote = _opening(shown.answers[better == "second"])
    return Answer(json.dumps({"quote": quote, "reason": "It meets the criteria better.", "better": better}))


def _fails(marks: Mapping[str, Mark]) -> int:
    return sum(mark.label == "FAIL" for mark in marks.values())


def _opening(answer: str) -> str:
    return " ".join(answer.split()[:8])
