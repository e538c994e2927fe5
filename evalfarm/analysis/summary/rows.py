"""One flat table of trials, and the only door to DuckDB. docs/reference/rows.md describes its columns.

Every statistic of a summary is drawn from this table alone, so a run of ours and results from elsewhere are judged by
the same numbers. `own` fills it from a run's stored results, `foreign` from a file.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from evalfarm.errors import UsageError

Columns = dict[str, NDArray[Any]]

SCHEMA = {
    "index": "BIGINT",
    "case": "VARCHAR",
    "family": "VARCHAR",
    "repeat": "BIGINT",
    "model": "VARCHAR",
    "harness": "VARCHAR",
    "variant": "VARCHAR",
    "verdict": "VARCHAR",
    "attempt": "INTEGER",
    "latency_s": "DOUBLE",
    "timed_out": "BOOLEAN",
    "waited_s": "DOUBLE",
    "request_latency_s": "DOUBLE[]",
    "tool_calls": "DOUBLE",
    "reasoning_tokens": "DOUBLE",
    "cost_usd": "DOUBLE",
    "all_attempts_usd": "DOUBLE",
    "tags": "MAP(VARCHAR, VARCHAR)",
    "reasons": "VARCHAR[]",
}
"""The table's columns and their types in DuckDB."""

CREATE = "CREATE TABLE rows (" + ", ".join(f'"{name}" {kind}' for name, kind in SCHEMA.items()) + ")"


class Rows:
    """The table `rows`, open for questions in SQL. Not safe in several threads at once."""

    def __init__(self, notes: Sequence[str] = (), *, threads: int | None = None) -> None:
        """Open without a table; whoever fills it creates it. `notes`: what a reader must know of the rows.

        `threads` at most are at work on a question; None: one a core.
        """
        # Nothing is fetched behind the user's back: what DuckDB needs here is built into it.
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._connection = duckdb.connect(config=settings if threads is None else settings | {"threads": threads})
        self.notes = tuple(notes)

    @classmethod
    def stored(cls, parquet: Path) -> Self:
        """The rows that `own.rows_of_run` wrote. Raises UsageError where the file does not read."""
        rows = cls()
        rows.open(parquet)
        return rows

    def open(self, parquet: Path) -> None:
        """Have a file's rows for the table, which is read with every question. Raises UsageError as `stored` does."""
        self.run("SET VARIABLE parquet = ?", [str(parquet)])
        self.run("CREATE VIEW rows AS FROM read_parquet(getvariable('parquet'))")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def run(self, sql: str, values: Sequence[object] = ()) -> None:
        """Carry out a statement. Raises UsageError, in DuckDB's words, where what it reads cannot be read."""
        self._execute(sql, values)

    def columns(self, sql: str, values: Sequence[object] = ()) -> Columns:
        """The answer to a question as one array per column; a number that is NULL is NaN, a text None."""
        found = self._execute(sql, values).fetchnumpy()
        return {name: _plain(column) for name, column in found.items()}

    def records(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to a question, row by row."""
        return self._execute(sql, values).fetchall()

    def _execute(self, sql: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, list(values))
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise UsageError(
                f"the rows cannot be read: {str(error).splitlines()[0]}", "give JSONL, CSV or Parquet"
            ) from error


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """An array without a mask: what was NULL is NaN or None."""
    if not isinstance(column, np.ma.MaskedArray):
        return column
    plain: NDArray[Any] = column.data
    missing = np.ma.getmaskarray(column)
    if not missing.any():
        return plain
    if plain.dtype != object:
        plain = plain.astype(np.float64)
    plain[missing] = None if plain.dtype == object else np.nan
    return plain
