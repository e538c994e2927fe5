"""A rubric of two criteria, an exhibit, and replies to be read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from evalfarm.contracts.answer import Criterion, Rubric
from evalfarm.contracts.judging import Exhibit
from evalfarm.contracts.run import ToolCall, Turn
from graders.judge.ask import Heard

ANSWER = "Yes. It arrived 12 days ago, so it qualifies."


@pytest.fixture
def rubric() -> Rubric:
    return Rubric(
        id="desk",
        version="1",
        text="A return desk.",
        criteria=(Criterion(id="right", text="It is right."), Criterion(id="modest", text="It claims nothing.")),
    )


@pytest.fixture
def exhibit() -> Exhibit:
    call = ToolCall(name="lookup", arguments={"order": "A-1"}, result={"final_sale": True, "age": 12})
    turns = (Turn(query="Hello?", answer="Hello."), Turn(query="Can I return A-1?", answer=ANSWER))
    return Exhibit(turns=turns, evidence=(call,))


def response(document: object, **more: Any) -> dict[str, Any]:
    """A response of the API whose text is this document (or text as it is)."""
    text = document if isinstance(document, str) else json.dumps(document)
    part = {"type": "output_text", "text": text}
    return {"status": "completed", "output": [{"type": "message", "content": [part]}], **more}


def label(
    criterion: str, value: str = "PASS", quote: str = "it qualifies", reason: str = "So it is."
) -> dict[str, str]:
    return {"criterion": criterion, "quote": quote, "reason": reason, "label": value}


@dataclass
class Replies:
    """An asker that gives prepared answers, one after the other, and notes what it was asked."""

    prepared: Iterator[Heard]
    asked: list[tuple[dict[str, Any], int]] = field(default_factory=list)

    async def __call__(self, request: dict[str, Any], seed: int) -> Heard:
        self.asked.append((request, seed))
        return next(self.prepared)


def heard(document: object, **more: Any) -> Heard:
    return Heard(response(document, **more), None, (), 0.25)


OUTAGE = Heard(None, "HTTP 503 five times", (), None)


@pytest.fixture
def make() -> Any:
    """The builders above, for tests that cannot import this file."""

    class Make:
        outage = OUTAGE

        @staticmethod
        def response(document: object, **more: Any) -> dict[str, Any]:
            return response(document, **more)

        @staticmethod
        def label(criterion: str, value: str = "PASS", **more: str) -> dict[str, str]:
            return label(criterion, value, **more)

        @staticmethod
        def labels(*values: str) -> dict[str, Any]:
            return {"labels": [label(name, value) for name, value in zip(("right", "modest"), values, strict=True)]}

        @staticmethod
        def heard(document: object, **more: Any) -> Heard:
            return heard(document, **more)

        @staticmethod
        def replies(*prepared: Heard) -> Replies:
            return Replies(iter(prepared))

    return Make
