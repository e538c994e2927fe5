"""Rows to the summary: every planned trial counted once."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary.asked import asked, described_variants
from evalfarm.analysis.summary.breaks import first_breaks
from evalfarm.analysis.summary.describe import describe
from evalfarm.analysis.summary.labels import coverage, disputed, unresolved, with_labels
from evalfarm.analysis.summary.own import rows_of_run
from evalfarm.analysis.summary.rows import Rows
from evalfarm.analysis.summary.tables import Places, Tables, read_tables
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import (
    VERDICTS,
    CaseSummary,
    CellSummary,
    Result,
    RunSummary,
    SliceSummary,
)


def summarize(
    manifest: Manifest, plan: Plan, results: Iterable[Result], *, attempts: int, finished: bool
) -> RunSummary:
    """The one document that every report of a run is drawn from.

    What was planned follows from the plan; a trial without a result is `not_run`. `attempts` counts what was
    started, counted or not. Arms and cases keep the plan's order.
    Raises ValueError, naming the trial, for a second result of one trial and for a result that is no trial of
    this plan.
    """
    documents = (result.model_dump_json() for result in results)
    with TemporaryDirectory() as folder, rows_of_run(plan, documents, Path(folder, "rows.parquet")) as rows:
        return summarize_run(manifest, plan, rows, attempts=attempts, finished=finished)


def summarize_run(manifest: Manifest, plan: Plan, rows: Rows, *, attempts: int, finished: bool) -> RunSummary:
    """The summary of a run from its rows, as `rows_of_run` made them."""
    tables = read_tables(rows, arms=[ArmName.of(arm) for arm in plan.arms], cases=plan.cases)
    told = _told(tables)
    told["cases"] = with_labels(rows, plan.suite, told["cases"])
    return RunSummary(
        run=manifest.run,
        suite=manifest.suite,
        label=manifest.label,
        simulated=manifest.simulated,
        synthetic=manifest.synthetic,
        isolation=manifest.isolation,
        finished=finished,
        attempts=attempts,
        manifest=manifest,
        notes=rows.notes,
        asked=asked(plan),
        variants=described_variants(plan),
        categories=coverage(plan.suite, told["cases"]),
        unresolved=unresolved(plan.suite, plan.cases),
        disputed=disputed(plan.suite, plan.cases),
        **told,
    )


def summarize_rows(rows: Rows, name: str) -> RunSummary:
    """The summary of rows that evalfarm did not produce; `name` stands for the run and the suite.

    Arms and cases in the order in which the rows first name them. What was planned is what there are rows for, and
    the attempts are those that the rows count.
    """
    tables = read_tables(rows)
    ran = tables.planned - tables.counts["not_run"]
    return RunSummary(
        run=name,
        suite=name,
        label=None,
        simulated=False,
        synthetic=False,
        isolation="unknown",
        finished=True,
        attempts=int((ran + tables.earlier_attempts).sum()),
        manifest=None,
        notes=rows.notes,
        **_told(tables),
    )


def _told(tables: Tables) -> dict[str, Any]:
    by_arm = [np.flatnonzero(tables.arm == place) for place in range(len(tables.arms))]
    return {
        "planned": int(tables.planned.sum()),
        **{verdict: int(tables.counts[verdict].sum()) for verdict in VERDICTS},
        "cells": tuple(
            CellSummary(**arm._asdict(), **describe(tables, cells))
            for arm, cells in zip(tables.arms, by_arm, strict=True)
        ),
        "slices": tuple(_slices(tables, by_arm)),
        "cases": tuple(_cases(tables)),
        "breaks": first_breaks(tables),
    }


def _slices(tables: Tables, by_arm: list[Places]) -> Iterator[SliceSummary]:
    """Tag by tag and value by value, and within a value arm by arm."""
    values = dict.fromkeys(pair for tags in tables.tags for pair in sorted(tags.items()))
    for tag, value in sorted(values, key=lambda pair: pair[0]):
        member = np.array([tags.get(tag) == value for tags in tables.tags])
        for arm, cells in zip(tables.arms, by_arm, strict=True):
            inside = cells[member[cells]]
            if 2 <= len(inside) < len(cells):  # one case is told as such, all of them as the arm
                yield SliceSummary(tag=tag, tag_value=value, **arm._asdict(), **describe(tables, inside))


def _cases(tables: Tables) -> Iterator[CaseSummary]:
    """Case by case, and within a case arm by arm."""
    place = {case: at for at, case in enumerate(dict.fromkeys(tables.cases))}
    means = {name: figure.means for name, figure in tables.figures.items()}
    for at in sorted(range(len(tables.cases)), key=lambda at: (place[tables.cases[at]], tables.arm[at])):
        yield CaseSummary(
            case=tables.cases[at],
            **tables.arms[tables.arm[at]]._asdict(),
            family=tables.families[at],
            tags=tables.tags[at],
            labels={verdict: int(tables.counts[verdict][at]) for verdict in VERDICTS},
            **{name: None if np.isnan(mean[at]) else float(mean[at]) for name, mean in means.items()},
            reasons=tuple(reason.text for reason in tables.reasons[at]),
            trials=tuple(index for index, _ in tables.shown[at]),
            verdicts=tuple(verdict for _, verdict in tables.shown[at]),
        )
