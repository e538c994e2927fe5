"""What a judge replied: labels or a preference, or why the reply cannot be used. Pure.

A quote that stands nowhere in what the judge was shown makes the whole reply unusable: such a label rests on nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from evalfarm.contracts.answer import Rubric
from evalfarm.contracts.base import Contract
from evalfarm.contracts.judging import CriterionLabel, Exhibit, Place

M = TypeVar("M", bound=BaseModel)
_Written = Annotated[str, Field(max_length=20_000)]
_NOT_A_WORD = re.compile(r"\W+")
_SHOWN = 160


class Unusable(Exception):
    """Raised for a reply that gives no labels: a refusal, a reply that was cut short, or one that does not hold."""


class _Label(Contract):
    criterion: str
    quote: _Written
    reason: _Written
    label: Literal["PASS", "FAIL", "ABSTAIN"]


class _Labels(Contract):
    labels: tuple[_Label, ...]


class _Preference(Contract):
    quote: _Written
    reason: _Written
    better: Literal["first", "second", "neither"]


def read_labels(response: Mapping[str, Any], rubric: Rubric, exhibit: Exhibit) -> tuple[CriterionLabel, ...]:
    """One label per criterion, in the rubric's order. Raises Unusable."""
    given = _read(_Labels, response).labels
    by_criterion = {label.criterion: label for label in given}
    wanted = [criterion.id for criterion in rubric.criteria]
    if sorted(label.criterion for label in given) != sorted(wanted):
        raise Unusable(f"it labels {_listed(by_criterion)}, and the criteria are {_listed(wanted)}")
    shown = [_words(text) for text in _texts(exhibit)]
    labels = [by_criterion[name] for name in wanted]
    for label in labels:
        if label.label != "ABSTAIN":
            _check_quote(label.quote, shown, f"criterion {label.criterion!r}")
    return tuple(
        CriterionLabel(
            criterion=label.criterion,
            value="INCONCLUSIVE" if label.label == "ABSTAIN" else label.label,
            quote=label.quote,
            reason=label.reason,
        )
        for label in labels
    )


def read_preference(response: Mapping[str, Any], first: Exhibit, second: Exhibit) -> Place | None:
    """Which of the two was chosen; None: neither. Raises Unusable."""
    given = _read(_Preference, response)
    if given.better == "neither":
        return None
    _check_quote(given.quote, [_words(text) for text in (*_texts(first), *_texts(second))], "its choice")
    return given.better


def _read(model: type[M], response: Mapping[str, Any]) -> M:
    try:
        return model.model_validate_json(_text(response))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Unusable(
            f"it is not of the form that was asked for: {where + ': ' if where else ''}{first['msg']}"
        ) from None


def _text(response: Mapping[str, Any]) -> str:
    """The text of a response that is complete and no refusal."""
    parts = [part for item in response.get("output") or () for part in _parts(item)]
    refusals = [str(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
    if refusals:
        raise Unusable(f"the judge refused: {_short(refusals[0])}")
    if response.get("status") not in ("completed", None):
        details = response.get("incomplete_details") or response.get("error") or {}
        why = details.get("reason") or details.get("message") or "no reason given"
        raise Unusable(f"the response is {response['status']}: {_short(str(why))}")
    text = "".join(str(part.get("text") or "") for part in parts if part.get("type") == "output_text")
    if not text.strip():
        raise Unusable("it holds no text")
    return text


def _parts(item: Any) -> list[Mapping[str, Any]]:
    content = item.get("content") if isinstance(item, Mapping) else None
    return [part for part in content or () if isinstance(part, Mapping)]


def _check_quote(quote: str, shown: Sequence[str], of_what: str) -> None:
    words = _words(quote)
    if not words:
        raise Unusable(f"it gives no quote for {of_what}")
    if not any(words in text for text in shown):
        raise Unusable(f"the quote for {of_what} stands nowhere in what was shown: {_short(quote)}")


def _texts(exhibit: Exhibit) -> Iterator[str]:
    for turn in exhibit.turns:
        yield turn.query
        yield turn.answer
    for call in exhibit.evidence:
        yield call.name
        for value in (call.arguments, call.result, call.error):
            yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(text: str) -> str:
    """Words alone, so that quotation marks, case and line breaks decide nothing; ellipses end in it too."""
    return f" {' '.join(_NOT_A_WORD.split(text.casefold())).strip()} " if _NOT_A_WORD.sub("", text) else ""


def _listed(names: Any) -> str:
    return ", ".join(names) or "nothing"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
