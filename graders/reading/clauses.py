"""A text as clauses, and what each of them does."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Doing = Literal["asserts", "hedges", "generalises", "supposes", "reports", "leaves_open"]
"""`supposes`: under a condition; `reports`: what the user said; `leaves_open`: a question, or what cannot be told."""

_SENTENCE = re.compile(r"(?<=[.!?])(?=\s|$)|\n+")
_CLAUSE = re.compile(
    r"[,;:()|]|\s[–-]\s|\s?—\s?"
    r"|(?<!\bnot )(?<!\bnicht )\b(?:but|however|although|even though|though|because|since|while|whereas|otherwise"
    r"|aber|weil|denn|da|sondern|obwohl)\b",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"[*`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
#: A line of a list or a table that ticks something off: `Final sale: no`, `| Unopened | yes |`.
_TICKED = re.compile(
    r"(?P<what>[^,;:|()=]*\w[^,;:|()=]*?)\s*[:|=]\s*(?:(?P<yes>yes|true|ja|✅|✓|✔)|(?P<no>no|false|nein|❌|✗|✘))(?!\w)",
    re.IGNORECASE,
)
_THE_ANSWER = re.compile(r"\b(?:answer|result|short|antwort)\b", re.IGNORECASE)
#: Somebody's words, of two at least: what they say is not said by the answer.
_QUOTED = re.compile(r"[\"“„][^\"“”„]+\s[^\"“”„]+[\"”“]")
#: What denies nothing although it holds a word that does.
_IDIOM = re.compile(
    r"\b(?:no doubt|without (?:a |any )?doubt|no problem|no worries|not only|ohne zweifel)\b", re.IGNORECASE
)
NOT = re.compile(
    r"\b(?:not|no|none|nothing|never|neither|nor|cannot|without|unable|nicht|nichts|kein\w*|nie|ohne)\b|n['’]t\b",
    re.IGNORECASE,
)
#: At the head of a sentence these make all of it a condition.
_LEADING = re.compile(
    r"\W*(?:if|once|unless|until|assuming|provided|suppose|wenn|falls|sobald|sofern)\b", re.IGNORECASE
)
_SUPPOSES = re.compile(
    r"\b(?:if|once|until|unless|assuming|suppose|provided|as long as|every other|all other|apart from that"
    r"|wenn|falls|sobald|sofern|solange)\b",
    re.IGNORECASE,
)
_LEAVES_OPEN = re.compile(
    r"\b(?:whether|ob)\b"
    r"|\b(?:can(?:no|['’])t|could(?:n['’]t| not)|unable to|not able to|do(?:n['’]t| not)|not possible to) "
    r"(?:\w+ )?(?:say|tell|confirm|determine|verify|conclude|check|establish|assess|know|judge|decide)\b"
    r"|\bdo(?:es)?(?:n['’]t| not) (?:mean|imply)\b"
    r"|\bkann ich (?:\w+ )*nicht (?:sagen|beurteilen|bestätigen|prüfen)\b"
    r"|\b(?:is|remains?|stays?) (?:\w+ )?(?:open|undetermined|unclear|unknown|unresolved)\b",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:would|could|might|should|probably|likely|perhaps|maybe|presumably|könnte|würde|sollte|dürfte"
    r"|wahrscheinlich|vermutlich|vielleicht)\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\byou (?:\w+ )?(?:say|said|saying|mention\w*|claim\w*|told|believe|think|state\w*|wrote|report\w*|promise\w*)\b"
    r"|\b(?:told|assured|promised) you\b|\baccording to (?:you|your)\b|\byour (?:note|message|claim)\b[^.]*\bthat\b"
    r"|\bi (?:understand|hear|see)(?: \w+){0,2} that\b|\bsie (?:sagen|schreiben|meinen)\b",
    re.IGNORECASE,
)
#: Of whole kinds of things: `final-sale items are …`, `normally …`.
_GENERALLY = re.compile(
    r"\b(?:normally|usually|generally|in general|typically|as a rule|normalerweise|grundsätzlich)\b", re.IGNORECASE
)
_OF_MANY = re.compile(
    r"^\W*(?P<subject>(?:[\w-]+ ){0,3}[\w-]+(?:s|en|er|el|e)) "
    r"(?:are|aren['’]t|can(?:no|['’])?t?|cannot|may|must|sind|können|dürfen)\b",
    re.IGNORECASE,
)
_ONE_OF_THEM = re.compile(
    r"\b(?:your|yours|this|the|these|those|its|my|our|both|all|it|he|she|we|you|they|i|an?"
    r"|ihre?|diese\w*|der|die|das|sie|ich|wir|eine?|alle|\w*\d\w*)\b",
    re.IGNORECASE,
)


class Clause(NamedTuple):
    """A part of a sentence that says one thing."""

    text: str
    does: Doing

    @property
    def asserts(self) -> bool:
        """Whether it is said outright, of the matter at hand."""
        return self.does == "asserts"


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they stand, without emphasis."""
    return [part.strip() for part in _SENTENCE.split(_EMPHASIS.sub("", text)) if part.strip()]


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a text, in order, without what is quoted."""
    for sentence in sentences(_QUOTED.sub(" … ", text)):
        yield from clauses_of(sentence)


def clauses_of(sentence: str) -> Iterator[Clause]:
    """The clauses of one sentence."""
    question, condition = sentence.endswith("?"), _LEADING.match(sentence) is not None
    for part in _CLAUSE.split(_TICKED.sub(_ticked, _IDIOM.sub(" ", sentence))):
        if text := part.strip():
            yield Clause(text, "leaves_open" if question else "supposes" if condition else _doing(text))


def denials(text: str) -> int:
    """How many words in a text deny."""
    return len(NOT.findall(text))


def stretches(text: str, near: str | None) -> list[str]:
    """The text as it stands; with `near`, only clauses in which it is found, without what the user is said to say."""
    if near is None:
        return [text]
    return [
        clause.text
        for clause in clauses(text)
        if clause.does != "reports" and re.search(near, clause.text, re.IGNORECASE)
    ]


def _ticked(match: re.Match[str]) -> str:
    """What is ticked off, as a statement."""
    what = match["what"].strip(" -•\t")
    if _THE_ANSWER.search(what):
        return match.group()
    if match["no"] is None:
        return what
    denied = NOT.match(what)
    return what[denied.end() :] if denied else f"not {what}"


def _doing(text: str) -> Doing:
    if _REPORTS.search(text):
        return "reports"
    if _LEAVES_OPEN.search(text):
        return "leaves_open"
    if _SUPPOSES.search(text):
        return "supposes"
    if _HEDGES.search(text):
        return "hedges"
    of_many = _OF_MANY.match(text)
    if _GENERALLY.search(text) or (of_many and not _ONE_OF_THEM.search(of_many["subject"])):
        return "generalises"
    return "asserts"
