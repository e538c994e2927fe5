from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.analysis.summary.aggregate import summarize, summarize_rows
from evalfarm.analysis.summary.rows import SCHEMA, Rows, rows_of_run
from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.verdict import Result
from evalfarm.errors import UsageError


def documents(results: list[Result]) -> list[str]:
    return [result.model_dump_json() for result in results]


def test_a_run_is_told_trial_by_trial(
    make_plan: Callable[..., Plan], make_result: Callable[..., Result], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=3, families=("f",))
    figures: dict[str, Any] = {
        "attempt": 2,
        "latency_s": 1.5,
        "waited_s": 0.5,
        "request_latency_s": (0.25, 1.0),
        "tool_calls": 2,
        "reasoning_tokens": 9,
        "cost_usd": 0.5,
        "all_attempts_usd": 0.75,
    }
    judged = make_result(plan, 0, "failed", "first", "second", **figures).model_copy(update={"outcome": "timed_out"})
    lost = make_result(plan, 2, "infra_failed").model_copy(update={"labels": (), "failure": "the worker was lost"})
    with rows_of_run(plan, documents([lost, judged])) as rows:
        told = [dict(zip(SCHEMA, row, strict=True)) for row in rows.records('FROM rows ORDER BY "index"')]
    common = {
        "case": "case-0",
        "family": "f",
        "model": "m",
        "harness": "loop",
        "variant": "plain",
        "tags": {"kind": "k0"},
    }
    unknown: dict[str, Any] = dict.fromkeys(
        ("latency_s", "tool_calls", "reasoning_tokens", "cost_usd", "all_attempts_usd")
    )
    assert told == [
        common
        | figures
        | {
            "index": 0,
            "repeat": 0,
            "verdict": "failed",
            "timed_out": True,
            "request_latency_s": [0.25, 1.0],
            "reasons": ["first", "second"],
        },
        common
        | unknown
        | {
            "index": 1,
            "repeat": 1,
            "verdict": "not_run",
            "attempt": 0,
            "timed_out": False,
            "waited_s": None,
            "request_latency_s": [],
            "reasons": [],
        },
        common
        | unknown
        | {
            "index": 2,
            "repeat": 2,
            "verdict": "infra_failed",
            "attempt": 1,
            "timed_out": False,
            "waited_s": 0.0,
            "request_latency_s": [],
            "reasons": ["the worker was lost"],
        },
    ]


def test_what_is_written_as_parquet_reads_as_the_same_rows(
    make_plan: Callable[..., Plan], make_result: Callable[..., Result], tmp_path: Path
) -> None:
    plan = make_plan(cases=3, repeats=2)
    results = [make_result(plan, at, "passed", "a'b", latency_s=at / 7) for at in range(plan.size - 1)]
    parquet = tmp_path / "it's.parquet"
    with rows_of_run(plan, documents(results)) as rows:
        rows.write(parquet)
        expected = rows.records('FROM rows ORDER BY "index"')
    with Rows.stored(parquet) as stored:
        assert stored.records("FROM rows") == expected


def test_the_stored_rows_give_the_numbers_of_the_run(
    make_plan: Callable[..., Plan],
    make_manifest: Callable[[Plan], Manifest],
    make_result: Callable[..., Result],
    tmp_path: Path,
) -> None:
    plan = make_plan(cases=3, repeats=4)
    results = [
        make_result(plan, at, "failed" if at % 5 == 0 else "passed", latency_s=at / 7) for at in range(plan.size)
    ]
    of_run = summarize(make_manifest(plan), plan, results, attempts=plan.size, finished=True)
    with rows_of_run(plan, documents(results)) as rows:
        rows.write(tmp_path / "rows.parquet")
    with Rows.stored(tmp_path / "rows.parquet") as stored:
        of_rows = summarize_rows(stored, "r1")
    by_arm = {(cell.model, cell.harness, cell.variant): cell for cell in of_rows.cells}
    assert [by_arm[cell.model, cell.harness, cell.variant] for cell in of_run.cells] == list(of_run.cells)


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "rows.parquet"
    broken.write_bytes(b"no parquet")
    with pytest.raises(UsageError, match="the rows cannot be read: "):
        Rows.stored(broken)
