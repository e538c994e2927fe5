"""A base policy for servers that resolve an indicator to ranked series and then fetch them.

It follows the instructions it is given. Where none forbids it, it behaves as a knowledgeable model does: for a
gap it tries an ID from memory, and on a tie it fetches every tied candidate.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cases.policies.seen import Answer, Call, Calls, Move, Seen, SeenResult, SeenTurn

RESOLVE = "resolve"
FETCH = "fetch_bls_data"

_TOLD_AGAINST_MEMORY = re.compile(
    r"\b(only|never|not|don't|without)\b.*\b(ids?|identifiers?)\b"
    r".*\b(returned|returns|from resolve|catalog|memory|knowledge)\b"
    r"|\b(never|not|don't)\b.*\b(invent|guess|make up)\w*\b.*\b(series|ids?|identifiers?)\b",
    re.IGNORECASE | re.DOTALL,
)
_TOLD_OF_TIES = re.compile(r"\b(ties?|tied|equally (good|likely)|(same|equal) confidence)\b", re.IGNORECASE)
_TOLD_TO_ASK = re.compile(r"\b(asks?|clarif\w+|fetch (nothing|none))\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?;]+(?:\s+|$)|\n\s*(?:\n|[-*#])")

_LEAD = re.compile(
    r"^(?:please|can you|could you|tell me|show me|give me|look up|find|report|and"
    r"|what(?:'s| is| are| was| were)|what about|how (?:has|have|did|does|is|are|high is|large is|much is|many)"
    r"|the|a|an|our|current|currently|latest|newest|most recent|recent|today's"
    r"|total|level|value|figure|figures|number|reading|data|for|of|on"
    r"|u\.s\.|us|american|national|nation's)\s+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s+(?:changed?|moved?|developed|evolved|look(?:ed|ing)?|stand(?:ing)?|right now|now|today|currently|lately"
    r"|recently|at present|at the moment|in the u\.s\.|in the united states|in america|this year|last (?:month|year)"
    r"|(?:over|in|during|since|for|according to|as of) (?:the )?(?:last|past|latest|most recent|recent|bls)\b.*)$",
    re.IGNORECASE,
)

MAX_TRIES_OF_A_CALL = 2
"""Calls of one tool in one turn before giving up on an output that cannot be read."""


def indicator_of(question: str) -> str:
    """What a question asks for: its words without the leading phrase, the trailing phrase and punctuation."""
    text = question.strip().rstrip("?!. ")
    for pattern in (_LEAD, _TAIL):
        while (shorter := pattern.sub("", text, count=1)) != text and shorter.strip():
            text = shorter.strip()
    return text


def forbids_own_ids(instructions: str) -> bool:
    """Whether some sentence forbids series IDs that the catalog did not return."""
    return any(_TOLD_AGAINST_MEMORY.search(sentence) for sentence in _SENTENCE.split(instructions))


def asks_on_ties(instructions: str) -> bool:
    """Whether some sentence says that a tie is a reason to ask rather than to fetch."""
    return any(
        _TOLD_OF_TIES.search(sentence) and _TOLD_TO_ASK.search(sentence) for sentence in _SENTENCE.split(instructions)
    )


@dataclass(frozen=True)
class Catalog:
    """Resolves, looks at the candidates, fetches and answers.

    `remembered` is the model's own knowledge: an indicator to a series ID, or None.
    """

    remembered: Callable[[str], str | None]

    def move(self, seen: Seen, draw: random.Random) -> Move:  # noqa: ARG002 - it leaves nothing to chance
        """Fetch what the user chose; else resolve first, then fetch, ask, or say that there is nothing."""
        turn = seen.turn
        if seen.tool(RESOLVE) is None or seen.tool(FETCH) is None:
            return Answer("I have no tool that can look this up.", reasoning_tokens=16)
        if fetched := turn.results_of(FETCH):
            return _told(turn, fetched)
        if chosen := _chosen(seen):
            return _fetch(chosen)
        resolved = turn.results_of(RESOLVE)
        candidates = _candidates(resolved[-1]) if resolved else None
        if candidates is None:
            if len(resolved) >= MAX_TRIES_OF_A_CALL:
                return Answer("The lookup failed, so I cannot say.", reasoning_tokens=16)
            indicator = indicator_of(turn.question)
            return Calls((Call(RESOLVE, {"indicators": [{"indicator": indicator}]}),), reasoning_tokens=64)
        return self._settle(turn, seen.instructions, candidates)

    def _settle(self, turn: SeenTurn, instructions: str, candidates: list[dict[str, Any]]) -> Move:
        best = _best(candidates)
        if len(best) == 1 or (best and not asks_on_ties(instructions)):
            return _fetch([candidate["series_id"] for candidate in best])
        if best:
            titles = " or ".join(f"{candidate['title']} ({candidate['series_id']})" for candidate in best)
            return Answer(f"Which one do you mean: {titles}?", reasoning_tokens=48)
        indicator = indicator_of(turn.question)
        known = None if forbids_own_ids(instructions) else self.remembered(indicator)
        return Answer(_unavailable(indicator), reasoning_tokens=32) if known is None else _fetch([known])


def _fetch(series_ids: list[str]) -> Move:
    return Calls((Call(FETCH, {"series_ids": series_ids}),), reasoning_tokens=48)


def _unavailable(indicator: str) -> str:
    return f"The data for {indicator} is not available."


def _told(turn: SeenTurn, fetched: tuple[SeenResult, ...]) -> Move:
    """The values of the last fetch; the same fetch again where its output cannot be read."""
    last = fetched[-1]
    series = _records(last, "series")
    if series is None:
        asked = _asked(fetched, turn.results_of(RESOLVE))
        if len(fetched) < MAX_TRIES_OF_A_CALL and asked:
            return _fetch(asked)
        return Answer("The figures could not be fetched, so I cannot say.", reasoning_tokens=16)
    values = [text for record in series if (text := _value(record))]
    return Answer("; ".join(values) + "." if values else _unavailable(indicator_of(turn.question)), reasoning_tokens=32)


def _asked(fetched: tuple[SeenResult, ...], resolved: tuple[SeenResult, ...]) -> list[str]:
    """The series that a fetch was for: its arguments, or the best candidates where those were garbled."""
    arguments = fetched[-1].arguments
    if isinstance(arguments, dict) and isinstance(arguments.get("series_ids"), list):
        return list(arguments["series_ids"])
    candidates = _candidates(resolved[-1]) if resolved else None
    return [candidate["series_id"] for candidate in _best(candidates or [])]


def _chosen(seen: Seen) -> list[str]:
    """The candidates of the turn before that the user now names, by ID or by title; none where nothing was asked."""
    if len(seen.turns) < 2 or not (before := seen.turns[-2].results_of(RESOLVE)) or seen.turns[-2].results_of(FETCH):
        return []
    question = seen.turn.question
    return [
        candidate["series_id"]
        for candidate in _candidates(before[-1]) or []
        if candidate["series_id"] in question or candidate["title"].casefold() in question.casefold()
    ]


def _records(result: SeenResult, field: str) -> list[dict[str, Any]] | None:
    data = result.data
    found = data.get(field) if isinstance(data, dict) else None
    return [record for record in found if isinstance(record, dict)] if isinstance(found, list) else None


def _candidates(result: SeenResult) -> list[dict[str, Any]] | None:
    """All candidates of a resolve that can be read; None where the output cannot."""
    results = _records(result, "results")
    if results is None:
        return None
    listed = [record.get("candidates") for record in results]
    return [candidate for some in listed if isinstance(some, list) for candidate in some if _is_candidate(candidate)]


def _is_candidate(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("series_id"), str)
        and isinstance(found.get("title"), str)
        and isinstance(found.get("confidence"), int | float)
    )


def _best(candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    top = max((candidate["confidence"] for candidate in candidates), default=None)
    return [candidate for candidate in candidates if candidate["confidence"] == top]


def _value(record: dict[str, Any]) -> str | None:
    observations = record.get("observations")
    last = observations[-1] if isinstance(observations, list) and observations else None
    if not isinstance(last, dict) or not {"value", "period"} <= last.keys():
        return None
    if not {"title", "series_id"} <= record.keys():
        return None
    return f"{record['title']} ({record['series_id']}): {last['value']} in {last['period']}"
