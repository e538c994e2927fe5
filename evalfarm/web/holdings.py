"""What the store holds, copied here as Parquet files, source by source, and looked at again now and then.

A source is a finished or open run, or an import. Questions are answered from these files alone, so that no request
reads a bucket's traces, and a request sees one state of things from its first row to its last.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Literal

from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.contracts.bundle import Import
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Manifest
from evalfarm.conversations import Conversations
from evalfarm.errors import EvalFarmError, InfrastructureError, UnknownName
from evalfarm.objects import Stamp
from evalfarm.store import Store
from evalfarm.web.sheets import SHEETS, sheets_of, write_sheet

Score = Callable[[str], None]
"""Scores the conversations of a run or an import, by its name, and keeps their rows in the store."""


@dataclass(frozen=True, slots=True)
class Held:
    """One source and its files here."""

    name: str
    kind: Literal["run", "import"]
    suite: str | None  #: None: an import, whose rows each have one
    label: str | None
    created_at: float
    prompts: str | None  #: digest of what was asked; None: not known
    stamp: str  #: another one as soon as anything here differs
    folder: Path
    finished: bool  #: to its end, or cancelled: nothing will be added to it
    scored: bool = False  #: its conversations are here
    trouble: str = ""  #: why they are not, where that is no matter of time

    def file(self, table: str) -> Path:
        """Its rows of one table."""
        return self.folder / f"{table}.parquet"


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is held at one time; never changed, only replaced."""

    sources: tuple[Held, ...]  #: newest first
    empty: Path  #: a folder with a file of no row for each table

    @property
    def waiting(self) -> tuple[Held, ...]:
        """Finished sources whose conversations are in no figure yet, or cannot be."""
        return tuple(held for held in self.sources if held.finished and not held.scored)


class Holdings:
    """The copies. `look` is for one thread at a time; `seen` may be read by any."""

    def __init__(self, store: Store, folder: Path, score: Score) -> None:
        """`folder`: an empty one of its own."""
        self._store = store
        self._kept = Conversations(store.objects)
        self._folder = folder
        self._score = score
        self._manifests: dict[str, Manifest] = {}
        self._rooms = 0
        self._replaced: set[Path] = set()
        empty = folder / "empty"
        empty.mkdir(parents=True)
        for table in SHEETS:
            write_sheet(table, [], empty / f"{table}.parquet")
        scorer = Scorer(ConversationRules(completed_chars=1))
        scorer.write(empty / "conversations.parquet")
        scorer.close()
        self.seen = Seen((), empty)

    def look(self) -> None:
        """Bring the copies up to date: what is new or has changed, first as it is, then scored where it was not.

        Raises StoreUnavailable; what was seen before stays.
        """
        before = {(held.kind, held.name): held for held in self.seen.sources}
        runs = (self._run(manifest, before.get(("run", manifest.run))) for manifest in self._runs())
        found = [held for held in runs if held is not None]
        found += [self._import(made, before.get(("import", made.name))) for made in self._kept.imports()]
        self._show(found)
        for at, held in enumerate(found):
            if held.finished and not held.scored and not held.trouble:
                found[at] = self._scored(held)
                self._show(found)
        # What was replaced goes a look later: a request at work may still read it.
        for folder in self._replaced:
            rmtree(folder, ignore_errors=True)
        self._replaced = {held.folder for held in before.values()} - {held.folder for held in found}

    def _show(self, found: list[Held]) -> None:
        self.seen = replace(
            self.seen, sources=tuple(sorted(found, key=lambda held: (-held.created_at, held.kind, held.name)))
        )

    def _runs(self) -> list[Manifest]:
        """Manifests are written once, so each is read once."""
        names = self._store.objects.names("runs")
        if any(name not in self._manifests for name in names):
            self._manifests = {manifest.run: manifest for manifest in self._store.runs()}
        # A run may have been deleted meanwhile, as `evalfarm prune` does.
        return [self._manifests[name] for name in names if name in self._manifests]

    def _run(self, manifest: Manifest, before: Held | None) -> Held | None:
        """A run as it is now; None: somebody is deleting it."""
        run = manifest.run
        summed = self._store.objects.stamp(f"runs/{run}/summary.json")
        rows = self._rows_stamp(f"runs/{run}", summed)
        stamp = f"{run} {summed and summed.tag} {rows and rows.tag}"
        if before is not None and before.stamp == stamp:
            return before
        try:
            plan, summary = self._store.get_plan(run), self._store.get_summary(run) if summed else None
        except UnknownName:
            return None
        folder = self._room()
        day = datetime.fromtimestamp(manifest.created_at, tz=UTC).strftime("%Y-%m-%d")
        for table, documents in sheets_of(manifest, plan, summary, day).items():
            write_sheet(table, documents, folder / f"{table}.parquet")
        return Held(
            name=run,
            kind="run",
            suite=manifest.suite,
            label=manifest.label,
            created_at=manifest.created_at,
            prompts=manifest.digests.get("prompts"),
            stamp=stamp,
            folder=folder,
            finished=summary is not None,
            scored=rows is not None and self._copy(f"runs/{run}", folder),
        )

    def _import(self, made: Import, before: Held | None) -> Held:
        rows = self._rows_stamp(f"imports/{made.name}", None)
        stamp = f"imports/{made.name} {made.created_at} {rows and rows.tag}"
        if before is not None and before.stamp == stamp:
            return before
        folder = self._room()
        return Held(
            name=made.name,
            kind="import",
            suite=None,
            label=None,
            created_at=made.created_at,
            prompts=None,
            stamp=stamp,
            folder=folder,
            finished=True,
            scored=rows is not None and self._copy(f"imports/{made.name}", folder),
        )

    def _rows_stamp(self, folder: str, summed: Stamp | None) -> Stamp | None:
        """Rows from before a run's end are not all of it: they are made again."""
        if folder.startswith("runs/") and summed is None:
            return None
        rows = self._store.objects.stamp(f"{folder}/conversations.parquet")
        return None if rows and summed and rows.written_at < summed.written_at else rows

    def _scored(self, held: Held) -> Held:
        try:
            self._score(held.name)
        except InfrastructureError:
            raise
        except EvalFarmError as error:
            return replace(held, trouble=error.message)
        folder = f"{held.kind}s/{held.name}"
        rows = self._store.objects.stamp(f"{folder}/conversations.parquet")
        if rows is None or not self._copy(folder, held.folder):
            return replace(held, trouble="its conversations were scored, and no row of them was kept")
        return replace(held, scored=True, stamp=held.stamp.rpartition(" ")[0] + f" {rows.tag}")

    def _copy(self, folder: str, to: Path) -> bool:
        return self._store.objects.save(f"{folder}/conversations.parquet", to / "conversations.parquet")

    def _room(self) -> Path:
        self._rooms += 1
        folder = self._folder / f"{self._rooms:06d}"
        folder.mkdir()
        return folder
