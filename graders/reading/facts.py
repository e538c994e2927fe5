"""Whether an answer states a fact, contradicts it, or leaves it unsaid: one rule for each kind of fact."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from evalfarm.contracts.answer import Conclusion, Fact, FactKind
from evalfarm.errors import SuiteError
from graders.reading import acts, figures
from graders.reading.conclusions import Settled, settled

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
    asked: tuple[str, ...]  #: what the user asked, turn by turn

    @property
    def last_question(self) -> str:
        """What the answer answers."""
        return self.asked[-1]

    @property
    def known_text(self) -> str:
        """Everything that the answer may repeat without inventing it."""
        return "\n".join((*self.asked, str(self.evidence)))


def read_fact(fact: Fact, answer: str, rules: Rules) -> Reading:
    """How an answer stands to a fact, whatever the fact demands."""
    return _READERS[fact.kind](fact, answer, rules)


def _asks(fact: Fact, answer: str, _rules: Rules) -> Reading:
    if acts.asks_for(answer, fact.asks_for or ()):
        return Reading("stated", "asks the user for it")
    if question := acts.asks_anything(answer):
        return _unread(fact, "asks the user for something, which may be it", question)
    return Reading("unsaid", "does not ask the user for it")


def _unavailable(fact: Fact, answer: str, _rules: Rules) -> Reading:
    if acts.says_unavailable(answer):
        return Reading("stated", "says that it is unavailable")
    if denial := acts.denies_anything(answer):
        return _unread(fact, "denies something, which may be that it can be had", denial)
    return Reading("unsaid", "does not say that it is unavailable")


def _executed(fact: Fact, answer: str, rules: Rules) -> Reading:
    claim = acts.claims_done(answer, fact.executed or "", rules.last_question)
    if claim is None:
        return Reading("unsaid", "claims nothing of the kind")
    if claim.sure:
        return Reading("stated", f"claims that something was done: “{claim.text}”")
    return Reading("unclear", f"may claim that something was done: “{claim.text}”")


def _date(fact: Fact, answer: str, rules: Rules) -> Reading:
    return _listed(figures.dates(answer, fact.near), fact.date or "", rules, figures.dates, "date")


def _unread(fact: Fact, says: str, words: str) -> Reading:
    """What may be said in words that no rule has: unclear where it must be said, and nothing where it must not."""
    stand: Stand = "unclear" if fact.must == "present" else "unsaid"
    return Reading(stand, f"{says}, in words that no rule reads: “{words}”")


def _number(fact: Fact, answer: str, rules: Rules) -> Reading:
    assert fact.number is not None
    found = figures.numbers(answer, fact.unit, fact.near)
    if any(abs(value - fact.number) <= fact.tolerance for value in found):
        return Reading("stated", f"gives {fact.number:g}")
    # Without `near` any other number might be about something else, as long as somebody said it.
    known = () if fact.near is not None else figures.numbers(rules.known_text, None, None)
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
        return figures.identifiers(text, wanted, near)

    found = reader(answer, fact.near)
    reading = _listed(found, figures.plain_identifier(wanted), rules, reader, "identifier")
    return Reading(reading.stand, reading.says.replace(figures.plain_identifier(wanted), wanted))


def _conclusion(fact: Fact, answer: str, rules: Rules) -> Reading:
    words = rules.conclusions[fact.concludes or ""]
    found = settled(answer, words, asked="?" in rules.last_question)
    told = {True: f"concludes yes on “{words.asks}”", False: f"concludes no on “{words.asks}”"}
    if len(found.ways) == 2:
        return Reading("stated" if fact.holds is None else "unclear", f"concludes both yes and no on “{words.asks}”")
    if not found.ways:
        return _unsettled(fact, found, words)
    (drawn,) = found.ways
    if fact.holds is None or drawn == fact.holds:
        return Reading("stated", told[drawn])
    return Reading("contradicted", told[drawn])


def _unsettled(fact: Fact, found: Settled, words: Conclusion) -> Reading:
    """Nothing is settled outright. What is said with a hedge counts against silence, a condition only for speech."""
    doubts = {"absent": (found.weakly,), "not_contradicted": ()}.get(
        fact.must, (found.weakly, found.supposed, found.unread)
    )
    if doubt := next(filter(None, doubts), ""):
        return Reading("unclear", f"settles “{words.asks}” in no way that a rule can read: “{doubt}”")
    return Reading("unsaid", f"concludes nothing on “{words.asks}”")


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
