"""Conversations in object storage: the rows of a run's, and those that were brought from elsewhere.

runs/{run}/conversations.parquet             the rows of figures, the newest wins
imports/{name}/segments/{k:06d}.jsonl.zst    bundles, one a line, in order
imports/{name}/conversations.parquet         their rows of figures, the newest wins
imports/{name}/import.json                   Import, create-only, written last: without it there is no import
"""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from evalfarm.contracts.bundle import Bundle, Import
from evalfarm.errors import UsageError
from evalfarm.objects import Objects


class Conversations:
    """The keys of conversations in one store. Every method raises StoreUnavailable when the backend fails."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def put_rows(self, folder: str, parquet: bytes) -> None:
        """Keep the rows of a run (`runs/NAME`) or an import (`imports/NAME`) in place of earlier ones."""
        self._objects.write(f"{folder}/conversations.parquet", parquet, create=False)

    def rows(self, folder: str) -> bytes | None:
        """The rows as Parquet; None: the conversations were not scored yet."""
        return self._objects.read(f"{folder}/conversations.parquet")

    def are_scored(self, run: str) -> bool:
        """Whether the rows of a run are of all of it: those from before it was summed up need not be."""
        rows, summed = (self._objects.stamp(f"runs/{run}/{name}") for name in ("conversations.parquet", "summary.json"))
        return rows is not None and summed is not None and rows.written_at >= summed.written_at

    def put_segment(self, name: str, k: int, bundles: Sequence[Bundle]) -> None:
        """Keep the k-th stretch of an import that is under way; what an earlier, broken off try left is replaced."""
        lines = b"\n".join(bundle.model_dump_json().encode() for bundle in bundles)
        self._objects.write(f"imports/{name}/segments/{k:06d}.jsonl.zst", lines, create=False)

    def close_import(self, made: Import) -> None:
        """Say that an import is complete. Raises UsageError when there is one of this name already."""
        if not self._objects.write(f"imports/{made.name}/import.json", made.model_dump_json().encode()):
            raise UsageError(
                f"there is an import {made.name!r} already in {self._objects.url}", "choose another --name"
            )

    def get_import(self, name: str) -> Import | None:
        """What was imported under a name; None: nothing."""
        key = f"imports/{name}/import.json"
        data = self._objects.read(key) if name in self._objects.names("imports") else None
        try:
            return None if data is None else Import.model_validate_json(data)
        except ValidationError as error:
            raise self._objects.unreadable(key, f"is no Import: {error.errors()[0]['msg']}") from error

    def imports(self) -> list[Import]:
        """Every complete import, newest first."""
        found = (self.get_import(name) for name in self._objects.names("imports"))
        return sorted((one for one in found if one is not None), key=lambda one: one.created_at, reverse=True)

    def bundles(self, made: Import) -> Iterator[Bundle]:
        """What was imported, in order."""
        for k in range(made.segments):
            key = f"imports/{made.name}/segments/{k:06d}.jsonl.zst"
            for line in (self._objects.read(key) or b"").splitlines():
                try:
                    yield Bundle.model_validate_json(line)
                except ValidationError as error:
                    raise self._objects.unreadable(key, f"is no Bundle: {error.errors()[0]['msg']}") from error
