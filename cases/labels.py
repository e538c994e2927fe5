"""Files of labelled answers: one JSON object a line, held against the suite that they label."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cases.document import Mistake, did_you_mean, suite_error
from evalfarm.contracts.answer import REQUEST
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.judging import LabelledAnswer, Purpose
from evalfarm.contracts.suite import Case, Suite
from evalfarm.errors import SuiteError, UnknownName
from evalfarm.plain_files import read_plain


@dataclass(frozen=True)
class Labels:
    """One file of labelled answers, all for one purpose."""

    path: str
    digest: str  #: of its bytes
    purpose: Purpose
    answers: tuple[LabelledAnswer, ...]


def suite_beside(path: Path) -> str:
    """The suite that a file of labels belongs to: the nearest folder above it that holds a suite.

    Raises UnknownName where there is none.
    """
    for folder in path.absolute().parents:
        if (folder / "suite.yaml").is_file():
            return str(folder)
    raise UnknownName(f"no folder above {path} holds a suite.yaml", "say which suite is labelled: --suite NAME")


def read_labels_file(path: Path, suite: Suite) -> Labels:
    """A file of labels. Raises SuiteError with file, line and field of every mistake in it.

    Every answer's case, criteria, fixtures and citation must be the suite's; an id stands once, and so does a purpose.
    """
    try:
        data = read_plain(path)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path} cannot be read: {error}", "labels are UTF-8 text, one JSON object a line") from error
    mistakes: list[Mistake] = []
    found: list[tuple[int, LabelledAnswer]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found.append((number, LabelledAnswer.model_validate_json(line)))
        except ValidationError as error:
            mistakes += [Mistake(number, ".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()]
    mistakes += [one for number, answer in found for one in _strange(number, answer, suite)]
    mistakes += _repeated(found)
    if not found and not mistakes:
        mistakes.append(Mistake(1, "", "it holds no answers", "give one JSON object a line"))
    if mistakes:
        raise suite_error(str(path), mistakes)
    return Labels(str(path), digest_bytes(data), found[0][1].purpose, tuple(answer for _, answer in found))


def _strange(number: int, answer: LabelledAnswer, suite: Suite) -> Iterator[Mistake]:
    """What of an answer the suite does not know."""
    case = next((case for case in suite.cases if case.id == answer.case), None)
    if case is None:
        hint = did_you_mean(answer.case, [case.id for case in suite.cases], "the suite's cases")
        yield Mistake(number, "case", f"suite '{suite.suite}' has no case '{answer.case}'", hint)
        return
    yield from _strange_in(number, answer, case, suite)
    fixtures = suite.fixtures
    for name in answer.evidence:
        if name not in fixtures:
            yield Mistake(number, "evidence", f"there is no fixture '{name}'", did_you_mean(name, fixtures, "fixtures"))
    name, _, field = answer.cites.partition(".")
    if answer.cites != REQUEST and (name not in fixtures or field not in fixtures[name].result):
        known = [f"{one}.{key}" for one, fixture in fixtures.items() if one == name for key in fixture.result]
        yield Mistake(
            number, "cites", f"no fixture has '{answer.cites}'", did_you_mean(answer.cites, known, "its fields")
        )


def _strange_in(number: int, answer: LabelledAnswer, case: Case, suite: Suite) -> Iterator[Mistake]:
    rubric = next((rubric for rubric in suite.rubrics if rubric.id == case.rubric), None)
    if rubric is None:
        yield Mistake(number, "case", f"case '{case.id}' has no rubric, so no judge looks at it", "give it a `rubric`")
        return
    criteria = [criterion.id for criterion in rubric.criteria]
    for name in answer.fails:
        if name not in criteria:
            hint = did_you_mean(name, criteria, "its criteria")
            yield Mistake(number, "fails", f"rubric '{rubric.id}' has no criterion '{name}'", hint)
    if len(answer.earlier) != len(case.turns) - 1:
        counts = f"{len(case.turns) - 1} earlier answers, and {len(answer.earlier)} are given"
        yield Mistake(number, "earlier", f"case '{case.id}' has {counts}", "give the answers to its earlier turns")


def _repeated(found: list[tuple[int, LabelledAnswer]]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for number, answer in found:
        if answer.id in first:
            yield Mistake(number, "id", f"'{answer.id}' is the id of another answer too, in line {first[answer.id]}")
        first.setdefault(answer.id, number)
        if answer.purpose != found[0][1].purpose:
            hint = "keep them in files of their own: what a judge is tuned on is not held out"
            yield Mistake(number, "purpose", "answers for calibration and held-out ones stand in one file", hint)
