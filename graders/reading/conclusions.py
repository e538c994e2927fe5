"""Which way an answer settles a yes/no question."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from evalfarm.contracts.answer import Conclusion
from graders.reading.clauses import NOT, Clause, clauses, clauses_of, denials, sentences

#: Beyond these a denial does not reach, though what is said of one subject goes on.
_CONJUNCTION = re.compile(r"\b(?:and|so|und)\b", re.IGNORECASE)
_BARE = re.compile(
    r"(?:(?:well|so|then|sorry|unfortunately|sadly|leider|i['’]?m afraid|i am afraid|the answer is) )*"
    r"(?:(?P<yes>yes|yep|absolutely|certainly|ja|jawohl)|(?P<no>no|nope|not|nein|nicht))\W*",
    re.IGNORECASE,
)
_AT_THE_END = re.compile(r"\bso,? (?:the answer is )?(?:(?P<yes>yes)|(?P<no>no))\W*$", re.IGNORECASE)


class Settled(NamedTuple):
    """What a text settles, and what may settle it."""

    ways: frozenset[bool]  #: both: it says yes in one place and no in another
    weakly: str = ""  #: a clause that says yes or no in general, with a hedge, or denied twice
    supposed: str = ""  #: a clause that does so under a condition
    unread: str = ""  #: a clause that bears on it, in words that no rule has


def settled(text: str, words: Conclusion, *, asked: bool) -> Settled:
    """What a text settles; `asked`: the user asked a question, so that a bare yes or no may answer it.

    A phrase for yes that is denied in its own clause is a no. One for no that is denied settles nothing by itself:
    what is not too late may be excluded otherwise. A bare yes or no counts where no phrase does.
    """
    ways: set[bool] = set()
    doubtful: dict[str, str] = {}
    for clause in clauses(text):
        if clause.does in ("leaves_open", "reports"):
            continue
        found = set(_read(clause, words))
        if clause.asserts and found - {None}:
            ways |= {way for way in found if way is not None}
        elif found:
            doubtful.setdefault("supposed" if clause.does == "supposes" else "weakly", clause.text)
        elif clause.asserts and _bears_on(clause, words):
            doubtful.setdefault("unread", clause.text)
    if not ways and asked and words.outright:
        ways = set(_bare(text))
    return Settled(frozenset(ways), **doubtful)


def _read(clause: Clause, words: Conclusion) -> Iterator[bool | None]:
    """Yes and no as a clause says them; None: in a way that settles neither."""
    for part in _CONJUNCTION.split(clause.text):
        yeses, noes = _found(words.yes, part), _found(words.no, part)
        for _, match in noes:
            if not any(_inside(match, other) for _, other in yeses):
                yield None if denials(part[: match.start()]) else False
        for pattern, match in yeses:
            if not any(_inside(match, other) for _, other in noes):
                # A pattern that begins with a denial, as `nothing stands against it`, means it.
                meant = NOT.match(pattern.removeprefix(r"\b")) is not None
                yield {0: True, 1: False}.get(denials(part[: match.end()]) - meant)


def _found(patterns: tuple[str, ...], part: str) -> list[tuple[str, re.Match[str]]]:
    return [(pattern, match) for pattern in patterns if (match := re.search(pattern, part, re.IGNORECASE))]


def _inside(match: re.Match[str], other: re.Match[str]) -> bool:
    """Whether a phrase is a part of a longer one, as `ineligible` of `not ineligible`: the longer one says more."""
    return other.start() <= match.start() and match.end() <= other.end() and other.group() != match.group()


def _bears_on(clause: Clause, words: Conclusion) -> bool:
    if _BARE.fullmatch(clause.text):
        return False
    return not words.about or any(re.search(pattern, clause.text, re.IGNORECASE) for pattern in words.about)


def _bare(text: str) -> Iterator[bool]:
    """Every yes or no that stands at the head of a sentence by itself, or at its end as what follows."""
    for sentence in sentences(text):
        first = next(clauses_of(sentence), None)
        found = (_BARE.fullmatch(first.text) if first is not None else None) or _AT_THE_END.search(sentence)
        if found is not None and not sentence.endswith("?"):
            yield found["yes"] is not None
