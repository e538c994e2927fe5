"""What every request works with: what is held, the store behind it, the clock, and how many questions run at a time."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from evalfarm import __version__
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.base import digest
from evalfarm.store import Store
from evalfarm.web.access import Allowed, allowed
from evalfarm.web.asking import Ask
from evalfarm.web.holdings import Held, Holdings, Seen
from evalfarm.web.rows import chosen, open_rows

T = TypeVar("T")

#: Answers may be kept by who asked, and are asked about before they are shown again.
CACHED = "private, no-cache"


def _limiter() -> CapacityLimiter:
    # Two of each kind: a question takes memory, and an export of a million rows must not keep a page waiting.
    return CapacityLimiter(2)


@dataclass(frozen=True)
class Desk:
    """Made once for a server."""

    store: Store
    holdings: Holdings
    clock: Callable[[], float]  #: seconds since the epoch
    folder: Path  #: for files that live as long as a request
    exports: CapacityLimiter = field(default_factory=_limiter)
    pages: CapacityLimiter = field(default_factory=_limiter)

    @property
    def today(self) -> date:
        """The day, UTC."""
        return datetime.fromtimestamp(self.clock(), tz=UTC).date()

    def rows(self, seen: Seen, ask: Ask, what: Allowed) -> AbstractContextManager[Rows]:
        """The rows that a request asks for and may see."""
        return open_rows(seen, ask, what, today=self.today, folder=self.folder)


async def in_thread(limiter: CapacityLimiter, work: Callable[[], T]) -> T:
    """Do what blocks in a thread, when it is its turn. What is begun is let finish: it cleans up after itself."""
    return await to_thread.run_sync(work, limiter=limiter)


@dataclass(frozen=True, slots=True)
class Question:
    """One request, read: what is asked for, of what, and the tag of its answer."""

    ask: Ask
    what: Allowed
    seen: Seen
    sources: tuple[Held, ...]
    tag: str

    @property
    def named(self) -> tuple[Held, ...]:
        """The sources whose names may be told: of imports, which have no one suite, a scoped token is told nothing."""
        return tuple(held for held in self.sources if held.suite or not self.what.suites)

    @property
    def left_out(self) -> tuple[Held, ...]:
        """Finished sources whose conversations are in no answer yet, as far as they may be named."""
        waiting = set(self.seen.waiting)
        return tuple(held for held in self.named if held in waiting)


def question(desk: Desk, request: Request, ask: Ask) -> Question:
    """What a request asks, of what is held at this moment."""
    seen, what = desk.holdings.seen, allowed(request.scope)
    sources = chosen(seen, ask, what)
    parts = [
        __version__,
        request.url.path,
        sorted(request.query_params.multi_items()),
        list(what.suites),
        [(held.kind, held.stamp, held.scored, held.trouble) for held in sources],
        None if ask.days is None else desk.today.isoformat(),
    ]
    return Question(ask, what, seen, sources, f'W/"{digest(parts).removeprefix("sha256:")[:32]}"')


def unchanged(request: Request, asked: Question) -> Response | None:
    """304 where the asker has this answer already."""
    given = request.headers.get("if-none-match", "")
    tags = {tag.strip().removeprefix("W/") for tag in given.split(",")}
    if asked.tag.removeprefix("W/") in tags or given.strip() == "*":
        return Response(status_code=304, headers=headers(asked))
    return None


def headers(asked: Question) -> dict[str, str]:
    """Of every answer to a question."""
    told = {"ETag": asked.tag, "Cache-Control": CACHED, "Vary": "Authorization"}
    if asked.left_out:
        told["Evalfarm-Left-Out"] = json.dumps([held.name for held in asked.left_out])
    return told
