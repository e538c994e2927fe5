"""A million rows to the whole summary, against a process that asks DuckDB for the same tables and does nothing else.

Both are whole processes, interpreter and imports included. Prints the medians of their wall time, CPU time and peak
memory, and the ratios. `python bench/aggregate_rows.py [PAIRS]`
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import duckdb

from evalfarm.analysis.summary import queries
from evalfarm.contracts.verdict import SHOWN_REASONS, SHOWN_REPEATS

CASES, REPEATS, ARMS = 108, 3_087, 3

_MADE = """
COPY (
    SELECT i AS "index", printf('case-%03d', i // 3 % 108) AS "case", NULL::VARCHAR AS family, i // 324 AS repeat,
        printf('model-%d', i % 3) AS model, 'loop' AS harness, 'plain' AS variant,
        CASE WHEN hash(i) % 1000 < 3 THEN 'infra_failed' WHEN hash(i, 1) % 100 < 60 + i // 3 % 40 THEN 'passed'
             ELSE 'failed' END AS verdict,
        1 + (hash(i, 2) % 50 = 0)::INTEGER AS attempt,
        exp(hash(i, 3) % 1000 / 300.0 + i // 3 % 7) AS latency_s, hash(i, 4) % 200 = 0 AS timed_out, 0.0 AS waited_s,
        [exp(hash(i, 5) % 1000 / 400.0), exp(hash(i, 6) % 1000 / 400.0)] AS request_latency_s,
        (2 + hash(i, 7) % 3)::DOUBLE AS tool_calls, (hash(i, 8) % 4000)::DOUBLE AS reasoning_tokens, 0.002 AS cost_usd,
        0.003 AS all_attempts_usd,
        MAP {'mechanism': printf('m%d', i // 3 % 4), 'expected_type': printf('e%d', i // 3 % 3)} AS tags,
        CASE WHEN hash(i, 1) % 100 < 60 + i // 3 % 40 THEN []::VARCHAR[]
             ELSE [printf('reason %d', hash(i, 9) % 5)] END AS reasons
    FROM range(?) AS t(i)
) TO ? (FORMAT parquet, COMPRESSION zstd)
"""

_BARE = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET VARIABLE parquet = ?", [sys.argv[1]])
connection.execute("CREATE VIEW rows AS FROM read_parquet(getvariable('parquet'))")
for statement in sys.argv[2:]:
    connection.execute(statement).fetchnumpy()
"""

_QUANTILES = """
SELECT {key}, count(*), quantile_disc(latency_s, [0.5, 0.95]), sum(cost_usd),
    sum(tool_calls), sum(reasoning_tokens) FROM decided GROUP BY ALL"""
_REQUESTS = """
SELECT {key}, count(*), quantile_disc(value, [0.5, 0.95])
FROM (SELECT *, unnest(request_latency_s) AS value FROM decided) GROUP BY ALL"""
_KEYS = tuple(f"model, harness, variant{tag}" for tag in ("", ", tags['mechanism']", ", tags['expected_type']"))

_FULL = """
import sys
from pathlib import Path
from evalfarm.analysis.summary.aggregate import summarize_rows
from evalfarm.analysis.summary.rows import Rows
with Rows.stored(Path(sys.argv[1])) as rows:
    summary = summarize_rows(rows, "bench")
assert summary.planned == int(sys.argv[2])
"""


class Taken(NamedTuple):
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def taken(*argv: str) -> Taken:
    begun = time.monotonic()
    child = os.posix_spawn(sys.executable, [sys.executable, *argv], dict(os.environ))
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"a measured process ended with {os.waitstatus_to_exitcode(status)}")
    return Taken(time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    asked = [
        queries.CELLS,
        queries.TRIALS,
        queries.DECIDED,
        "FROM cells",
        *(table.format(key=key) for table in (_QUANTILES, _REQUESTS) for key in _KEYS),
        "SELECT model, harness, variant, repeat, count(*), count_if(verdict = 'passed') FROM decided GROUP BY ALL",
        queries.ATTEMPTS,
        queries.REASONS.replace("?", str(SHOWN_REASONS)),
        queries.SHOWN.replace("?", str(SHOWN_REPEATS)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        parquet, size = str(Path(folder, "rows.parquet")), CASES * REPEATS * ARMS
        with duckdb.connect() as connection:
            connection.execute(_MADE, [size, parquet])
        runs = [(taken("-c", _BARE, parquet, *asked), taken("-c", _FULL, parquet, str(size))) for _ in range(1 + pairs)]
    bare, full = (Taken(*map(statistics.median, zip(*side[1:], strict=True))) for side in zip(*runs, strict=True))
    print(f"{size:,} rows = {CASES} cases x {REPEATS:,} repeats x {ARMS} arms; medians of {pairs}")
    print(f"{'':22}{'wall s':>8}{'CPU s':>8}{'peak MiB':>10}")
    for name, side in (("bare DuckDB queries", bare), ("the whole summary", full)):
        print(f"{name:22}{side.wall_s:8.2f}{side.cpu_s:8.2f}{side.peak_mib:10.0f}")
    print(f"{'ratio':22}{full.wall_s / bare.wall_s:8.2f}{full.cpu_s / bare.cpu_s:8.2f}")


if __name__ == "__main__":
    main()
