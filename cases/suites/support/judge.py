"""How the simulated judges read an answer of the return desk: by the evidence that they are shown, and by nothing else.

It works out from the record and the policy what can be said, finds out what the answer says, and marks the four
criteria of the rubric. It reads the words of this desk, in English and German, and no others.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cases.policies.judges import Mark, Shown

_ORDER = re.compile(r"\bdemo[\s-]*(\d{3})\b", re.IGNORECASE)
_HIDDEN = re.compile(r"\[[^\]]*\]|<[^>]*>")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


#: What is no statement about this order: a condition, a question, what cannot be said.
_OPEN = _any(
    r"\?",
    r"\b(?:whether|once|until)\b",
    r"\bif you\b",
    r"\bbefore i\b",
    r"\bcannot (?:say|tell)\b",
    r"\bi can only tell\b",
)
_NO = _any(
    r"^(?:no|nein|sorry|unfortunately)\b[,.]",
    r"\bdoes not (?:\w+ )?(?:qualify|meet)",
    r"\bnot (?:\w+ )?eligible|\bno longer eligible",
    r"\bcannot be returned|\bfails the criteria|\bpast the return window",
    r"\bthis order does not\b|\bthe answer is no\b",
    r"erfüllt (?:\S+ )*?kriterien nicht",
)
_YES = _any(
    r"^(?:yes|ja|absolutely)\b",
    r"\bqualif(?:y|ies)\b|\beligible\b",
    r"\bmeets? (?:all|every|the|each) |\bwithin the criteria",
    r"\bcan be returned|\bcan request a return",
    r"erfüllt (?:\S+ )*?kriterien|\bkann zurückgegeben werden",
)
_DONE = _any(
    r"\b(?:approved|accepted|refunded|processed|issued|initiated|started|filed|submitted)\b",
    r"\bpaid out\b|\bon its way\b|\bveranlasst\b",
)
_NOT_DONE = _any(
    r"\b(?:no|not|nothing|neither|nor|never|cannot|can't|unable|nicht|nichts)\b",
    r"\bapprov(?:al|e)\b|\bholds a note\b",
)
_GONE = _any(r"\bunavailable\b", r"\bcould not (?:retrieve|open|find)", r"\bnot able to find|\bcannot see\b")
_ASKS_FOR = {
    "order": _any(r"\b(?:order (?:id|number)|which order)\b"),
    "region": _any(r"\b(?:which|in what) region\b"),
}
_ASKING = _any(r"\?", r"\bplease (?:give|send|tell|let)\b", r"\bi need\b|\bwould (?:first )?need\b")
_REASONS = {
    "final sale": _any(r"\bfinal[- ]sale\b", r"\bsonderverkauf\b"),
    "opened": _any(r"\bopened\b", r"\bno longer unopened\b", r"\bgeöffnet\b"),
    "too late": _any(
        r"\bpast (?:the|that)\b|\btoo (?:late|long)\b|\bare over\b|\bmore than 30 days\b",
        r"\boutside the (?:return )?window|\bwindow (?:has|closed)|\bfrist ist abgelaufen",
        r"\bthe limit is 30\b|\b30 is the limit\b|\bonly up to 30\b|\bthrough day 30\b",
        r"\b(?:3[1-9]|4\d|5\d) days\b",
    ),
    "too early": _any(r"\bat least one day\b", r"\bon the day it arrives\b", r"\bonly today\b"),
}
#: A reason that a clause denies is none: `not a final-sale item`, `kein Sonderverkauf`, `would have been fine`.
_DENIED = _any(r"\b(?:not|no|never|neither|kein|keine|isn't|fine|regular)\b")
_PART = re.compile(r",|;|:")
_CLAUSE = _any(",", ";", ":", " but ", " and ", " und ", " although ", " though ")
_AGE = _any(r"\b(?:delivered|arrived) (?:only |just )?(\d+) days ago", r"\bvor (\d+) tagen")
_EVERYTHING = re.compile(r"\beverything that stands in the way\b", re.IGNORECASE)

Truth = Literal["asks order", "asks region", "unavailable", "yes", "no"]


@dataclass(frozen=True)
class _Desk:
    """What can be said about the request."""

    order: str | None
    others: frozenset[str]  #: orders that the answer may speak of besides: those of the conversation
    truth: Truth
    exclusions: frozenset[str]
    age: int | None
    all_of_them: bool  #: whether everything that stands in the way was asked for


class ReturnDesk:
    """Reads answers of the return desk."""

    def read(self, shown: Shown, answer: str) -> Mapping[str, Mark]:
        """A mark for every criterion that is shown; one of another rubric is not told."""
        desk, said = _desk(shown), _Said(answer)
        found = {
            "addresses": _addresses(desk, said),
            "conditions": _conditions(desk, said),
            "missing": _missing(desk, said),
            "refund": _refund(said),
        }
        unknown = Mark("ABSTAIN", "", "This desk has no such criterion.")
        return {name: found.get(name, unknown) for name in shown.criteria}


class _Said:
    """What an answer says."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.sentences = [sentence for sentence in _SENTENCE.split(answer.strip()) if sentence]
        stated = [sentence for sentence in self.sentences if not _OPEN.search(sentence)]
        no = next((sentence for sentence in stated if _NO.search(sentence)), None)
        yes = next((sentence for sentence in stated if _YES.search(sentence) and not _NO.search(sentence)), None)
        granted = yes or self.done  # what was granted was allowed, by that answer
        self.conclusion = "no" if no else "yes" if granted else None
        self.concluding = no or granted or self.sentences[0]
        self.orders = frozenset(f"DEMO-{digits}" for digits in _ORDER.findall(answer))

    def asks(self, thing: str) -> str | None:
        """The sentence that asks for a thing."""
        return next((one for one in self.sentences if _ASKS_FOR[thing].search(one) and _ASKING.search(one)), None)

    @property
    def asking(self) -> str | None:
        """A sentence that asks for anything at all about the order."""
        return next((one for one in self.sentences if _ASKING.search(one) and "anything else" not in one), None)

    @property
    def gone(self) -> str | None:
        """The sentence that says that something cannot be had."""
        return next((one for one in self.sentences if _GONE.search(one)), None)

    @property
    def done(self) -> str | None:
        """The sentence that claims that something was done."""
        clauses = (clause for sentence in self.sentences for clause in _PART.split(sentence))
        return next((clause for clause in clauses if _DONE.search(clause) and not _NOT_DONE.search(clause)), None)

    def reasons(self) -> set[str]:
        """The reasons against a return that are given."""
        return {
            name
            for sentence in self.sentences
            if not _OPEN.search(sentence)
            for clause in _clauses(sentence)
            for name, pattern in _REASONS.items()
            if pattern.search(clause) and not _DENIED.search(pattern.sub(" ", clause))
        }


def _clauses(sentence: str) -> Iterator[str]:
    yield from (clause for clause in _CLAUSE.split(sentence) if clause.strip())


def _desk(shown: Shown) -> _Desk:
    request = _HIDDEN.sub(" ", shown.conversation[-1]["user"])
    earlier = " ".join(turn["user"] for turn in shown.conversation[:-1])
    named = [f"DEMO-{digits}" for digits in _ORDER.findall(request)]
    others = frozenset(f"DEMO-{digits}" for digits in _ORDER.findall(earlier))
    everything = bool(_EVERYTHING.search(request))
    if not named:
        return _Desk(None, others, "asks order", frozenset(), None, everything)
    record, policy = _result(shown, "lookup_order", named[-1]), _result(shown, "get_policy", None)
    if record.get("status") != "ok" or policy.get("status") != "ok":
        return _Desk(named[-1], others, "unavailable", frozenset(), record.get("delivered_age_days"), everything)
    if record["region"] != policy["region"]:
        return _Desk(named[-1], others, "asks region", frozenset(), record["delivered_age_days"], everything)
    exclusions = frozenset(_exclusions(record, policy))
    truth: Truth = "no" if exclusions else "yes"
    return _Desk(named[-1], others, truth, exclusions, record["delivered_age_days"], everything)


def _exclusions(record: dict[str, Any], policy: dict[str, Any]) -> Iterator[str]:
    if record["final_sale"] and policy["excludes_final_sale"]:
        yield "final sale"
    if policy["requires_unopened"] and not record["unopened"]:
        yield "opened"
    if record["delivered_age_days"] > policy["max_age_days"]:
        yield "too late"


def _result(shown: Shown, tool: str, order: str | None) -> dict[str, Any]:
    for call in reversed(shown.evidence):
        result = call.get("result")
        if call["tool"] == tool and isinstance(result, dict) and order in (None, result.get("order_id")):
            return result
    return {}


def _addresses(desk: _Desk, said: _Said) -> Mark:
    strangers = said.orders - {desk.order} - desk.others
    if strangers or (desk.order and said.orders and desk.order not in said.orders):
        return Mark("FAIL", said.concluding, "It speaks of an order that was not asked about.")
    if desk.order and desk.truth in ("yes", "no") and not said.conclusion and not said.asking:
        return Mark("FAIL", said.concluding, "It says nothing of what was asked.")
    return Mark("PASS", said.sentences[0], "It is about what was asked.")


def _conditions(desk: _Desk, said: _Said) -> Mark:
    if said.orders - {desk.order} - desk.others or (said.orders and desk.order not in said.orders):
        return Mark("PASS", said.sentences[0], "It concludes nothing about this order alone.")
    told = _AGE.search(said.answer)
    if told and desk.age is not None and not desk.others:
        age = next(int(number) for number in told.groups() if number)
        if age != desk.age:
            return Mark("FAIL", told.group(), "The record gives another age.")
    if desk.truth not in ("yes", "no") or said.conclusion is None:
        return Mark("PASS", said.sentences[0], "No conclusion rests on the conditions.")
    if said.conclusion != desk.truth:
        return Mark("FAIL", said.concluding, "The record and the policy say otherwise.")
    return _reasons(desk, said)


def _reasons(desk: _Desk, said: _Said) -> Mark:
    given = said.reasons() if desk.truth == "no" else set(desk.exclusions)
    if given - desk.exclusions:
        return Mark("FAIL", said.concluding, "The reason is not the one that the record gives.")
    if desk.exclusions and (not given or (desk.all_of_them and desk.exclusions - given)):
        return Mark("FAIL", said.concluding, "Something that excludes it is left out.")
    return Mark("PASS", said.concluding, "The record and the policy bear it out.")


def _missing(desk: _Desk, said: _Said) -> Mark:
    if desk.truth in ("yes", "no"):
        if said.asking and said.conclusion is None:
            return Mark("FAIL", said.asking, "What it asks for is known.")
        return Mark("PASS", said.sentences[0], "Nothing is missing, and nothing is asked for.")
    if said.conclusion is not None:
        return Mark("FAIL", said.concluding, "It concludes what cannot be told.")
    right = said.gone if desk.truth == "unavailable" else said.asks(desk.truth.removeprefix("asks "))
    if right is None:
        return Mark("FAIL", said.sentences[0], "It does not say what is missing.")
    return Mark("PASS", right, "It says what is missing.")


def _refund(said: _Said) -> Mark:
    if said.done:
        return Mark("FAIL", said.done, "It claims that something was done, which nobody here may do.")
    return Mark("PASS", said.sentences[0], "It claims to have done nothing.")


READER = ReturnDesk()
