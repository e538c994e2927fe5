"""One flat table of trials, and the only door to DuckDB. docs/reference/rows.md describes its columns.

Every statistic of a summary is drawn from this table alone, so a run of ours and results from elsewhere are judged by
the same numbers. `foreign` fills it from a file, this module from a run's stored results.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from evalfarm.contracts.run import Plan
from evalfarm.errors import UsageError

T = TypeVar("T")
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

_RESULT = """{
  "trial": {"index": "BIGINT", "case": "VARCHAR", "repeat": "BIGINT",
            "arm": {"model": "VARCHAR", "harness": "VARCHAR", "variant": "VARCHAR"}},
  "attempt": "INTEGER", "outcome": "VARCHAR", "verdict": "VARCHAR",
  "labels": [{"grader": "VARCHAR", "value": "VARCHAR", "reasons": ["VARCHAR"]}],
  "failure": "VARCHAR", "tool_calls": "DOUBLE", "reasoning_tokens": "DOUBLE", "latency_s": "DOUBLE",
  "input_tokens": "DOUBLE", "cached_tokens": "DOUBLE", "output_tokens": "DOUBLE",
  "waited_s": "DOUBLE", "cost_usd": "DOUBLE", "all_attempts_usd": "DOUBLE",
  "request_latency_s": ["DOUBLE"]
}"""
"""What is read of a stored Result."""

_GRADES = """
CREATE TABLE grades AS
SELECT "case", model, harness, variant, label.grader AS grader,
    count(*) FILTER (label.value = 'PASS') AS passed, count(*) FILTER (label.value = 'FAIL') AS failed,
    count(*) FILTER (label.value = 'INCONCLUSIVE') AS inconclusive
FROM (
    SELECT r.trial."case" AS "case", r.trial.arm.model AS model, r.trial.arm.harness AS harness,
        r.trial.arm.variant AS variant, unnest(r.labels) AS label
    FROM results
) GROUP BY ALL
"""
"""What each grader said, counted by cell; of results of ours only."""

_TOKENS = """
CREATE TABLE tokens AS
SELECT r.trial.arm.model AS model, r.trial.arm.harness AS harness, r.trial.arm.variant AS variant,
    sum(greatest(coalesce(r.input_tokens, 0) - coalesce(r.cached_tokens, 0), 0)) AS input,
    sum(coalesce(r.cached_tokens, 0)) AS cached,
    sum(greatest(coalesce(r.output_tokens, 0) - coalesce(r.reasoning_tokens, 0), 0)) AS output,
    sum(coalesce(r.reasoning_tokens, 0)) AS reasoning
FROM results GROUP BY ALL
"""
"""Tokens by arm, each token once; of results of ours only."""

#: Results handed over in one statement: some megabytes.
_CHUNK = 5_000


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
        """The rows that `write` wrote. Raises UsageError where the file does not read."""
        rows = cls()
        rows.run("SET VARIABLE parquet = ?", [str(parquet)])
        rows.run("CREATE VIEW rows AS FROM read_parquet(getvariable('parquet'))")
        return rows

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

    def write(self, parquet: Path) -> None:
        """Write the table as one Parquet file, in the order of the index."""
        self.run('COPY (FROM rows ORDER BY "index") TO ? (FORMAT parquet, COMPRESSION zstd)', [str(parquet)])

    def _execute(self, sql: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, list(values))
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise UsageError(
                f"the rows cannot be read: {str(error).splitlines()[0]}", "give JSONL, CSV or Parquet"
            ) from error


def rows_of_run(plan: Plan, results: Iterable[str]) -> Rows:
    """Every trial of a plan as a row, from its stored results, one JSON document each; without one: `not_run`.

    Raises ValueError, naming the trial, for a second result of one trial and for a result that is no trial of this
    plan. That a trial's seed follows from the plan is not looked at: the plan's digest stands for it.
    """
    rows = Rows()
    rows.run("CREATE TABLE results AS SELECT json_transform('{}', ?) AS r LIMIT 0", [_RESULT])
    for chunk in _chunks(results):
        rows.run("INSERT INTO results SELECT json_transform(unnest(?::VARCHAR[]), ?)", [chunk, _RESULT])
    _lay_out(rows, plan)
    _refuse_strangers(rows, plan)
    rows.run(CREATE)
    rows.run(
        """
        INSERT INTO rows
        SELECT planned."index", p."case", p.family, planned."index" // ?, p.model, p.harness, p.variant,
            coalesce(r.verdict, 'not_run'), coalesce(r.attempt, 0), r.latency_s,
            coalesce(r.outcome = 'timed_out', false), r.waited_s, coalesce(r.request_latency_s, []),
            r.tool_calls, r.reasoning_tokens, r.cost_usd, r.all_attempts_usd, p.tags,
            CASE WHEN len(flatten([label.reasons for label in r.labels])) > 0
                 THEN flatten([label.reasons for label in r.labels])
                 WHEN r.failure <> '' THEN [r.failure] ELSE [] END
        FROM range(?) AS planned("index")
        JOIN places AS p ON planned."index" % ? = p.place
        LEFT JOIN results ON r.trial."index" = planned."index"
        """,
        [_width(plan), plan.size, _width(plan)],
    )
    rows.run(_GRADES)
    rows.run(_TOKENS)
    rows.run("DROP TABLE results")
    return rows


def _width(plan: Plan) -> int:
    """Trials in one repeat; repeats are outermost in a plan."""
    return plan.size // plan.repeats


def _lay_out(rows: Rows, plan: Plan) -> None:
    """The table `places`: which case and arm stand where in a repeat."""
    rows.run(
        "CREATE TABLE places (place BIGINT, model VARCHAR, harness VARCHAR, variant VARCHAR, "
        '"case" VARCHAR, family VARCHAR, tags MAP(VARCHAR, VARCHAR))'
    )
    cases = {case.id: case for case in plan.suite.cases}
    for chunk in _chunks(plan.trial(place) for place in range(_width(plan))):
        asked = [cases[trial.case] for trial in chunk]
        rows.run(
            "INSERT INTO places SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
            " unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::MAP(VARCHAR, VARCHAR)[])",
            [
                [trial.index for trial in chunk],
                *([getattr(trial.arm, name) for trial in chunk] for name in ("model", "harness", "variant")),
                [case.id for case in asked],
                [case.family for case in asked],
                [{"key": list(case.tags), "value": list(case.tags.values())} for case in asked],
            ],
        )


def _refuse_strangers(rows: Rows, plan: Plan) -> None:
    twice = rows.records('SELECT r.trial."index" FROM results GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1')
    if twice:
        raise ValueError(f"trial {twice[0][0]} of run {plan.run} has two results; a trial counts once")
    strangers = rows.records(
        """
        SELECT r.trial."index" FROM results LEFT JOIN places AS p ON r.trial."index" % ? = p.place
        WHERE r.trial."index" NOT BETWEEN 0 AND ? OR (
            r.trial."case", r.trial.repeat, r.trial.arm.model, r.trial.arm.harness, r.trial.arm.variant
        ) IS DISTINCT FROM (p."case", r.trial."index" // ?, p.model, p.harness, p.variant)
        ORDER BY ALL LIMIT 1
        """,
        [_width(plan), plan.size - 1, _width(plan)],
    )
    if strangers:
        raise ValueError(f"the result of trial {strangers[0][0]} belongs to another plan than that of run {plan.run}")


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk


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
