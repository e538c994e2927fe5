"""The console's look: its templates, everything in them escaped, and what a table on a page is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from evalfarm.reports import numbers
from evalfarm.reports.run.page import MARKS
from evalfarm.reports.safe_text import cut, harmless
from evalfarm.web.refusals import Told

POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
"""No script, no frame, nothing from elsewhere: what a trace holds stays text even if it were not escaped."""
LONGEST = 4_000
"""Characters of one value on a page; the bundle has it whole."""


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    link: str = ""
    tone: str = ""  #: a class of the style: `failed`, `zero`
    below: str = ""  #: a second, quieter line


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its first `words` columns are words, the rest figures."""

    anchor: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1
    note: str = ""
    download: str = ""  #: where the rows that it is made of can be had


def link(*parts: str | int, **query: str | Sequence[str] | int | None) -> str:
    """A path of the console, each part escaped; parameters without a value are left out."""
    path = "/" + "/".join(quote(str(part), safe="~") for part in parts)
    given = {name: value for name, value in query.items() if value not in (None, "", ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def to_conversation(name: str) -> str:
    """Where a conversation is shown, by its name RUN/TRIAL/ATTEMPT."""
    return link("conversations", *name.split("/"))


def page(template: str, status: int = 200, headers: Mapping[str, str] | None = None, **context: object) -> HTMLResponse:
    """A page. Every text in it is escaped, and what could steer a reader's eye is written out."""
    text = environment().get_template(template).render(context)
    # Half of a surrogate pair, which no encoding has, is written out by `plain`; a page must not depend on it.
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers)


def refused(told: Told) -> Response:
    """A refusal as a page."""
    return page("refused.html.j2", told.status, told.headers, told=told)


@cache
def style() -> str:
    """The style sheet: that of a run's report, and what only the console has."""
    return environment().get_template("console.css.j2").render(repeats=5)


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader("evalfarm.web"), PackageLoader("evalfarm.reports.run", ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        plain=harmless,
        shown=lambda text: harmless(cut(text, LONGEST)),
        count=lambda value: f"{value:,}",
        moment=numbers.moment,
        seconds=numbers.seconds,
        tokens=numbers.tokens,
    )
    made.globals.update(marks=MARKS, zip=zip, link=link, to_conversation=to_conversation)
    return made
