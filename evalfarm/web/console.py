"""The console's pages. Their numbers are rows of the datasets, and what is added up is added up from the same."""

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UnknownName
from evalfarm.reports.run import findings
from evalfarm.reports.run import page as report_page
from evalfarm.reports.run.pictures import pictures
from evalfarm.web import bundles, conversation_list, run_page, version_page, versions
from evalfarm.web.api import Api
from evalfarm.web.asking import Ask, one_of, read_ask
from evalfarm.web.conversation_page import shown
from evalfarm.web.datasets import DATASETS
from evalfarm.web.desk import Desk, Question, in_thread, question, unchanged
from evalfarm.web.desk import headers as headers_of
from evalfarm.web.exporting import SUFFIXES, Format
from evalfarm.web.pages import link, page, style
from evalfarm.web.refusals import not_found

T = TypeVar("T")

#: Of the report of a run, which has its style in itself.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class Console:
    """The endpoints."""

    def __init__(self, desk: Desk, api: Api) -> None:
        self._desk = desk
        self._api = api

    def router(self) -> Router:
        """Every page."""
        routes = [
            Route("/", self.runs),
            Route("/style.css", self.style),
            Route("/runs/{run}", self.run),
            Route("/runs/{run}/report", self.report),
            Route("/versions", self.plugins),
            Route("/versions/{plugin}", self.versions),
            Route("/conversations", self.conversations),
            Route("/conversations/{run}/{trial}", self.last_attempt),
            Route("/conversations/{run}/{trial}/{attempt}", self.conversation),
            Route("/conversations/{run}/{trial}/{attempt}/bundle.json", self.bundle),
            Route("/datasets/{file}", self.download),
        ]
        return Router(routes, redirect_slashes=False)

    async def style(self, _request: Request) -> Response:
        """The style sheet."""
        return Response(style(), media_type="text/css", headers={"Cache-Control": "private, max-age=300"})

    async def runs(self, request: Request) -> Response:
        """Every run, newest first."""
        asked = self._question(request, read_ask(request.query_params.multi_items()))
        found = await self._read(asked, lambda rows: run_page.read(rows, "runs", run_page.SHOWN_RUNS))
        grid = run_page.runs_grid(found)
        return page("runs.html.j2", grid=grid, ask=asked.ask, waiting=asked.left_out, most=run_page.SHOWN_RUNS)

    async def run(self, request: Request) -> Response:
        """One run."""
        name = request.path_params["run"]
        asked = self._question(request, Ask(run=(name,)))
        self._known_run(asked, name)

        def read(rows: Rows) -> tuple[list[run_page.Row], ...]:
            return tuple(run_page.read(rows, of, run_page.SHOWN_CASES) for of in ("runs", "cells", "cases"))

        (run, *_), cells, cases = await self._read(asked, read)
        summary = await in_thread(self._desk.pages, lambda: self._desk.store.get_summary(name))
        missed, passed = run_page.look_first(cases)
        return page(
            "run.html.j2",
            run=run,
            grid=run_page.cells_grid(name, cells),
            arm=run_page.arm,
            missed=missed,
            passed=passed,
            caveats=() if summary is None else findings.caveats(summary),
            pictures=() if summary is None else pictures(summary),
            waiting=asked.left_out,
        )

    async def report(self, request: Request) -> Response:
        """The report of a run, as `evalfarm report --html` writes it."""
        name = request.path_params["run"]
        asked = self._question(request, Ask(run=(name,)))
        self._known_run(asked, name)

        def render() -> str | None:
            summary: RunSummary | None = self._desk.store.get_summary(name)
            return None if summary is None else report_page.render(summary)

        text = await in_thread(self._desk.pages, render)
        if text is None:
            raise not_found(f"run {name!r} is not finished, so it has no report")
        return Response(text, media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})

    async def plugins(self, request: Request) -> Response:
        """Every plugin with conversations."""
        asked = self._question(request, Ask(source="all"))
        found = await self._read(asked, versions.plugins)
        return page("plugins.html.j2", plugins=found, waiting=asked.left_out)

    async def versions(self, request: Request) -> Response:
        """A plugin's versions, two of them held against each other."""
        items = request.query_params.multi_items()
        version, against = (one_of(items, name) for name in ("version", "against"))
        ask = read_ask([item for item in items if item[0] not in ("version", "against")])
        plugin = request.path_params["plugin"]
        asked = self._question(request, ask.model_copy(update={"plugin": (plugin,), "source": "all"}))
        compared = await self._read(asked, lambda rows: versions.compared(rows, plugin, version, against))
        return page(
            "versions.html.j2",
            found=compared,
            headlines=version_page.headlines(compared),
            findings=list(version_page.findings(compared)),
            attention=version_page.attention_rows(compared),
            grids=version_page.grids(compared),
            short=version_page.short,
            days=asked.ask.days,
            waiting=asked.left_out,
        )

    async def conversations(self, request: Request) -> Response:
        """Conversations, newest first."""
        items = request.query_params.multi_items()
        narrowed = conversation_list.read_narrowed(items)
        ask = read_ask([item for item in items if item[0] not in conversation_list.NARROWING])
        asked = self._question(request, ask.model_copy(update={"source": "all"}))
        listed = await self._read(asked, lambda rows: conversation_list.read(rows, narrowed))
        return page(
            "conversations.html.j2",
            ask=ask,
            narrowed=narrowed,
            listed=listed,
            grid=conversation_list.grid(listed),
            known=conversation_list.known(asked.named),
            steps=conversation_list.other_pages(ask, narrowed, listed.matched),
            download=link("datasets", "conversations.csv", **ask.model_dump(exclude={"source"}), source="all"),
            waiting=asked.left_out,
        )

    async def last_attempt(self, request: Request) -> Response:
        """A trial's last attempt, which is the one that counts where one does."""
        name = bundles.read_name(request.path_params["run"], request.path_params["trial"], "0")
        asked = self._question(request, Ask(run=(name.run,)))
        self._known_run(asked, name.run)
        attempts = await in_thread(self._desk.pages, lambda: self._desk.store.attempts_of(name.run, name.trial))
        if not attempts:
            raise not_found(f"trial {name.trial} of run {name.run!r} left no trace")
        return await self._conversation(request, name._replace(attempt=attempts[-1]))

    async def conversation(self, request: Request) -> Response:
        """One conversation."""
        return await self._conversation(request, _named(request))

    async def bundle(self, request: Request) -> Response:
        """One conversation as the API gives it."""
        asked = self._question(request, Ask(source="all"))
        found = await in_thread(self._desk.pages, lambda: self._api.find(asked, _named(request)))
        return Response(found.bundle.model_dump_json(), media_type="application/json", headers=headers_of(asked))

    async def download(self, request: Request) -> Response:
        """A dataset as the API gives it."""
        name, _, suffix = request.path_params["file"].partition(".")
        form: Format | None = next((form for form, end in SUFFIXES.items() if end == suffix), None)
        if form is None or name not in DATASETS:
            raise not_found(
                "there is no such file", f"{', '.join(DATASETS)}, ending in .csv, .json, .jsonl, .md or .parquet"
            )
        asked = self._question(request, read_ask(request.query_params.multi_items()))
        return unchanged(request, asked) or await self._api.file(asked, name, form)

    async def _conversation(self, request: Request, name: bundles.Named) -> Response:
        asked = self._question(request, Ask(source="all"))

        def find() -> tuple[bundles.Whole, tuple[int, ...]]:
            whole = self._api.find(asked, name)
            try:
                return whole, tuple(self._desk.store.attempts_of(name.run, name.trial))
            except UnknownName:  # it was imported, and its run is elsewhere
                return whole, ()

        whole, attempts = await in_thread(self._desk.pages, find)
        return page(
            "conversation.html.j2",
            name=name,
            facts=whole.bundle.facts,
            shown=shown(whole.bundle),
            labels=whole.result.labels if whole.result else (),
            attempts=attempts,
            is_run=any(held.name == name.run and held.kind == "run" for held in asked.sources),
        )

    def _known_run(self, asked: Question, name: str) -> None:
        if not any(held.name == name and held.kind == "run" for held in asked.sources):
            raise not_found(f"there is no run {name!r}", "the list of runs is under /")

    def _question(self, request: Request, ask: Ask) -> Question:
        return question(self._desk, request, ask)

    async def _read(self, asked: Question, read: Callable[[Rows], T]) -> T:
        def work() -> T:
            with self._desk.rows(asked.seen, asked.ask, asked.what) as rows:
                return read(rows)

        return await in_thread(self._desk.pages, work)


def _named(request: Request) -> bundles.Named:
    return bundles.read_name(*(request.path_params[part] for part in ("run", "trial", "attempt")))
