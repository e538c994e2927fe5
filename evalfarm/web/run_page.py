"""The pages of runs: all of them, and one with its cells, its cases and its plots."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.verdict import VERDICTS, Rate
from evalfarm.reports import numbers
from evalfarm.reports.run.findings import VERDICT_WORDS
from evalfarm.web.datasets import DATASETS
from evalfarm.web.pages import Cell, Grid, link

Row = Mapping[str, Any]

SHOWN_RUNS = 500
SHOWN_CASES = 2_000


def read(rows: Rows, dataset: str, most: int) -> list[Row]:
    """The first rows of a dataset, as the export has them."""
    names = [name for name, *_ in rows.records(f"DESCRIBE {DATASETS[dataset]}")]
    found = rows.records(f"SELECT * FROM ({DATASETS[dataset]}) LIMIT ?", [most])
    return [dict(zip(names, row, strict=True)) for row in found]


def arm(row: Row) -> str:
    """The arm of a row, as every report writes it."""
    return str(ArmName(row["model"], row["harness"], row["variant"]))


def runs_grid(found: Sequence[Row]) -> Grid:
    """Every run, newest first."""
    rows = tuple(
        (
            Cell(row["run"], link("runs", row["run"]), below=row["label"] or ""),
            Cell(numbers.moment(row["created_at"]).removesuffix(" UTC")),
            Cell(f"{row['suite']} {row['suite_version']}", link("", suite=row["suite"]), below=row["plugin"]),
            _count(row["planned"]),
            *(_count(row[verdict], verdict) for verdict in VERDICTS),
        )
        for row in found
    )
    heads = ("run", "started (UTC)", "suite", "planned", *(VERDICT_WORDS[verdict] for verdict in VERDICTS))
    return Grid("runs", "Newest first", heads, rows, words=3)


def cells_grid(run: str, found: Sequence[Row]) -> Grid:
    """The arms of a run."""
    rows = tuple(
        (
            Cell(
                arm(row),
                link("conversations", run=run, **{name: row[name] for name in ("model", "harness", "variant")}),
            ),
            Cell(numbers.percent(row["pass_rate"]), below=numbers.interval(_rate(row))),
            *(_count(row[verdict], verdict) for verdict in VERDICTS),
            Cell(numbers.percent(row["flip_rate"]), below=f"{row['flipped']} of {row['flip_cases']}"),
            Cell(numbers.measure(Measure(value=row["latency_p50_s"], low=None, high=None), numbers.seconds)),
            Cell(numbers.cost(row["cost_per_question_usd"])),
        )
        for row in found
    )
    words = tuple(VERDICT_WORDS[verdict] for verdict in VERDICTS)
    heads = ("arm", "pass rate", *words, "flip rate", "p50, s", "a question")
    note = "An arm is model × harness × variant. The flip rate is the share of its cases that both passed and failed."
    return Grid("cells", "Arms", heads, rows, note=note, download=link("datasets", "cells.csv", run=run))


def look_first(found: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The cases with a trial that did not pass, worst first, and the rest."""
    missed = [row for row in found if row["passed"] < row["planned"]]
    missed.sort(key=lambda row: (row["passed"] / row["planned"], row["case"]))
    return missed, [row for row in found if row["passed"] == row["planned"]]


def _rate(row: Row) -> Rate:
    return Rate(value=row["pass_rate"], low=row["pass_rate_low"], high=row["pass_rate_high"])


def _count(count: int | None, verdict: str = "") -> Cell:
    if count is None:
        return Cell("–", tone="zero")
    return Cell(f"{count:,}", tone=verdict if count and verdict != "passed" else "" if count else "zero")
