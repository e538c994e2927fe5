"""Whether an answer states a fact, contradicts it, or leaves it unsaid: one rule for each kind of fact."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from evalfarm.contracts.answer import Conclusion, Fact, FactKind
from evalfarm.errors import SuiteError
from graders import answer_text

AnswerFunction = Callable[[str, Mapping[str, JsonValue]], bool | None]
"""A suite's own check: the answer, and what was returned by fixture; whether the fact holds. None: cannot be told.

What goes wrong in it is a SuiteError: it is no fault of the answer's.
"""

Stand = Literal["stated", "unsaid", "contradicted", "unclear"]


@dataclass(frozen=True)
class Reading:
    """How an answer stands to a fact, and the words for it."""

    stand: Stand
    says: str  #: what the answer does, as in `gives 30 days`


@dataclass(frozen=True)
class Rules:
    """What reading needs beside the fact: the suite's words, its functions, and the evidence that was returned."""

    conclusions: Mapping[str, Conclusion]
    functions: Mapping[str, AnswerFunction]
    evidence: Mapping[str, JsonValue]
    asked: str  #: the user's own words so far

    @property
    def known_text(self) -> str:
        """Everything that the answer may repeat without inventing it."""
        return f"{self.asked}\n{self.evidence}"


def read_fact(fact: Fact, answer: str, rules: Rules) -> Reading:
    """How an answer stands to a fact, whatever the fact demands."""
    return _READERS[fact.kind](fact, answer, rules)


def _asks(fact: Fact, answer: str, _rules: Rules) -> Reading:
    return _said(answer_text.asks_for(answer, fact.asks_for or ()), "asks the user for it")


def _unavailable(_fact: Fact, answer: str, _rules: Rules) -> Reading:
    return _said(answer_text.says_unavailable(answer), "says that it is unavailable")


def _executed(fact: Fact, answer: str, _rules: Rules) -> Reading:
    claim = answer_text.claims_done(answer, fact.executed or "")
    return _said(claim is not None, f"claims that something was done: “{claim}”")


def _date(fact: Fact, answer: str, rules: Rules) -> Reading:
    return _listed(answer_text.dates(answer, fact.near), fact.date or "", rules, answer_text.dates, "date")


def _said(said: bool, words: str) -> Reading:
    return Reading("stated" if said else "unsaid", words if said else "does not say so")


def _number(fact: Fact, answer: str, rules: Rules) -> Reading:
    assert fact.number is not None
    found = answer_text.numbers(answer, fact.unit, fact.near)
    if any(abs(value - fact.number) <= fact.tolerance for value in found):
        return Reading("stated", f"gives {fact.number:g}")
    # Without `near` any other number might be about something else, as long as somebody said it.
    known = () if fact.near is not None else answer_text.numbers(rules.known_text, None, None)
    others = [value for value in found if value not in known]
    if others:
        return Reading("contradicted", f"gives {others[0]:g} where it is {fact.number:g}")
    return Reading("unsaid", f"does not give {fact.number:g}")


def _listed(
    found: list[str], wanted: str, rules: Rules, reader: Callable[[str, str | None], list[str]], noun: str
) -> Reading:
    if wanted in found:
        return Reading("stated", f"gives the {noun} {wanted}")
    others = [value for value in found if value not in reader(rules.known_text, None)]
    if others:
        return Reading("contradicted", f"gives the {noun} {others[0]} where it is {wanted}")
    return Reading("unsaid", f"does not give the {noun} {wanted}")


def _identifier(fact: Fact, answer: str, rules: Rules) -> Reading:
    wanted = fact.identifier or ""

    def reader(text: str, near: str | None) -> list[str]:
        return answer_text.identifiers(text, wanted, near)

    found = reader(answer, fact.near)
    reading = _listed(found, answer_text.plain_identifier(wanted), rules, reader, "identifier")
    return Reading(reading.stand, reading.says.replace(answer_text.plain_identifier(wanted), wanted))


def _conclusion(fact: Fact, answer: str, rules: Rules) -> Reading:
    words = rules.conclusions[fact.concludes or ""]
    found = answer_text.readings(answer, words.yes, words.no)
    told = {True: f"concludes yes on “{words.asks}”", False: f"concludes no on “{words.asks}”"}
    if not found:
        return Reading("unsaid", f"concludes nothing on “{words.asks}”")
    if len(found) == 2:
        return Reading("stated" if fact.holds is None else "unclear", f"concludes both yes and no on “{words.asks}”")
    (drawn,) = found
    if fact.holds is None or drawn == fact.holds:
        return Reading("stated", told[drawn])
    return Reading("contradicted", told[drawn])


def _function(fact: Fact, answer: str, rules: Rules) -> Reading:
    name = fact.function or ""
    function = rules.functions.get(name)
    if function is None:
        return Reading("unclear", f"was not looked at: the suite's function {name} is not at hand")
    try:
        holds = function(answer, rules.evidence)
    except SuiteError as error:
        return Reading("unclear", f"could not be looked at: {error.message}")
    if holds is None:
        return Reading("unclear", f"cannot be told by the suite's check {name}")
    return Reading("stated" if holds else "unsaid", f"{'passes' if holds else 'fails'} the suite's check {name}")


_READERS: dict[FactKind, Callable[[Fact, str, Rules], Reading]] = {
    "number": _number,
    "date": _date,
    "identifier": _identifier,
    "concludes": _conclusion,
    "asks_for": _asks,
    "unavailable": _unavailable,
    "executed": _executed,
    "function": _function,
}
