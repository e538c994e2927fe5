"""What stood under each version of a suite's cases: a file of digests beside the suite, to which lines are only added.

    case final-sale-12-days 1 asked:… expected:… reference:… fixtures:…

A suite with a lock loads only as long as every case, rubric and the suite itself are what their versions stand for.
Without one nothing is held.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from cases.document import Document, Loc, Mistake
from evalfarm.contracts.answer import REQUEST
from evalfarm.contracts.base import digest
from evalfarm.contracts.suite import Case, Suite
from evalfarm.errors import SuiteError, UsageError

HEAD = "# Written by `evalfarm lock`: what stood under each version. Lines are added, never changed.\n"
_DIGITS = 16  #: of a digest: against slips, not against forgers
#: What may change under a version: how a case is named and grouped moves no label.
_GROUPING = frozenset({"id", "tags", "family", "category", "fixture_version"})


class _Entry(NamedTuple):
    """One thing that has a version: a case, a rubric, or the suite."""

    kind: str
    name: str
    version: str
    parts: Mapping[str, str]  #: what it consists of -> digest
    loc: Loc  #: of its version in the suite's file

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.version

    @property
    def line(self) -> str:
        told = " ".join(f"{part}:{value}" for part, value in self.parts.items())
        return f"{self.kind} {self.name} {quote(self.version, safe='')} {told}\n"


def lock_path(suite_file: Path) -> Path:
    """Where the lock of a suite's file lies: `suite.lock` beside `suite.yaml`."""
    return suite_file.with_suffix(".lock")


def lock_mistakes(suite: Suite, lock: str, where: Path, document: Document) -> Iterator[Mistake]:
    """What is no longer what its version stands for, and what no line of the lock knows yet."""
    locked = _locked(lock, where)
    for entry in _entries(suite):
        known = locked.get(entry.key)
        if known is None:
            text = f"{_said(entry)} is not in {where.name} with version '{entry.version}'"
            yield document.mistake(
                entry.loc, text, f"if this is what you mean, renew it: evalfarm lock {document.path}"
            )
        elif changed := _changed(entry, known):
            yield document.mistake(
                entry.loc, _broken(entry, changed), f"{_advance(entry)}, then evalfarm lock {document.path}"
            )


def renewed(suite: Suite, lock: str, where: Path) -> str:
    """The lock with a line for every version that it did not know. Raises UsageError for one that changed under it."""
    locked = _locked(lock, where)
    entries = _entries(suite)
    for entry in entries:
        if changed := _changed(entry, locked.get(entry.key, entry.parts)):
            raise UsageError(_broken(entry, changed), _advance(entry))
    return (lock or HEAD) + "".join(entry.line for entry in entries if entry.key not in locked)


def fixtures_under(suite: Suite, case: Case) -> tuple[str, ...]:
    """The fixtures that a case rests on: those that it cites, and those that its expected calls return."""
    cited = {citation.partition(".")[0] for fact in case.facts for citation in fact.rests_on}
    cited |= {citation.partition(".")[0] for citation in (case.reference.rests_on if case.reference else ())}
    asked = [(rule.tool, rule.exactly) for rule in (*case.expect.calls, *case.expect.sequence)]
    if case.direct is not None:
        asked.append((case.direct.tool, case.direct.arguments))
    returned = {name for name, made in suite.fixtures.items() if (made.tool, made.arguments) in asked}
    return tuple(name for name in suite.fixtures if name in (cited | returned) - {REQUEST})


def _entries(suite: Suite) -> list[_Entry]:
    found = [
        _Entry("suite", suite.suite, suite.version, _suite_parts(suite), ("version",)),
        *(
            _Entry("rubric", rubric.id, rubric.version, {"text": _short(rubric)}, ("rubrics", at, "version"))
            for at, rubric in enumerate(suite.rubrics)
        ),
    ]
    for at, case in enumerate(suite.cases):
        found.append(
            _Entry("case", case.id, case.fixture_version, _case_parts(suite, case), ("cases", at, "fixture_version"))
        )
    return found


def _suite_parts(suite: Suite) -> dict[str, str]:
    words = suite.model_dump(mode="json", include={"conclusions", "judgements", "verdict"}, exclude_defaults=True)
    return {"words": _short(words), "loop": _short(suite.loop.model_dump(mode="json", exclude_defaults=True))}


def _case_parts(suite: Suite, case: Case) -> dict[str, str]:
    # Without defaults: a field that a later evalfarm adds changes no case that does not use it.
    told = case.model_dump(mode="json", exclude=set(_GROUPING), exclude_defaults=True)
    reference, turns, direct = told.pop("reference", None), told.pop("turns", None), told.pop("direct", None)
    fixtures = {name: suite.fixtures[name].model_dump(mode="json") for name in fixtures_under(suite, case)}
    parts = {"asked": [turns, direct], "expected": told, "reference": reference, "fixtures": fixtures}
    return {part: _short(value) for part, value in parts.items()}


def _locked(lock: str, where: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for number, line in enumerate(lock.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        kind, *rest = line.split(" ")
        parts = dict(part.split(":", 1) for part in rest[2:] if ":" in part)
        if kind not in ("case", "rubric", "suite") or len(rest) < 3 or len(parts) != len(rest) - 2:
            raise SuiteError(f"{where}:{number}: this is no line of a lock", "take it from version control again")
        found[kind, rest[0], unquote(rest[1])] = parts
    return found


def _changed(entry: _Entry, known: Mapping[str, str]) -> list[str]:
    return [part for part in entry.parts if entry.parts[part] != known.get(part)]


def _broken(entry: _Entry, changed: list[str]) -> str:
    return f"{_said(entry)} changed ({', '.join(changed)}), and its version is still '{entry.version}'"


def _said(entry: _Entry) -> str:
    return f"{entry.kind} '{entry.name}'"


def _advance(entry: _Entry) -> str:
    field = "fixture_version" if entry.kind == "case" else "version"
    return f"advance its {field}, so that earlier evidence keeps its meaning"


def _short(value: object) -> str:
    return digest(value).removeprefix("sha256:")[:_DIGITS]
