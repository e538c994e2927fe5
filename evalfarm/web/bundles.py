"""Conversations, whole: by their name, and those of a run or a window of time."""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.origins import origin_of
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.verdict import Result
from evalfarm.conversations import Conversations
from evalfarm.store import Store
from evalfarm.web.refusals import bad_query, not_found

CAP = 500
"""Conversations in one answer, at most."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_INDEX = re.compile(r'"index": ?([0-9]+)')
"""The first in a stored result is its trial's."""


class Named(NamedTuple):
    """Which conversation: RUN/TRIAL/ATTEMPT."""

    run: str
    trial: int
    attempt: int

    def __str__(self) -> str:
        """As it is called everywhere."""
        return f"{self.run}/{self.trial}/{self.attempt}"


class Place(NamedTuple):
    """Where a conversation is kept."""

    source: str  #: a run or an import
    conversation: str


class Whole(NamedTuple):
    """One conversation, and its result where it is the counted attempt of a run of ours."""

    bundle: Bundle
    result: Result | None


def read_name(run: str, trial: str, attempt: str) -> Named:
    """The name in a path. Raises Refusal where it can be no conversation's."""
    if not _NUMBER.fullmatch(trial) or not _NUMBER.fullmatch(attempt):
        raise not_found("a conversation is called RUN/TRIAL/ATTEMPT, as in bls-20261201-160000/7/1")
    return Named(run, int(trial), int(attempt))


def read_moment(name: str, text: str) -> float | None:
    """Seconds since the epoch of an ISO date or time, UTC where it says nothing else. Raises Refusal."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise bad_query(f"{name} is no moment", f"as in {name}=2026-11-30 or {name}=2026-11-30T18:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def places(rows: Rows, begin: float | None, end: float | None, most: int = CAP) -> tuple[list[Place], int]:
    """The first conversations that began in a window, source by source; and how many there are in all."""
    window = (
        "FROM conversations WHERE started_at >= coalesce(?::DOUBLE, '-inf') AND started_at < coalesce(?::DOUBLE, 'inf')"
    )
    ((matched,),) = rows.records(f"SELECT count(*) {window}", [begin, end])
    found = rows.records(
        f"""
        SELECT source, conversation FROM (SELECT source, conversation, started_at {window}
        ORDER BY started_at, conversation LIMIT {most}) ORDER BY min(started_at) OVER (PARTITION BY source), source,
        started_at, conversation
        """,
        [begin, end],
    )
    return [Place(*row) for row in found], matched


def whole(store: Store, found: Iterable[Place], imports: Collection[str]) -> Iterator[Bundle]:
    """The conversations at some places, read as they are asked for: source after source, and of a run as it closed."""
    for source, same in groupby(found, key=lambda place: place.source):
        wanted = [place.conversation for place in same]
        if source in imports:
            yield from _imported(store, source, wanted)
        else:
            yield from _attempts(store, source, wanted)


def one(store: Store, rows: Rows, name: Named, runs: Collection[str], imports: Collection[str]) -> Whole:
    """One conversation. `rows` tell which import has it where no run does. Raises UnknownName and Refusal."""
    if name.run in runs:
        return _attempt(store, name, next(_results(store, name.run, {name.trial}), None))
    sources = rows.records("SELECT source FROM conversations WHERE conversation = ? ORDER BY source", [str(name)])
    for (source,) in sources:
        if source in imports:
            for bundle in _imported(store, source, [str(name)]):
                return Whole(bundle, None)
    raise not_found(f"there is no conversation {name}", "the dataset `conversations` lists what there is")


def _attempts(store: Store, run: str, wanted: Iterable[str]) -> Iterator[Bundle]:
    """The conversations of some trials in the order in which these were closed: no more than one is held."""
    left: dict[int, list[Named]] = {}
    for name in (read_name(*text.split("/")) for text in wanted):
        left.setdefault(name.trial, []).append(name)
    for result in _results(store, run, left.keys()):
        for name in left.pop(result.trial.index):
            yield _attempt(store, name, result).bundle
        if not left:
            return


def _attempt(store: Store, name: Named, result: Result | None) -> Whole:
    trace = store.get_trace(*name)
    plan = store.get_plan(name.run)
    trial = trace.trial
    origin = origin_of(plan, trial.case, trial.arm.variant, result, attempt=name.attempt)
    return Whole(bundle_of(trace, origin), result if origin.counted else None)


def _results(store: Store, run: str, wanted: Collection[int]) -> Iterator[Result]:
    """The results of some trials. Of the others not even the JSON is read: a run may have a million."""
    for document in store.result_documents(run):
        index = _INDEX.search(document)
        if index and int(index[1]) in wanted:
            yield Result.model_validate_json(document)


def _imported(store: Store, source: str, wanted: Collection[str]) -> Iterator[Bundle]:
    kept, left = Conversations(store.objects), set(wanted)
    made = kept.get_import(source)
    for bundle in () if made is None else kept.bundles(made):
        if bundle.facts.conversation in left:
            left.discard(bundle.facts.conversation)
            yield bundle
        if not left:
            return
