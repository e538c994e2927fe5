"""A run's own rows, from its manifest, plan and summary: one for the run, one an arm, one a case in an arm."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalfarm.analysis.conversations.origins import plugin_digest
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import VERDICTS, CaseSummary, CellSummary, RunSummary

_TEXT, _COUNT, _NUMBER, _FLAG = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"
_DIGEST_LETTERS = 12

Row = dict[str, Any]

_HEAD: dict[str, str | list[str]] = {
    **dict.fromkeys(("run", "suite", "suite_version", "label", "day", "plugin"), _TEXT),
    "created_at": _NUMBER,
}
_COUNTS = dict.fromkeys(("planned", *VERDICTS), _COUNT)

SHEETS: dict[str, dict[str, str | list[str]]] = {
    "runs": {
        **_HEAD,
        **dict.fromkeys(("evalfarm", "isolation", "prompts"), _TEXT),
        **dict.fromkeys(("finished", "simulated", "synthetic"), _FLAG),
        **dict.fromkeys(("cases", "repeats"), _COUNT),
        **_COUNTS,
        "attempts": _COUNT,
        "versions": [_TEXT],
    },
    "cells": {
        **_HEAD,
        **dict.fromkeys(("model", "harness", "variant", "version"), _TEXT),
        **_COUNTS,
        **dict.fromkeys(("pass_rate", "pass_rate_low", "pass_rate_high"), _NUMBER),
        **dict.fromkeys(("flip_rate", "flip_rate_low", "flip_rate_high"), _NUMBER),
        **dict.fromkeys(("flipped", "flip_cases"), _COUNT),
        **dict.fromkeys(("tool_calls_per_question", "reasoning_tokens_per_question"), _NUMBER),
        **dict.fromkeys(("latency_p50_s", "latency_p95_s", "cost_usd", "cost_per_question_usd"), _NUMBER),
    },
    "cases": {
        **_HEAD,
        **dict.fromkeys(("case", "model", "harness", "variant", "version", "family", "category"), _TEXT),
        **_COUNTS,
        "flips": _FLAG,
        **dict.fromkeys(("latency_s", "tool_calls", "reasoning_tokens"), _NUMBER),
        "reasons": [_TEXT],
        "trials": [_COUNT],
        "verdicts": [_TEXT],
    },
}
"""The tables and their columns, with the types that DuckDB reads them as."""


def version_name(plugin_version: str, variant: str, digest: str | None) -> str:
    """One version of a plugin in one word: `1.0.0~guided~1a2b3c4d5e6f`. `rows.VERSION` says the same in SQL."""
    short = (digest or "").removeprefix("sha256:")[:_DIGEST_LETTERS]
    return "~".join(part for part in (plugin_version, variant, short) if part)


def sheets_of(manifest: Manifest, plan: Plan, summary: RunSummary | None, day: str) -> dict[str, list[Row]]:
    """The rows of one run, by table. A run that is not finished has no counts, cells or cases yet."""
    versions = {name: _version(plan, name) for name in dict.fromkeys(arm.variant for arm in plan.arms)}
    head = {
        **manifest.model_dump(mode="json", include={"run", "suite", "suite_version", "label", "created_at"}),
        "day": day,
        "plugin": plan.suite.plugin.name,
    }
    stated = ("evalfarm", "isolation", "simulated", "synthetic", "cases", "repeats", "planned")
    run = {
        **head,
        **{name: getattr(manifest, name) for name in stated},
        **({} if summary is None else {name: getattr(summary, name) for name in (*VERDICTS, "attempts")}),
        "finished": summary is not None and summary.finished,
        "prompts": manifest.digests.get("prompts"),
        "versions": list(versions.values()),
    }
    return {
        "runs": [run],
        "cells": [] if summary is None else [head | _cell(cell, versions) for cell in summary.cells],
        "cases": [] if summary is None else [head | _case(case, versions) for case in summary.cases],
    }


def write_sheet(table: str, documents: Sequence[Mapping[str, Any]], parquet: Path) -> None:
    """Write rows of one of the tables as a Parquet file; without a row it has the columns alone."""
    spec = json.dumps(SHEETS[table])
    with Rows() as rows:
        rows.run("CREATE TABLE sheet AS SELECT unnest(json_transform('{}', ?)) LIMIT 0", [spec])
        if documents:
            read = "SELECT unnest(json_transform(d, ?)) FROM (SELECT unnest(?::VARCHAR[]) AS d)"
            # Half of a surrogate pair becomes a question mark: nothing can store it.
            lines = [json.dumps(row, ensure_ascii=False).encode(errors="replace").decode() for row in documents]
            rows.run(f"INSERT INTO sheet {read}", [spec, lines])
        rows.run("COPY sheet TO ? (FORMAT parquet)", [str(parquet)])


def _version(plan: Plan, variant: str) -> str:
    return version_name(plan.suite.plugin.version, variant, plugin_digest(plan, variant))


def _cell(cell: CellSummary, versions: Mapping[str, str]) -> Row:
    plain = ("model", "harness", "variant", "planned", *VERDICTS, "cost_usd")
    return {
        **{name: getattr(cell, name) for name in plain},
        "version": versions.get(cell.variant),
        "pass_rate": cell.pass_rate.value,
        "pass_rate_low": cell.pass_rate.low,
        "pass_rate_high": cell.pass_rate.high,
        "flip_rate": cell.flip_rate.value,
        "flip_rate_low": cell.flip_rate.low,
        "flip_rate_high": cell.flip_rate.high,
        "flipped": cell.flip_rate.flipped,
        "flip_cases": cell.flip_rate.cases,
        "tool_calls_per_question": cell.tool_calls_per_question,
        "reasoning_tokens_per_question": cell.reasoning_tokens_per_question,
        "latency_p50_s": cell.latency_s.p50,
        "latency_p95_s": cell.latency_s.p95,
        "cost_per_question_usd": cell.cost.per_question_usd,
    }


def _case(case: CaseSummary, versions: Mapping[str, str]) -> Row:
    plain = ("case", "model", "harness", "variant", "family", "category", "latency_s", "tool_calls", "reasoning_tokens")
    return {
        **{name: getattr(case, name) for name in plain},
        **{verdict: case.labels.get(verdict, 0) for verdict in VERDICTS},
        "planned": sum(case.labels.values()),
        "version": versions.get(case.variant),
        "flips": case.labels.get("passed", 0) > 0 and case.labels.get("failed", 0) > 0,
        "reasons": list(case.reasons),
        "trials": list(case.trials),
        "verdicts": list(case.verdicts),
    }
