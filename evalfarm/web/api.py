"""The API under /api/v1: datasets as files, conversations as bundles. GET only; `openapi.py` describes it."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import mkstemp
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from evalfarm.reports.safe_text import harmless
from evalfarm.web import bundles, exporting
from evalfarm.web.asking import Ask, one_of, read_ask
from evalfarm.web.datasets import ABOUT, DATASETS, OF_RUNS
from evalfarm.web.desk import Desk, Question, headers, in_thread, question, unchanged
from evalfarm.web.exporting import FORMATS, MEDIA_TYPES, SUFFIXES, Format
from evalfarm.web.openapi import document
from evalfarm.web.refusals import bad_query, not_found


class _File(NamedTuple):
    path: Path
    size: int


class Api:
    """The endpoints."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def router(self) -> Router:
        """Every path. A slash more at its end is another path, and there is nothing."""
        routes = [
            Route("/openapi.json", self.openapi),
            Route("/datasets", self.datasets),
            Route("/datasets/{name}", self.dataset),
            Route("/datasets/{name}/preview", self.preview),
            Route("/bundles", self.many),
            Route("/bundles/preview", self.many_preview),
            Route("/bundles/{run}/{trial}/{attempt}", self.single),
        ]
        return Router(routes, redirect_slashes=False)

    async def openapi(self, _request: Request) -> Response:
        """The description of all this."""
        return JSONResponse(document())

    async def datasets(self, request: Request) -> Response:
        """Which datasets there are."""
        read_ask(_items(request))
        return JSONResponse({"datasets": [{"name": name, "about": about} for name, about in ABOUT.items()]})

    async def dataset(self, request: Request) -> Response:
        """A dataset as a file."""
        name, form = _dataset(request), one_of(_items(request), "format", "csv")
        if form not in FORMATS:
            raise bad_query(f"there is no format {form[:50]!r}", f"there are {', '.join(FORMATS)}")
        asked = self._question(request, read_ask(_items(request), ("format",)))
        return unchanged(request, asked) or await self.file(asked, name, form)

    async def file(self, asked: Question, name: str, form: Format) -> Response:
        """A dataset as a file; the console gives the same one."""
        made = await in_thread(self._desk.exports, lambda: self._write(asked, name, form))
        told = headers(asked) | {
            "Content-Length": str(made.size),
            "Content-Disposition": f'attachment; filename="{name}.{SUFFIXES[form]}"',
        }
        return StreamingResponse(exporting.pieces(made.path), headers=told, media_type=MEDIA_TYPES[form])

    async def preview(self, request: Request) -> Response:
        """How many rows a dataset has."""
        name = _dataset(request)
        asked = self._question(request, read_ask(_items(request), ("format",)))
        found = unchanged(request, asked)
        if found is not None:
            return found

        def count() -> int:
            with self._desk.rows(asked.seen, asked.ask, asked.what) as rows:
                return exporting.count(rows, name)

        told: dict[str, Any] = {"dataset": name, "rows": await in_thread(self._desk.pages, count)}
        if name not in OF_RUNS:
            told["left_out"] = [{"source": held.name, "why": _why(held.trouble)} for held in asked.left_out]
        return JSONResponse(told, headers=headers(asked))

    async def many(self, request: Request) -> Response:
        """Conversations, one a line."""
        asked = self._question(request, read_ask(_items(request), ("from", "to")))
        if (found := unchanged(request, asked)) is not None:
            return found
        places, matched = await self._places(request, asked)
        imports = [held.name for held in asked.sources if held.kind == "import"]

        def lines() -> Iterator[bytes]:
            for bundle in bundles.whole(self._desk.store, places, imports):
                yield bundle.model_dump_json().encode() + b"\n"

        told = {"Evalfarm-Cap": str(bundles.CAP), "Evalfarm-Matched": str(matched)}
        told["Evalfarm-Given"] = str(len(places))
        return StreamingResponse(lines(), headers=headers(asked) | told, media_type=MEDIA_TYPES["jsonl"])

    async def many_preview(self, request: Request) -> Response:
        """How many conversations there are, and how many of them one answer gives."""
        asked = self._question(request, read_ask(_items(request), ("from", "to")))
        if (found := unchanged(request, asked)) is not None:
            return found
        places, matched = await self._places(request, asked)
        left = [{"source": held.name, "why": _why(held.trouble)} for held in asked.left_out]
        told = {"conversations": matched, "given": len(places), "cap": bundles.CAP, "left_out": left}
        return JSONResponse(told, headers=headers(asked))

    async def single(self, request: Request) -> Response:
        """One conversation."""
        form = one_of(_items(request), "format", "json")
        if form not in ("json", "markdown"):
            raise bad_query(f"there is no format {form[:50]!r} of a conversation", "there are json, markdown")
        read_ask(_items(request), ("format",))
        asked = self._question(request, Ask(source="all"))
        name = bundles.read_name(*(request.path_params[part] for part in ("run", "trial", "attempt")))
        if (found := unchanged(request, asked)) is not None:
            return found
        bundle = (await in_thread(self._desk.pages, lambda: self.find(asked, name))).bundle
        if form == "markdown":
            return Response(harmless(bundle.transcript), headers=headers(asked), media_type=MEDIA_TYPES["markdown"])
        return Response(bundle.model_dump_json(), headers=headers(asked), media_type=MEDIA_TYPES["json"])

    def find(self, asked: Question, name: bundles.Named) -> bundles.Whole:
        """One conversation that may be seen. Blocks."""
        runs = [held.name for held in asked.sources if held.kind == "run"]
        imports = [held.name for held in asked.sources if held.kind == "import"]
        with self._desk.rows(asked.seen, asked.ask, asked.what) as rows:
            return bundles.one(self._desk.store, rows, name, runs, imports)

    def _question(self, request: Request, ask: Ask) -> Question:
        return question(self._desk, request, ask)

    async def _places(self, request: Request, asked: Question) -> tuple[list[bundles.Place], int]:
        begin, end = (bundles.read_moment(name, one_of(_items(request), name)) for name in ("from", "to"))

        def look() -> tuple[list[bundles.Place], int]:
            with self._desk.rows(asked.seen, asked.ask, asked.what) as rows:
                return bundles.places(rows, begin, end)

        return await in_thread(self._desk.pages, look)

    def _write(self, asked: Question, name: str, form: Format) -> _File:
        path = Path(mkstemp(dir=self._desk.folder, suffix=f".{form}")[1])
        with self._desk.rows(asked.seen, asked.ask, asked.what) as rows:
            exporting.write(rows, name, form, path)
        return _File(path, path.stat().st_size)


def _items(request: Request) -> list[tuple[str, str]]:
    return request.query_params.multi_items()


def _dataset(request: Request) -> str:
    name: str = request.path_params["name"]
    if name not in DATASETS:
        raise not_found(f"there is no dataset {name[:50]!r}", f"there are {', '.join(DATASETS)}")
    return name


def _why(trouble: str) -> str:
    return trouble or "its conversations are not scored yet; ask again in a moment"
