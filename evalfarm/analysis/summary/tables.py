"""What a summary needs of the rows, in few passes over them: numbers per cell, and the values that need an order.

A cell is one case in one arm. Cells are numbered from 0, arm by arm and within an arm case by case; every array that
is called per cell is aligned with that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary import queries
from evalfarm.analysis.summary.rows import Columns, Rows
from evalfarm.contracts.verdict import SHOWN_REASONS, SHOWN_REPEATS, VERDICTS, Verdict

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

FIGURES = ("latency_s", "tool_calls", "reasoning_tokens")
"""Figures of a decided trial that are told per question."""


class Reason(NamedTuple):
    """Why trials of a cell did not pass."""

    text: str
    failed: bool  #: a failed trial gives it


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """One figure over the decided trials that report it, per cell."""

    total: Floats
    reported: Floats
    lowest: Floats  #: NaN where none reports it
    highest: Floats

    @property
    def means(self) -> Floats:
        """Per cell; NaN where no trial reports it."""
        means: Floats = np.divide(
            self.total, self.reported, out=np.full(len(self.total), np.nan), where=self.reported > 0
        )
        return means


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Values of one arm, each with its cell."""

    cell: NDArray[np.uint32]
    value: Floats

    def within(self, member: NDArray[np.bool_]) -> "Observed":
        """Those of some cells, in the same order; `member` says of every cell whether it is one."""
        shown = member[self.cell]
        return Observed(self.cell[shown], self.value[shown])


@dataclass(frozen=True, slots=True, eq=False)
class Attempts:
    """Decided trials by the number of their counted attempt: one entry per cell and number."""

    cell: Places
    attempt: Places
    decided: Floats
    passed: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Everything, per cell unless said otherwise."""

    arms: tuple[ArmName, ...]  #: in their order
    arm: Places  #: of each cell, its place in `arms`
    cases: tuple[str, ...]
    families: tuple[str | None, ...]
    tags: tuple[dict[str, str], ...]
    counts: dict[Verdict, Floats]
    figures: dict[str, Figure]
    time_limit_s: Floats  #: the shortest latency of a trial that timed out; NaN where none did
    timeouts: Floats
    cost_usd: Floats  #: sum over trials that ran; NaN where one of them has no price
    all_attempts_usd: Floats  #: likewise, with the attempts that did not count
    earlier_attempts: Floats
    latencies: tuple[Observed, ...]  #: per arm, of decided trials, ascending; infinite where they timed out
    request_latencies: tuple[Observed, ...]  #: per arm, of decided trials' model requests
    passed_by_repeat: tuple[NDArray[np.int8], ...]  #: 1 or 0 for each decided trial in the order of repeats
    decided_repeats: tuple[int, ...]  #: per arm, in how many repeats some trial was decided
    attempts: Attempts
    reasons: tuple[tuple[Reason, ...], ...]
    shown: tuple[tuple[tuple[int, Verdict], ...], ...]  #: index and verdict in the first SHOWN_REPEATS repeats

    @property
    def planned(self) -> Floats:
        """The trials of each cell."""
        return self._sum(VERDICTS)

    @property
    def decided(self) -> Floats:
        """The trials that passed or failed."""
        return self._sum(("passed", "failed"))

    def _sum(self, verdicts: Sequence[Verdict]) -> Floats:
        total: Floats = np.sum([self.counts[verdict] for verdict in verdicts], axis=0)
        return total


def read_tables(rows: Rows, arms: Sequence[ArmName] = (), cases: Sequence[str] = ()) -> Tables:
    """The tables of at least one row. Arms and cases in the order given, others after them as they first appear."""
    for statement in (queries.CELLS, queries.TRIALS, queries.DECIDED):
        rows.run(statement)
    cells = rows.columns("FROM cells ORDER BY cell")
    order, all_arms, arm = _in_order(cells, arms, cases)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    cells = {name: column[order] for name, column in cells.items()}
    by_repeat, repeats = _by_repeat(rows.columns(queries.BY_REPEAT), place, arm)
    return Tables(
        arms=all_arms,
        arm=arm,
        cases=tuple(cells["case"]),
        families=tuple(cells["family"]),
        tags=tuple(dict(tags or {}) for tags in cells["tags"]),
        counts={verdict: cells[verdict].astype(np.float64) for verdict in VERDICTS},
        figures={
            name: Figure(*(cells[f"{name}_{part}"].astype(np.float64) for part in ("total", "reported", "low", "high")))
            for name in FIGURES
        },
        time_limit_s=cells["time_limit_s"].astype(np.float64),
        timeouts=cells["timeouts"].astype(np.float64),
        cost_usd=cells["cost_usd"].astype(np.float64),
        all_attempts_usd=cells["all_attempts_usd"].astype(np.float64),
        earlier_attempts=cells["earlier_attempts"].astype(np.float64),
        latencies=tuple(_ascending(found) for found in _by_arm(rows.columns(queries.LATENCIES), place, arm)),
        request_latencies=tuple(_by_arm(rows.columns(queries.REQUEST_LATENCIES), place, arm)),
        passed_by_repeat=by_repeat,
        decided_repeats=repeats,
        attempts=_attempts(rows, place),
        reasons=_reasons(rows, place),
        shown=_shown(rows, place),
    )


def _in_order(
    cells: Columns, arms: Sequence[ArmName], cases: Sequence[str]
) -> tuple[Places, tuple[ArmName, ...], Places]:
    """The cells' order, the arms, and the arm of each cell in that order."""
    named = [ArmName(*name) for name in zip(cells["model"], cells["harness"], cells["variant"], strict=True)]
    by_appearance = np.argsort(cells["first"], kind="stable")
    all_arms = tuple(dict.fromkeys([*arms, *(named[at] for at in by_appearance)]))
    all_cases = dict.fromkeys([*cases, *(cells["case"][at] for at in by_appearance)])
    place_of_arm = {arm: place for place, arm in enumerate(all_arms)}
    place_of_case = {case: place for place, case in enumerate(all_cases)}
    arm = np.array([place_of_arm[name] for name in named], dtype=np.intp)
    case = np.array([place_of_case[name] for name in cells["case"]], dtype=np.intp)
    order = np.lexsort((case, arm))
    return order, all_arms, arm[order]


def _by_arm(found: Columns, place: Places, arm: Places) -> Iterator[Observed]:
    cell, value = place.astype(np.uint32)[found["cell"]], found["value"].astype(np.float64, copy=False)
    for at in range(int(arm.max()) + 1):
        shown = (arm == at)[cell]
        yield Observed(cell[shown], value[shown])


def _ascending(observed: Observed) -> Observed:
    order = np.argsort(observed.value)
    return Observed(observed.cell[order], observed.value[order])


def _by_repeat(found: Columns, place: Places, arm: Places) -> tuple[tuple[NDArray[np.int8], ...], tuple[int, ...]]:
    # 16 bits are sorted by radix
    cell = place.astype(np.uint16 if len(place) < 2**16 else np.uint32)[found["cell"]]
    order = np.lexsort((found["repeat"], cell))
    ends = np.cumsum(np.bincount(cell, minlength=len(place)))
    by_cell = np.split(found["passed"][order], ends[:-1])
    repeats = [len(np.unique(found["repeat"][arm[cell] == at])) for at in range(int(arm.max()) + 1)]
    return tuple(by_cell), tuple(repeats)


def _attempts(rows: Rows, place: Places) -> Attempts:
    found = rows.columns(queries.ATTEMPTS)
    return Attempts(
        cell=place[found["cell"]],
        attempt=found["attempt"].astype(np.intp),
        decided=found["decided"].astype(np.float64),
        passed=found["passed"].astype(np.float64),
    )


def _reasons(rows: Rows, place: Places) -> tuple[tuple[Reason, ...], ...]:
    told: list[list[Reason]] = [[] for _ in place]
    for cell, text, failed in rows.records(queries.REASONS, [SHOWN_REASONS]):
        told[place[cell]].append(Reason(text, failed))
    return tuple(tuple(reasons) for reasons in told)


def _shown(rows: Rows, place: Places) -> tuple[tuple[tuple[int, Verdict], ...], ...]:
    shown: list[list[tuple[int, Verdict]]] = [[] for _ in place]
    for cell, index, verdict in rows.records(queries.SHOWN, [SHOWN_REPEATS]):
        shown[place[cell]].append((index, verdict))
    return tuple(tuple(trials) for trials in shown)
