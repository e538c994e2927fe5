"""Open disagreements as a YAML file that a reviewer fills in, and what was filled in. Pure."""

from collections.abc import Iterator, Sequence
from typing import Literal

import yaml
from pydantic import ValidationError

from cases.document import Document, Mistake, read_document, suite_error
from evalfarm.contracts.base import Contract
from evalfarm.contracts.judging import Disagreement
from evalfarm.contracts.verdict import LabelValue
from evalfarm.reports.judging.disagreements import evidence, told

_HEAD = """# Fill in `decision` and `why` of each answer that you settle, then bring the file back:
#   evalfarm adjudicate {of} --import FILE --by YOU
# decision: PASS, FAIL, or DISPUTED where reviewers cannot settle it; leave it empty to leave the answer open.
"""

Word = Literal["PASS", "FAIL", "DISPUTED"]
WORDS: dict[Word, LabelValue] = {"PASS": "PASS", "FAIL": "FAIL", "DISPUTED": "INCONCLUSIVE"}


class Decided(Contract):
    """What a reviewer filled in for one answer."""

    subject: str
    value: LabelValue
    why: str


class _Line(Contract):
    subject: str
    place: str = ""
    case: str = ""
    request: str = ""
    evidence: tuple[str, ...] = ()
    answer: str = ""
    labels: str = ""
    because: tuple[str, ...] = ()
    rests_on: str = ""
    decision: Word | None = None
    why: str | None = None


def write_sheet(of: str, found: Sequence[Disagreement]) -> str:
    """The file for a reviewer; `of` is the run or the calibration."""
    lines = [
        _Line(
            subject=one.subject,
            place=one.place,
            case=one.case,
            request=one.request,
            evidence=evidence(one),
            answer=one.answer,
            labels=told(one),
            because=one.reasons,
            rests_on=one.cites,
        ).model_dump(mode="json")
        for one in found
    ]
    return _HEAD.format(of=of) + yaml.safe_dump({"answers": lines}, sort_keys=False, allow_unicode=True, width=100)


def read_sheet(text: str, path: str, found: Sequence[Disagreement]) -> tuple[Decided, ...]:
    """What was filled in, for answers that are still open. Raises SuiteError with file, line and field."""
    document = read_document(text, path)
    data = document.data if isinstance(document.data, dict) else {}
    lines = data.get("answers")
    if not isinstance(lines, list):
        raise suite_error(path, [document.mistake((), "it holds no `answers`", "edit a file that --export wrote")])
    mistakes: list[Mistake] = []
    decided = [one for place, line in enumerate(lines) for one in _decided(document, place, line, found, mistakes)]
    if mistakes:
        raise suite_error(path, mistakes)
    return tuple(decided)


def _decided(
    document: Document, place: int, line: object, found: Sequence[Disagreement], mistakes: list[Mistake]
) -> Iterator[Decided]:
    try:
        read = _Line.model_validate(line)
    except ValidationError as error:
        for one in error.errors():
            mistakes.append(document.mistake(("answers", place, *one["loc"]), one["msg"]))
        return
    if read.decision is None:
        return
    if read.subject not in {one.subject for one in found}:
        hint = "it was decided meanwhile, or belongs to another run: export the open ones again"
        mistakes.append(document.mistake(("answers", place, "subject"), "this answer is not open here", hint))
    elif not (read.why or "").strip():
        mistakes.append(document.mistake(("answers", place, "why"), "a decision needs a reason", "say why in a line"))
    else:
        yield Decided(subject=read.subject, value=WORDS[read.decision], why=str(read.why).strip())
