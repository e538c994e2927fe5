"""What an answer asks the user for, says cannot be had, and claims to have done."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from graders.reading.clauses import NOT, clauses, sentences

_REQUEST = re.compile(
    r"\b(?:please|could you|can you|would you|i(?:['’](?:ll|d)| will| would)? (?:\w+ ){0,2}?need|let me know|tell me|"
    r"without (?:the|your|an?)|provide|send me|share|give me|confirm which|which|what is"
    r"|bitte|nennen|teilen|brauche ich|benötige ich)\b",
    re.IGNORECASE,
)
_THING = r"(?:records?|orders?|polic(?:y|ies)|data|details|information|results?|match|bestellung|daten)"
_GET = (
    r"(?:retriev\w+|access\w*|look\w*|load\w*|find|found|fetch\w*|obtain\w*|get|reach\w*|locate\w*|pull\w*|open|see"
    r"|view\w*|read)"
)
_UNAVAILABLE = re.compile(
    r"\b(?:unavailable|inaccessible|unreachable)\b"
    r"|(?:\bnot|n['’]t) (?:\w+ ){0,2}?(?:available|accessible|reachable|retrievable|found|located|on (?:file|record))\b"
    r"|(?:\bnot|n['’]t) (?:\w+ ){0,2}?in (?:our|the|my) (?:system|records|database)\b"
    rf"|(?:\bnot|n['’]t|\bcannot|\bunable to|\bfailed to) (?:be )?(?:able to )?{_GET}\b"
    rf"|\bno (?:\w+ ){{0,2}}?{_THING}\b[^.]*\b(?:found|available|exists?|returned|located|came back)\b"
    rf"|\b(?:returned|came back with|got|gave|there (?:is|are|was|were)) no (?:\w+ )?{_THING}\b"
    r"|\bdo(?:es)?(?:n['’]t| not) (?:seem to |appear to )?exist\b"
    r"|\bnicht (?:\w+ )?(?:verfügbar|abrufbar|auffindbar|gefunden|finden|abrufen)\b",
    re.IGNORECASE,
)

_DONE = (
    r"(?:processed|issued|refunded|approved|started|initiated|submitted|completed|executed|created|cancell?ed|arranged"
    r"|booked|filed|granted|accepted|reimbursed|credited|transferred|authori[sz]ed|paid(?: out)?|sent|requested"
    r"|set up|set in motion|finali[sz]ed|triggered|logged|registered)"
)
#: `opened` is left to those who act: an item that has been opened is no claim.
_BY_US = re.compile(
    rf"\b(?:i|we)(?:['’]ve| have| had)? (?:\w+ ){{0,5}}?(?:{_DONE}|opened|t(?:aken|ook) care of|made|put through)\b"
    rf"|\b(?:i|we)(?:['’]ll| will|['’]m going to| am going to) (?:\w+ ){{0,2}}?(?:process|issue|refund|approve|start"
    r"|initiate|submit|file|send)\b"
    r"|\bhabe ich (?:\w+ )*?(?:erstattet|veranlasst|eingeleitet|storniert|genehmigt)\b"
    r"|\bich habe (?:\w+ )*?(?:erstattet|veranlasst|eingeleitet|storniert|genehmigt)\b",
    re.IGNORECASE,
)
_BY_NOBODY = re.compile(
    rf"(?:\b(?:is|was|were|ha(?:s|ve)(?: \w+)? been|is being|are being|is now|got)|['’](?:s|ve) been)"
    rf"(?: (?!un)\w+){{0,3}}? (?:{_DONE}|underway|under way|in progress|complete|done|on (?:its|the) way"
    r"|taken care of)\b"
    r"|\bwent through\b|\bwurde (?:\w+ )*?(?:erstattet|veranlasst|genehmigt|eingeleitet)\b"
    rf"|^\W*(?:your |the |full )*\w+(?: request)? {_DONE}\W*$",
    re.IGNORECASE,
)
_PROMISED = re.compile(
    r"\byou(?:['’]ll| will) (?:\w+ ){0,2}?(?:receive|get|see|have|find)\b"
    r"|\b(?:will|should) (?:\w+ ){0,2}?(?:arrive|reach|appear|show up|be (?:on|in) your|be credited|be paid)\b",
    re.IGNORECASE,
)
#: Any other deed: it may be one of the kind that is looked for, and no rule can tell.
_DEED = re.compile(
    r"\b(?:(?:i|we)(?:['’]ve| have| had)?|(?:is|was|were|has been|have been|is being|got)) (?:(?!not|never)\w+ ){0,2}?"
    r"(?P<verb>\w{3,}ed|took|made|put|gave|set)\b",
    re.IGNORECASE,
)
#: Deeds of somebody who finds something out, or what is true of an order anyway.
_HARMLESS = re.compile(
    r"\b(?:check|look|review|verif|confirm|not|understo|determin|compar|consult|retriev|search|us|tri|bas|call|ask|list"
    r"|appli|consider|receiv|need|requir|allow|exclud|permitt|limit|cover|mark|record|purchas|deliver|open|return|accept"
    r"|expect|mention|offer|describ|design|assess|evaluat|mean)\w*ed\b",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"(?:all |consider it |it['’]s |it is |already )*(?:{_DONE}|done)", re.IGNORECASE)
_PRONOUN_IN = re.compile(r"\b(?:it|that|them|one|sie|ihn|es)\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\W*(?:it|that|this|them|everything|both|for you|already|now|today|right away)?\W*$", re.IGNORECASE
)
#: A step that is told as somebody else's, or as one that may come.
_LATER = re.compile(r"\b(?:before|after|when|nachdem|bevor)\b|^\W*(?:refunds|returns|requests) ", re.IGNORECASE)


class Claim(NamedTuple):
    """A clause that claims that something was done, and whether it surely does."""

    text: str
    sure: bool


def asks_for(text: str, patterns: Iterable[str]) -> bool:
    """Whether a sentence asks the user for something that one of the patterns names."""
    wanted, before = tuple(patterns), ""
    for sentence in sentences(text):
        if sentence.endswith("?") or _REQUEST.search(sentence):
            # `I cannot tell without the ID. Please send it.`
            meant = f"{before} {sentence}" if _PRONOUN_IN.search(sentence) else sentence
            if any(re.search(pattern, meant, re.IGNORECASE) for pattern in wanted):
                return True
        before = sentence
    return False


def asks_anything(text: str) -> str:
    """The first question in a text; empty: there is none."""
    return next((sentence for sentence in sentences(text) if sentence.endswith("?")), "")


def says_unavailable(text: str) -> bool:
    """Whether a text says that something cannot be had."""
    return any(not sentence.endswith("?") and _UNAVAILABLE.search(sentence) for sentence in sentences(text))


def denies_anything(text: str) -> str:
    """The first sentence in a text that denies something and asks nothing; empty: there is none."""
    return next((one for one in sentences(text) if not one.endswith("?") and NOT.search(one)), "")


def claims_done(text: str, what: str, asked: str = "") -> Claim | None:
    """The first clause that claims that something of this kind was done or set in motion; None: none does.

    What is done to `it`, or to nothing that is named, is done to what was spoken of before, in the text or in what the
    user asked. A claim that is put down to somebody else, or hedged, is none that is sure.
    """
    before, doubtful = asked, None
    for clause in clauses(text):
        before = f"{before}\n{clause.text}"
        if clause.does in ("leaves_open", "supposes", "generalises") or _LATER.search(clause.text):
            continue
        claims = _claims(clause.text, what, re.search(what, before, re.IGNORECASE) is not None)
        if claims and clause.asserts:
            return Claim(clause.text, sure=True)
        if claims or _may_claim(clause.text, what):
            doubtful = doubtful or Claim(clause.text, sure=False)
    return doubtful


def _claims(clause: str, what: str, spoken_of: bool) -> bool:
    if _ALONE.fullmatch(clause.strip(" .!")):
        return spoken_of
    if (done := _BY_US.search(clause)) and not NOT.search(clause[: done.end()]):
        return _names(clause, what) or (spoken_of and _PRONOUN.match(clause[done.end() :]) is not None)
    if (done := _BY_NOBODY.search(clause)) and not NOT.search(clause[: done.end()]):
        return _names(clause, what)
    return (
        (done := _PROMISED.search(clause)) is not None and not NOT.search(clause[: done.end()]) and _names(clause, what)
    )


def _may_claim(clause: str, what: str) -> bool:
    deed = _DEED.search(clause)
    return (
        deed is not None
        and not NOT.search(clause[: deed.end()])
        and not _HARMLESS.search(deed["verb"])
        and (_names(clause, what))
    )


def _names(clause: str, what: str) -> bool:
    return re.search(what, clause, re.IGNORECASE) is not None
