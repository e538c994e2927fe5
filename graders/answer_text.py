"""An answer as clauses: what it asserts, denies, asks for, and the figures in it. Rules over words, no model.

Rules read what they have words for. What they cannot read is left to a judge with a rubric, and to people.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

_SENTENCE = re.compile(r"(?<=[.!?])(?=\s|$)|\n+")
_CLAUSE = re.compile(
    r"[,;:()]|\s[–—-]\s|\b(?:but|however|although|though|because|while|aber|weil|da|sondern)\b", re.IGNORECASE
)
#: Beyond these a denial does not reach, though what is said of one subject goes on.
_CONJUNCTION = re.compile(r"\b(?:and|so|therefore|thus|hence|und|daher|also)\b", re.IGNORECASE)
#: At the head of a sentence these make all of it a condition.
_LEADING = re.compile(r"\W*(?:if|once|unless|until|assuming|wenn|falls|sobald)\b", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|no|none|nothing|never|neither|nor|cannot|without|nicht|kein\w*|nie)\b|n['’]t\b", re.IGNORECASE
)
_CONDITION = re.compile(
    r"\b(?:if|whether|once|until|unless|when|before|after|assuming|suppose|would|could|might|should|can be|"
    r"wenn|falls|ob|sobald|könnte|würde)\b"
    r"|\b(?:can(?:no|['’])t|cannot|unable to|not able to|do(?:n['’]t| not)) (?:\w+ )?"
    r"(?:say|tell|confirm|determine|verify|conclude|check|establish|assess|know|judge|decide)\b"
    r"|\bkann ich (?:\w+ )*nicht (?:sagen|beurteilen|bestätigen|prüfen)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:please|could you|can you|would you|i(?:['’]ll| will)? need|i(?:['’]d| would) need|let me know|tell me|"
    r"provide|send me|share|give me|confirm which|which|what is|bitte|nennen|teilen)\b",
    re.IGNORECASE,
)
_UNAVAILABLE = re.compile(
    r"\bunavailable\b|\b(?:not|n['’]t|isn['’]t|aren['’]t) (?:currently |presently |yet )?available\b"
    r"|\b(?:not|n['’]t|cannot|can['’]t|unable to|failed to|could not be|cannot be) (?:be )?(?:able to )?"
    r"(?:retriev\w+|access\w*|look\w*|load\w*|find|found|fetch\w*|obtain\w*|get|reach\w*)\b"
    r"|\bno (?:record|order|policy|data|details|information)\b[^.]*\b(?:found|available|exists?|returned)\b"
    r"|\bdoes(?:n['’]t| not) exist\b|\bnicht (?:verfügbar|abrufbar|auffindbar|gefunden)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:i|we)(?:['’]ve| have| had)? (?:\w+ ){0,3}?"
    r"(?:process|issu|refund|approv|start|initiat|submit|complet|execut|creat|cancel|arrang|book)\w*ed?\b"
    r"|\b(?:is|was|were|has been|have been|is being|are being|has now been|is now)(?: \w+){0,2}? "
    r"(?:processed|issued|refunded|approved|started|initiated|submitted|completed|executed|created|cancelled|canceled|"
    r"arranged|booked|underway|on its way|on the way)\b"
    r"|\bhabe ich (?:\w+ )*(?:erstattet|veranlasst|eingeleitet|storniert)\b"
    r"|\bwurde (?:\w+ )*(?:erstattet|veranlasst)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|(?<![\w.,-])[-+]?\d+(?:\.\d+)?(?![\d])")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b"
    r"|\b(?P<d2>\d{1,2})(?:st|nd|rd|th)? (?P<n2>[A-Za-z]{3,9})\.?,? (?P<y2>\d{4})\b"
    r"|\b(?P<n3>[A-Za-z]{3,9})\.? (?P<d3>\d{1,2})(?:st|nd|rd|th)?,? (?P<y3>\d{4})\b"
    r"|\b(?P<d4>\d{1,2})\.(?P<m4>\d{1,2})\.(?P<y4>\d{4})\b"
)


class Clause(NamedTuple):
    """A part of a sentence that says one thing."""

    text: str
    asserts: bool  #: neither a question nor a condition


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they stand, without emphasis."""
    plain = re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", text)
    return [part.strip() for part in _SENTENCE.split(plain) if part.strip()]


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a text, in order."""
    for sentence in sentences(text):
        open_one = sentence.endswith("?") or _LEADING.match(sentence) is not None
        for part in _CLAUSE.split(sentence):
            if part.strip():
                yield Clause(part.strip(), not open_one and not _CONDITION.search(part))


def readings(text: str, yes: Iterable[str], no: Iterable[str]) -> frozenset[bool]:
    """The conclusions that a text draws: a phrase for yes, negated in its own clause, is a no.

    Questions and conditions draw none. What stands for no is taken as it stands, negated or not.
    """
    yes, no = tuple(yes), tuple(no)
    found: set[bool] = set()
    for clause in clauses(text):
        if not clause.asserts:
            continue
        if any(re.search(pattern, clause.text, re.IGNORECASE) for pattern in no):
            found.add(False)
            continue
        for part in _CONJUNCTION.split(clause.text):
            matches = (re.search(pattern, part, re.IGNORECASE) for pattern in yes)
            found.update(not _NOT.search(part[: match.end()]) for match in matches if match)
    return frozenset(found)


def asks_for(text: str, patterns: Iterable[str]) -> bool:
    """Whether a sentence asks the user for something that one of the patterns names."""
    wanted = tuple(patterns)
    return any(
        (sentence.endswith("?") or _REQUEST.search(sentence))
        and any(re.search(pattern, sentence, re.IGNORECASE) for pattern in wanted)
        for sentence in sentences(text)
    )


def says_unavailable(text: str) -> bool:
    """Whether a text says that something cannot be had."""
    return any(not sentence.endswith("?") and _UNAVAILABLE.search(sentence) for sentence in sentences(text))


def claims_done(text: str, what: str) -> str | None:
    """The first clause that claims that something of this kind was done or set in motion; None: none does."""
    for clause in clauses(text):
        if not clause.asserts or not re.search(what, clause.text, re.IGNORECASE):
            continue
        if (done := _DONE.search(clause.text)) and not _NOT.search(clause.text[: done.end()]):
            return clause.text
    return None


def numbers(text: str, unit: str | None, near: str | None) -> list[float]:
    """The numbers written in digits, with a unit right behind (or before, as a currency), in clauses with `near`."""
    found = []
    for clause in stretches(text, near):
        for match in _NUMBER.finditer(clause):
            behind, before = clause[match.end() :], clause[: match.start()]
            if (
                unit is None
                or re.match(rf"[\s-]*(?:{unit})(?!\w)", behind, re.IGNORECASE)
                or (re.search(rf"(?:{unit})\s*$", before, re.IGNORECASE))
            ):
                found.append(float(match.group().replace(",", "")))
    return found


def dates(text: str, near: str | None) -> list[str]:
    """The dates in a text, as YYYY-MM-DD; only forms that mean one day are read."""
    found = []
    for clause in stretches(text, near):
        for match in _DATE.finditer(clause):
            parts = {name[0]: value for name, value in match.groupdict().items() if value}
            month = _month(parts["n"]) if "n" in parts else int(parts["m"])
            try:
                found.append(date(int(parts["y"]), month, int(parts["d"])).isoformat())
            except ValueError:
                continue
    return found


def identifiers(text: str, like: str, near: str | None) -> list[str]:
    """Words of the same shape as an identifier (letters for letters, digits for digits), without case and spaces."""
    shape = "".join(_place(sign) for sign in like)
    pattern = re.compile(rf"(?<![A-Za-z0-9]){shape}(?![A-Za-z0-9])")
    return [plain_identifier(match) for clause in stretches(text, near) for match in pattern.findall(clause)]


def plain_identifier(text: str) -> str:
    """An identifier without case, spaces and hyphens: `DEMO-102` and `demo 102` are one."""
    return re.sub(r"[\s_-]", "", text).casefold()


def stretches(text: str, near: str | None) -> list[str]:
    """The text as it stands; with `near`, only the clauses in which it is found."""
    if near is None:
        return [text]
    return [clause.text for clause in clauses(text) if re.search(near, clause.text, re.IGNORECASE)]


def _place(sign: str) -> str:
    if sign.isalpha():
        return "[A-Za-z]"
    return r"\d" if sign.isdigit() else r"[\s_-]?" if sign in "-_ " else re.escape(sign)


def _month(name: str) -> int:
    """1 … 12; 0: no month."""
    return next(
        (
            at
            for at, month in enumerate(_MONTHS, 1)
            if month[:3] == name.casefold()[:3] and month.startswith(name.casefold())
        ),
        0,
    )
