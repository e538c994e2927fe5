from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.summary.aggregate import summarize, summarize_rows
from evalfarm.analysis.summary.own import rows_of_run
from evalfarm.analysis.summary.rows import SCHEMA, Rows
from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.verdict import Result
from evalfarm.errors import UsageError


def documents(results: list[Result]) -> list[str]:
    return [result.model_dump_json() for result in results]


def test_a_run_is_told_trial_by_trial(
    make_plan: Callable[..., Plan], make_result: Callable[..., Result], loop: Arm, tmp_path: Path
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
    with rows_of_run(plan, documents([lost, judged]), tmp_path / "rows.parquet") as rows:
        told = [dict(zip(SCHEMA, row, strict=True)) for row in rows.records("FROM rows")]
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


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_a_row_stands_at_its_index_in_whatever_order_the_results_came(
    make_plan: Callable[..., Plan], make_result: Callable[..., Result], data: st.DataObject
) -> None:
    plan = make_plan(cases=data.draw(st.integers(1, 9)), repeats=data.draw(st.integers(1, 700)))
    ran = data.draw(st.lists(st.integers(0, plan.size - 1), unique=True, max_size=40))
    results = [make_result(plan, at, "passed", latency_s=at / 7) for at in ran]
    with TemporaryDirectory() as folder, rows_of_run(plan, documents(results), Path(folder, "it's.parquet")) as rows:
        told = rows.records(
            'SELECT "index", "case", repeat, model, harness, variant, tags, verdict, latency_s FROM rows'
        )
    kinds = {case.id: case.tags for case in plan.suite.cases}
    assert told == [
        (
            at,
            *(trial.case, trial.repeat, trial.arm.model, trial.arm.harness, trial.arm.variant, kinds[trial.case]),
            *(("passed", at / 7) if at in ran else ("not_run", None)),
        )
        for at, trial in ((at, plan.trial(at)) for at in range(plan.size))
    ]


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
    with rows_of_run(plan, documents(results), tmp_path / "rows.parquet"):
        pass
    with Rows.stored(tmp_path / "rows.parquet") as stored:
        of_rows = summarize_rows(stored, "r1")
    by_arm = {(cell.model, cell.harness, cell.variant): cell for cell in of_rows.cells}
    assert [by_arm[cell.model, cell.harness, cell.variant] for cell in of_run.cells] == list(of_run.cells)


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "rows.parquet"
    broken.write_bytes(b"no parquet")
    with pytest.raises(UsageError, match="the rows cannot be read: "):
        Rows.stored(broken)
