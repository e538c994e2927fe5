"""From a suite's file to a suite that can be planned: read, checked, with every file it names."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cases.answer_checks import answer_mistakes
from cases.document import Document, Loc, Mistake, did_you_mean, read_document, suite_error
from cases.fixtures import with_fixtures
from cases.lock import lock_mistakes, lock_path
from cases.mistakes import field_mistakes
from cases.policies.seen import plain_question
from cases.regressions import read_regressions, regressions_path
from cases.suite_files import collect_files, is_suite
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.route import Expectation
from evalfarm.contracts.suite import Case, Suite
from evalfarm.errors import SuiteError, UnknownName, UsageError

SUITE_FILE = "suite.yaml"
VALUES_LISTED = 20  #: of a tag, in a hint: a line or two
SHIPPED = Path(__file__).parent / "suites"


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with the bytes of every file it names; no suite's own file is ever one of them."""

    suite: Suite
    folder: Path
    files: dict[str, bytes]  #: path relative to the folder, with `/` -> content
    document: Document  #: where each field stands
    regressions: frozenset[str] = frozenset()  #: cases that the suite's regression set holds a resolved failure of

    @property
    def file(self) -> Path:
        """The suite's YAML file."""
        return Path(self.document.path)

    @property
    def executables(self) -> tuple[str, ...]:
        """The files among them that can be run as programs, as a skill's scripts are."""
        return tuple(name for name in self.files if os.access(self.folder / name, os.X_OK))


def shipped_suites() -> dict[str, Path]:
    """The suites that come with evalfarm, in the order of their names: name -> path of the YAML file.

    A folder may hold several over one server: `suite.yaml` goes by the folder's name, any other by its own stem.
    """
    found = (path for path in SHIPPED.glob("*/*.yaml") if is_suite(path))
    return dict(sorted((path.parent.name if path.name == SUITE_FILE else path.stem, path) for path in found))


def load_suite(name_or_path: str, *, locked: bool = True) -> LoadedSuite:
    """The suite of a shipped name, a YAML file, or a folder that holds `suite.yaml`.

    A shipped name wins over a file of the same name: write `./bls` for the file. `locked`: hold it to its lock, if it
    has one.
    Raises UnknownName when there is no such suite, and SuiteError with file, line and field of every
    mistake when it does not load.
    """
    path = _suite_path(name_or_path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path} is not UTF-8 text (byte {error.start})", "save the suite as UTF-8") from error
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}") from error
    document = with_fixtures(read_document(text, str(path)), path.parent)
    suite = _suite_of(document)
    files, mistakes = collect_files(suite, path, document)
    mistakes += answer_mistakes(suite, files, document)
    mistakes += [*_repeated_ids(suite, document), *_reserved_tags(suite, document), *_bad_patterns(suite, document)]
    if not mistakes and locked and (lock := lock_path(path)).is_file():
        mistakes += lock_mistakes(suite, lock.read_text(encoding="utf-8"), lock, document)
    if mistakes:
        raise suite_error(document.path, mistakes)
    kept = read_regressions(regressions_path(path))
    return LoadedSuite(suite, path.parent, files, document, frozenset(regression.case for regression in kept))


def file_digests(loaded: LoadedSuite) -> dict[str, str]:
    """The digest of each of a suite's files, by its path relative to the suite's folder."""
    return {name: digest_bytes(content) for name, content in loaded.files.items()}


def check_tools(loaded: LoadedSuite, variant: str, tools: Collection[str]) -> None:
    """Raises SuiteError when a case expects or calls a tool that the variant's server does not offer.

    `tools` are the names that the running server lists. Each missing tool is named once, where it is first used.
    """
    missing: dict[str, str] = {}
    for loc, verb, tool in _tools_named(loaded.suite):
        if tool not in tools and tool not in missing:
            where = f"suite '{loaded.suite.suite}' ({loaded.document.path}:{loaded.document.line(loc)})"
            missing[tool] = f"{where} {verb} tool '{tool}', which the server of variant '{variant}' does not offer"
    if missing:
        raise SuiteError("\n".join(missing.values()), did_you_mean(next(iter(missing)), tools, "the server offers"))


def check_script(loaded: LoadedSuite, cases: Collection[str]) -> None:
    """Raises SuiteError when a turn of these cases matches no line of the suite's script.

    A simulated model would have nothing to say to it, and the plugin would get the blame.
    """
    lines = loaded.suite.simulation.script if loaded.suite.simulation else ()
    for place, case in enumerate(loaded.suite.cases):
        for at, turn in enumerate(case.turns if lines and case.id in cases else ()):
            if not any(re.search(line.when, plain_question(turn), re.IGNORECASE) for line in lines):
                text = f"no line of simulation.script matches the turn {plain_question(turn)!r}"
                here: Loc = ("cases", place, "turns", at)
                short: Loc = ("cases", place, "query")
                loc = short if short in loaded.document.lines else here
                mistake = loaded.document.mistake(loc, text, "add a line whose `when` does")
                raise suite_error(loaded.document.path, [mistake])


def _suite_path(name_or_path: str) -> Path:
    shipped = shipped_suites()
    if name_or_path in shipped:
        return shipped[name_or_path]
    path = Path(name_or_path)
    if path.is_dir():
        if (path / SUITE_FILE).is_file():
            return path / SUITE_FILE
        raise UnknownName(f"the folder {path} holds no {SUITE_FILE}", "give the path of the suite's YAML file")
    if path.is_file():
        return path
    raise UnknownName(
        f"no suite '{name_or_path}': no shipped suite, file or folder has this name",
        did_you_mean(name_or_path, shipped, "shipped suites"),
    )


def _suite_of(document: Document) -> Suite:
    try:
        return Suite.model_validate(document.data)
    except ValidationError as error:
        raise suite_error(document.path, field_mistakes(error, document)) from error


def _repeated_ids(suite: Suite, document: Document) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for place, case in enumerate(suite.cases):
        loc: Loc = ("cases", place, "id")
        if case.id in first:
            yield document.mistake(loc, f"'{case.id}' is the id of another case too, in line {first[case.id]}")
        first.setdefault(case.id, document.line(loc))


#: Filters that are no tags, and what they filter by.
_OWN_FILTERS = {"case": "id", "category": "category", "regression": "membership in the regression set"}


def _reserved_tags(suite: Suite, document: Document) -> Iterator[Mistake]:
    for place, case in enumerate(suite.cases):
        for tag, by in _OWN_FILTERS.items():
            if tag in case.tags:
                text = f"no tag may be called '{tag}': it filters by {by}"
                yield document.mistake(("cases", place, "tags", tag), text)


def _bad_patterns(suite: Suite, document: Document) -> Iterator[Mistake]:
    for place, line in enumerate(suite.simulation.script if suite.simulation else ()):
        try:
            re.compile(line.when)
        except re.error as error:
            yield document.mistake(("simulation", "script", place, "when"), f"not a regular expression: {error}")


def _tools_named(suite: Suite) -> Iterator[tuple[Loc, str, str]]:
    """Every tool a case speaks of: where, as what, which."""
    for place, case in enumerate(suite.cases):
        here: Loc = ("cases", place)
        yield from ((loc, "expects", tool) for loc, tool in _tools_expected((*here, "expect"), case.expect))
        if case.direct is not None:
            yield (*here, "direct", "tool"), "directly calls", case.direct.tool
            expected = _tools_expected((*here, "direct", "expect"), case.direct.expect)
            yield from ((loc, "expects", tool) for loc, tool in expected)


def _tools_expected(here: Loc, expect: Expectation) -> Iterator[tuple[Loc, str]]:
    for field, names in (("tools", expect.tools), ("never", expect.never)):
        yield from (((*here, field, place), tool) for place, tool in enumerate(names))
    for field, checks in (("arguments", expect.arguments), ("results", expect.results)):
        yield from (((*here, field, place, "tool"), check.tool) for place, check in enumerate(checks))
    for field, rules in (("calls", expect.calls), ("sequence", expect.sequence)):
        yield from (((*here, field, place, "tool"), rule.tool) for place, rule in enumerate(rules))


def parse_filters(texts: Iterable[str]) -> dict[str, str]:
    """Filters `TAG=VALUE` as tag -> value; those of one tag together, as in `a,b`. Raises UsageError for any other."""
    found: dict[str, str] = {}
    for text in texts:
        tag, equals, value = (part.strip() for part in text.partition("="))
        if not (tag and equals and value):
            raise UsageError(f"'{text}' is no filter", "write TAG=VALUE, as in mechanism=coverage_gap or case=CASE_ID")
        found[tag] = f"{found[tag]},{value}" if tag in found else value
    return found


def select_cases(
    suite: Suite, filters: Mapping[str, str], regressions: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """The ids of the cases that carry every tag as asked, in the suite's order.

    `a,b` asks for either value. `case` filters by id, `category` by category, and `regression=yes` for the cases of the
    regression set. Raises UsageError when no case has such a tag or value, or none has all; it lists what there is.
    """
    tags = {case.id: _filterable(case, regressions) for case in suite.cases}
    asked: list[tuple[str, list[str]]] = []
    for tag, text in filters.items():
        there = {of_case[tag] for of_case in tags.values() if tag in of_case}
        if not there:
            message = f"no case of suite '{suite.suite}' has a tag '{tag}'"
            known = {known for of_case in tags.values() for known in of_case}
            raise UsageError(message, did_you_mean(tag, known, "tags to filter by"))
        values = [text] if text in there else text.split(",")
        asked.append((tag, values))
        if unknown := [value for value in values if value not in there]:
            message = f"no case of suite '{suite.suite}' has {tag}={unknown[0]}"
            raise UsageError(message, f"{tag} is one of {_listed(sorted(there))}")
    chosen = tuple(case for case, of_case in tags.items() if all(of_case.get(tag) in values for tag, values in asked))
    if not chosen:
        every = " and ".join(f"{tag}={text}" for tag, text in filters.items())
        raise UsageError(f"no case of suite '{suite.suite}' has {every}", "each of them is there, but in no case all")
    return chosen


def _filterable(case: Case, regressions: Collection[str]) -> dict[str, str]:
    category = {"category": case.category} if case.category else {}
    return {**case.tags, "case": case.id, **category, **({"regression": "yes"} if case.id in regressions else {})}


def _listed(values: list[str]) -> str:
    more = len(values) - VALUES_LISTED
    return ", ".join(values[:VALUES_LISTED]) + (f" and {more} more" if more > 0 else "")
