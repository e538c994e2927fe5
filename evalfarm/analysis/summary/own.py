"""The rows of a run of ours: every trial of its plan, from its stored results.

A run has up to a million of them. So each chunk of results is read, counted and forgotten, what is kept of one is
narrow, a single thread is at work, and the whole rows go straight to a Parquet file in small groups. DuckDB would hold
as much again for every thread, and 122,880 rows before it writes the first.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from evalfarm.analysis.summary.rows import SCHEMA, Rows
from evalfarm.contracts.run import Plan

T = TypeVar("T")

#: Results handed over in one statement: a segment's, some 700 kB of text.
_CHUNK = 1_000

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

_RESULTS = "CREATE OR REPLACE TEMP TABLE results AS SELECT json_transform(unnest(?::VARCHAR[]), ?) AS r"

_OF_PLACE = ("case", "family", "model", "harness", "variant", "tags")
"""The columns that follow from a trial's place in its repeat. They are most of a row, and the same in every repeat."""

_TOLD = {name: kind for name, kind in SCHEMA.items() if name not in (*_OF_PLACE, "repeat")}
"""The columns that a result tells."""

_TABLES = {
    "places": {"place": SCHEMA["index"], **{name: SCHEMA[name] for name in _OF_PLACE}},
    "told": _TOLD,
    "graded": {
        "place": "BIGINT",
        "grader": "VARCHAR",
        "passed": "BIGINT",
        "failed": "BIGINT",
        "inconclusive": "BIGINT",
    },
    "used": {"place": "BIGINT", "input": "DOUBLE", "cached": "DOUBLE", "output": "DOUBLE", "reasoning": "DOUBLE"},
}

_KEPT = {
    "told": """
        SELECT r.trial."index" AS "index", r.verdict, r.attempt, r.latency_s, r.outcome = 'timed_out' AS timed_out,
            r.waited_s, coalesce(r.request_latency_s, []) AS request_latency_s, r.tool_calls, r.reasoning_tokens,
            r.cost_usd, r.all_attempts_usd,
            CASE WHEN len(flatten([label.reasons for label in r.labels])) > 0
                 THEN flatten([label.reasons for label in r.labels])
                 WHEN r.failure <> '' THEN [r.failure] ELSE [] END AS reasons
        FROM results
    """,
    "graded": """
        SELECT place, label.grader AS grader, count(*) FILTER (label.value = 'PASS') AS passed,
            count(*) FILTER (label.value = 'FAIL') AS failed,
            count(*) FILTER (label.value = 'INCONCLUSIVE') AS inconclusive
        FROM (SELECT r.trial."index" % getvariable('width') AS place, unnest(r.labels) AS label FROM results)
        GROUP BY ALL
    """,
    "used": """
        SELECT r.trial."index" % getvariable('width') AS place,
            sum(greatest(coalesce(r.input_tokens, 0) - coalesce(r.cached_tokens, 0), 0)) AS input,
            sum(coalesce(r.cached_tokens, 0)) AS cached,
            sum(greatest(coalesce(r.output_tokens, 0) - coalesce(r.reasoning_tokens, 0), 0)) AS output,
            sum(coalesce(r.reasoning_tokens, 0)) AS reasoning
        FROM results GROUP BY ALL
    """,
}
"""What is kept of a chunk, by table."""

_STRANGER = """
SELECT r.trial."index" FROM results LEFT JOIN places AS p ON r.trial."index" % getvariable('width') = p.place
WHERE r.trial."index" NOT BETWEEN 0 AND getvariable('size') - 1 OR (
    r.trial."case", r.trial.repeat, r.trial.arm.model, r.trial.arm.harness, r.trial.arm.variant
) IS DISTINCT FROM (p."case", r.trial."index" // getvariable('width'), p.model, p.harness, p.variant)
ORDER BY ALL LIMIT 1
"""
_TWICE = 'SELECT "index" FROM told GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1'

_NOT_RUN = """
INSERT INTO told BY NAME
SELECT "index", 'not_run' AS verdict, 0 AS attempt, false AS timed_out, [] AS request_latency_s, [] AS reasons
FROM range(getvariable('size')) AS planned("index") ANTI JOIN told USING ("index")
"""

_WHOLE = """
COPY (
    SELECT "index", "case", family, "index" // getvariable('width') AS repeat, model, harness, variant, verdict,
        attempt, latency_s, timed_out, waited_s, request_latency_s, tool_calls, reasoning_tokens, cost_usd,
        all_attempts_usd, tags, reasons
    FROM (FROM told ORDER BY "index") AS told
    LEFT JOIN places ON told."index" % getvariable('width') = places.place
) TO ? (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384)
"""
"""The narrow rows are sorted, and made whole as they are written, so many at a time."""

_BY_CELL = """
CREATE TABLE grades AS
SELECT "case", model, harness, variant, grader, sum(passed)::BIGINT AS passed, sum(failed)::BIGINT AS failed,
    sum(inconclusive)::BIGINT AS inconclusive
FROM graded JOIN places USING (place) GROUP BY ALL
"""
_BY_ARM = """
CREATE TABLE tokens AS
SELECT model, harness, variant, sum(input) AS input, sum(cached) AS cached, sum(output) AS output,
    sum(reasoning) AS reasoning
FROM used JOIN places USING (place) GROUP BY ALL
"""


def rows_of_run(plan: Plan, results: Iterable[str], parquet: Path) -> Rows:
    """Write every trial of a plan as a row of a Parquet file, in the order of the index, and open that file.

    `results` are stored results, one JSON document each; a trial without one is `not_run`. Beside the rows stand the
    tables `grades`, what each grader said, counted by cell, and `tokens` of each arm, each token once. The file is read
    with every question.
    Raises ValueError, naming the trial, for a second result of one trial and for a result that is no trial of this
    plan. That a trial's seed follows from the plan is not looked at: the plan's digest stands for it.
    """
    rows = Rows(threads=1)
    for name, columns in _TABLES.items():
        rows.run(f"CREATE TABLE {name} (" + ", ".join(f'"{column}" {kind}' for column, kind in columns.items()) + ")")
    rows.run("SET VARIABLE width = ?", [_width(plan)])
    rows.run("SET VARIABLE size = ?", [plan.size])
    _lay_out(rows, plan)
    for chunk in _chunks(results):
        _keep(rows, plan, chunk)
    if twice := rows.records(_TWICE):
        raise ValueError(f"trial {twice[0][0]} of run {plan.run} has two results; a trial counts once")
    rows.run(_NOT_RUN)
    # So that the sorted side of the join stays the one that is gone through, and its order that of the file.
    rows.run("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    rows.run(_WHOLE, [str(parquet)])
    rows.run("RESET disabled_optimizers")
    rows.run(_BY_CELL)
    rows.run(_BY_ARM)
    for name in ("results", *_TABLES):
        rows.run(f"DROP TABLE IF EXISTS {name}")
    rows.open(parquet)
    return rows


def _width(plan: Plan) -> int:
    """Trials in one repeat; repeats are outermost in a plan."""
    return plan.size // plan.repeats


def _lay_out(rows: Rows, plan: Plan) -> None:
    """The table `places`: which case and arm stand where in a repeat."""
    cases = {case.id: case for case in plan.suite.cases}
    for chunk in _chunks(plan.trial(place) for place in range(_width(plan))):
        asked = [cases[trial.case] for trial in chunk]
        rows.run(
            "INSERT INTO places SELECT " + ", ".join(f"unnest(?::{kind}[])" for kind in _TABLES["places"].values()),
            [
                [trial.index for trial in chunk],
                [case.id for case in asked],
                [case.family for case in asked],
                *([getattr(trial.arm, name) for trial in chunk] for name in ("model", "harness", "variant")),
                [{"key": list(case.tags), "value": list(case.tags.values())} for case in asked],
            ],
        )


def _keep(rows: Rows, plan: Plan, chunk: list[str]) -> None:
    """Take what rows are made of from some results."""
    rows.run(_RESULTS, [chunk, _RESULT])
    if strangers := rows.records(_STRANGER):
        raise ValueError(f"the result of trial {strangers[0][0]} belongs to another plan than that of run {plan.run}")
    for name, kept in _KEPT.items():
        rows.run(f"INSERT INTO {name} BY NAME {kept}")


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(items)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk
