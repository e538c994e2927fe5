"""What pydantic cannot see of a suite's facts and references: whether what they name is there."""

import ast
from collections.abc import Iterator, Mapping

from cases.document import Document, Loc, Mistake, did_you_mean
from evalfarm.contracts.answer import REQUEST, Fact
from evalfarm.contracts.suite import Case, Suite


def answer_mistakes(suite: Suite, files: Mapping[str, bytes], document: Document) -> Iterator[Mistake]:
    """Every name in a case's facts, reference, category and rubric that stands for nothing, with its line."""
    functions = _functions_in(suite, files)
    for place, case in enumerate(suite.cases):
        here: Loc = ("cases", place)
        for at, fact in enumerate(case.facts):
            yield from _of_fact(suite, fact, functions, document, (*here, "facts", at))
        if case.facts and not case.turns:
            yield document.mistake((*here, "facts"), "facts are about answers, and this case has no query to answer")
        yield from _of_case(suite, case, document, here)
    ids = [rubric.id for rubric in suite.rubrics]
    for at, rubric in enumerate(suite.rubrics):
        if rubric.id in ids[:at]:
            yield document.mistake(("rubrics", at, "id"), f"'{rubric.id}' is the id of another rubric too")


def _of_case(suite: Suite, case: Case, document: Document, here: Loc) -> Iterator[Mistake]:
    if case.category is not None and suite.categories:
        yield from _unknown(document, (*here, "category"), case.category, suite.categories, "category")
    if case.rubric is not None:
        known = [rubric.id for rubric in suite.rubrics]
        yield from _unknown(document, (*here, "rubric"), case.rubric, known, "rubric")
    if case.reference is not None:
        there = (*here, "reference")
        yield from _unknown(document, (*there, "judgement"), case.reference.judgement, suite.judgements, "judgement")
        yield from _citations(suite, case.reference.rests_on, document, (*there, "rests_on"))


def _of_fact(
    suite: Suite, fact: Fact, functions: frozenset[str] | None, document: Document, here: Loc
) -> Iterator[Mistake]:
    if fact.concludes is not None:
        yield from _unknown(document, (*here, "concludes"), fact.concludes, suite.conclusions, "conclusion")
    if fact.function is not None and functions is None:
        hint = "add answer_functions: FILE.py to the suite"
        yield document.mistake((*here, "function"), "the suite names no file of functions", hint)
    elif fact.function is not None and functions is not None and fact.function not in functions:
        text = f"{suite.answer_functions} defines no function '{fact.function}'"
        yield document.mistake((*here, "function"), text, did_you_mean(fact.function, functions, "it defines"))
    yield from _citations(suite, fact.rests_on, document, (*here, "rests_on"))


def _citations(suite: Suite, citations: tuple[str, ...], document: Document, here: Loc) -> Iterator[Mistake]:
    for at, citation in enumerate(citations):
        if citation == REQUEST:
            continue
        name, _, field = citation.partition(".")
        if name not in suite.fixtures:
            text = f"'{citation}' cites the fixture '{name}', which the suite does not have"
            yield document.mistake((*here, at), text, did_you_mean(name, suite.fixtures, "its fixtures"))
            continue
        value: object = suite.fixtures[name].result
        for step in field.split("."):
            fields = value if isinstance(value, dict) else {}
            if step not in fields:
                text = f"'{citation}' cites the field '{step}', which the fixture {name} does not have"
                yield document.mistake((*here, at), text, did_you_mean(step, map(str, fields), "its fields"))
                break
            value = fields[step]


def _unknown(
    document: Document, loc: Loc, name: str, known: Mapping[str, object] | list[str], what: str
) -> Iterator[Mistake]:
    if name not in known:
        declared = did_you_mean(
            name, known, f"the suite's {what.removesuffix('y') + 'ies' if what[-1] == 'y' else what + 's'}"
        )
        yield document.mistake(loc, f"the suite has no {what} '{name}'", declared)


def _functions_in(suite: Suite, files: Mapping[str, bytes]) -> frozenset[str] | None:
    """The functions at the top of the suite's file of functions; None: it names none, or one that does not parse."""
    if suite.answer_functions is None or suite.answer_functions not in files:
        return None
    try:
        tree = ast.parse(files[suite.answer_functions])
    except (SyntaxError, ValueError):
        return None
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
