"""The page that lists conversations: newest first, cut down by filters, a hundred at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary.rows import Rows
from evalfarm.reports import numbers
from evalfarm.reports.run.findings import VERDICT_WORDS
from evalfarm.web.asking import Ask, one_of
from evalfarm.web.holdings import Held
from evalfarm.web.pages import Cell, Grid, link, to_conversation
from evalfarm.web.refusals import bad_query

SHOWN = 100
"""Conversations on one page."""
LAST_PAGE = 100
"""What is further down is found by filters: to sort a million rows up to there would take memory."""

_EXACT = ("case", "model", "harness", "variant")
NARROWING = (*_EXACT, "failed", "page")
"""The parameters of this page beside the filters that the datasets have too."""

_COLUMNS = (
    *("conversation", '"case"', "repeat", "model", "harness", "variant", "started_at", "counted", "verdict"),
    *("misses", "success", "turns", "plugin_calls", "failed_calls", "other_errors", "cost_usd", "outcome"),
)


class Narrowed(NamedTuple):
    """Which of the conversations that the filters leave, and which stretch of them."""

    case: str
    model: str
    harness: str
    variant: str
    failed: bool  #: only what shows a miss: what the graders failed; where nobody graded, what did not succeed
    page: int  #: counted from 1

    @property
    def given(self) -> dict[str, str]:
        """What is asked for beyond the datasets' filters, as parameters of a link; without the page."""
        exact = {name: getattr(self, name) for name in _EXACT}
        return {name: value for name, value in exact.items() if value} | ({"failed": "1"} if self.failed else {})


class Listed(NamedTuple):
    """What the page shows."""

    rows: tuple[dict[str, Any], ...]
    matched: int  #: how many fit in all


def read_narrowed(items: Sequence[tuple[str, str]]) -> Narrowed:
    """What is asked for beyond the datasets' filters. Raises Refusal for what cannot be."""
    page = one_of(items, "page") or "1"
    if not page.isascii() or not page.isdigit() or not 1 <= int(page[:9]) <= LAST_PAGE:
        raise bad_query(f"there is no page {page[:50]!r}", f"pages are 1 to {LAST_PAGE}; filters find what is beyond")
    case, model, harness, variant = (one_of(items, name) for name in _EXACT)
    return Narrowed(case, model, harness, variant, one_of(items, "failed") not in ("", "0"), int(page))


def read(rows: Rows, narrowed: Narrowed) -> Listed:
    """The conversations of one page, newest first."""
    exact = {f'"{name}" = ?': getattr(narrowed, name) for name in _EXACT if getattr(narrowed, name)}
    where = " AND ".join([*exact, *(["len(misses) > 0"] if narrowed.failed else [])]) or "true"
    ((matched,),) = rows.records(f"SELECT count(*) FROM conversations WHERE {where}", [*exact.values()])
    found = rows.records(
        f"SELECT {', '.join(_COLUMNS)} FROM conversations WHERE {where}"
        f" ORDER BY started_at DESC, conversation LIMIT {SHOWN} OFFSET ?",
        [*exact.values(), SHOWN * (narrowed.page - 1)],
    )
    names = [column.strip('"') for column in _COLUMNS]
    return Listed(tuple(dict(zip(names, row, strict=True)) for row in found), matched)


def known(sources: Sequence[Held]) -> dict[str, list[str]]:
    """What the fields of the form offer: the newest of the names that there are."""
    names: dict[str, list[str | None]] = {
        "suite": [held.suite for held in sources],
        "run": [held.name for held in sources],
        "label": [held.label for held in sources],
    }
    return {field: list(dict.fromkeys(filter(None, found)))[:SHOWN] for field, found in names.items()}


def grid(listed: Listed) -> Grid:
    """Them as a table."""
    rows = tuple(
        (
            Cell(row["case"], to_conversation(row["conversation"]), below=row["conversation"]),
            _verdict(row),
            Cell(str(ArmName(row["model"], row["harness"], row["variant"])), below=numbers.moment(row["started_at"])),
            Cell(f"{row['turns']:,}"),
            Cell(f"{row['plugin_calls']:,}"),
            _failing(row["failed_calls"] + row["other_errors"]),
            Cell(numbers.cost(row["cost_usd"])),
        )
        for row in listed.rows
    )
    heads = ("case", "verdict", "arm, start", "turns", "plugin calls", "failing calls", "cost")
    return Grid("conversations", "Newest first", heads, rows, words=3)


def other_pages(ask: Ask, narrowed: Narrowed, matched: int) -> tuple[tuple[str, str], ...]:
    """Where the page before and the one after are, as far as there are any: words and a link each."""
    given = {**ask.model_dump(exclude={"source"}), **narrowed.given}
    last = min(LAST_PAGE, -(-matched // SHOWN))
    steps = (("Newer", narrowed.page - 1), ("Older", narrowed.page + 1))
    return tuple((word, link("conversations", **given, page=to)) for word, to in steps if 1 <= to <= last)


def _failing(calls: int) -> Cell:
    return Cell(f"{calls:,}", tone="failed" if calls else "zero")


def _verdict(row: dict[str, Any]) -> Cell:
    """What the graders concluded; where nobody graded, whether it succeeded by the rules; below it what explains it."""
    verdict = row["verdict"]
    passed = "passed" if row["success"] else "failed"
    told = [row["misses"][0].replace("_", " ")] if row["misses"] else []
    told += [] if row["counted"] else ["does not count"]
    return Cell(
        VERDICT_WORDS[verdict] if verdict else "success" if row["success"] else "no success",
        tone=verdict or passed,
        below=", ".join(told),
    )
