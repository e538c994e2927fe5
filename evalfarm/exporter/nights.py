"""The last run of each suite, what the last gate said of it, and its judges, as metrics. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from evalfarm.analysis.arm_name import ArmName
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.gate import GATE_VERDICTS, ArmVerdict
from evalfarm.contracts.verdict import VERDICTS, CaseSummary, CellSummary, Rate, RunSummary
from evalfarm.exporter.catalogue import (
    CASES,
    DISAGREEMENT,
    FLIP_RATIO,
    GATE_CHANGE,
    GATE_LATENCY,
    GATE_LATENCY_RISEN,
    GATE_TIME,
    GATE_VERDICT,
    JUDGE_AGREEMENT,
    JUDGE_CALIBRATED,
    JUDGE_FALSE_ACCEPT,
    LAST_FINISHED,
    LAST_RUN,
    LAST_RUN_INFO,
    LATENCY_P50,
    LATENCY_P95,
    PASS_RATIO,
    RUN_COST,
    RUN_TRIALS,
)
from evalfarm.exporter.families import Metric, Sample
from evalfarm.exporter.labels import ArmLabels, Bound
from evalfarm.exporter.seen import Judge, Night

K = TypeVar("K")
V = TypeVar("V")
_Interval = tuple[Metric, Metric, Metric]


def of_nights(nights: tuple[Night, ...], bound: Bound) -> Iterator[Sample]:
    """What is said of nights; arms beyond the bound are not told of.

    Where nights of several labels have the same arm, its newest run and its newest verdict are told.
    """
    told = [night for night in nights if bound.holds_night(night.of)]
    finished = [(night.of, night.finished) for night in told if night.finished is not None]
    gates = [(night.of, night.gate) for night in told if night.gate is not None]
    finished.sort(key=lambda one: _started(one[1]), reverse=True)
    gates.sort(key=lambda one: one[1].at, reverse=True)
    for of, night in _newest((night.of, night) for night in told):
        yield Sample(LAST_RUN, night.started.created_at, of)
    for of, summary in _newest(finished):
        yield Sample(LAST_FINISHED, _started(summary), of)
        yield Sample(LAST_RUN_INFO, 1.0, (*of, summary.run))
    for of, gate in _newest(gates):
        yield Sample(GATE_TIME, gate.at, of)
    for labels, (cell, cases) in _newest(
        (ArmLabels.of(of, cell), (cell, summary.cases)) for of, summary in finished for cell in summary.cells
    ):
        if bound.holds(labels):
            yield from _of_cell(cell, labels)
            yield Sample(CASES, _decided(cell, cases), labels)
    for labels, arm in _newest((ArmLabels.of(of, arm), arm) for of, gate in gates for arm in gate.arms):
        if bound.holds(labels):
            yield from _of_verdict(arm, labels)


def of_judges(judges: tuple[Judge, ...]) -> Iterator[Sample]:
    """How far the judges of the last runs are to be trusted."""
    for judge in judges:
        labels, found = (judge.suite, judge.model), judge.calibration
        yield Sample(JUDGE_CALIBRATED, float(found is not None and not found.findings), labels)
        if found is not None:
            yield from _told(JUDGE_AGREEMENT, found.raw_agreement, labels)
            yield from _measured(JUDGE_FALSE_ACCEPT, found.overall.false_accept, labels)


def _newest(told: Iterable[tuple[K, V]]) -> Iterator[tuple[K, V]]:
    """Of several values for one key the first."""
    first: dict[K, V] = {}
    for key, value in told:
        first.setdefault(key, value)
    yield from first.items()


def _started(summary: RunSummary) -> float:
    """When a run started, in epoch seconds; the runs told of here have a manifest."""
    return summary.manifest.created_at if summary.manifest is not None else 0.0


def _decided(cell: CellSummary, cases: Sequence[CaseSummary]) -> int:
    """How many of an arm's cases have a decided trial."""
    arm = ArmName.of(cell)
    return sum(
        bool(case.labels.get("passed", 0) + case.labels.get("failed", 0)) for case in cases if ArmName.of(case) == arm
    )


def _of_cell(cell: CellSummary, labels: ArmLabels) -> Iterator[Sample]:
    yield from _measured(PASS_RATIO, cell.pass_rate, labels)
    yield from _measured(DISAGREEMENT, cell.disagreement, labels)
    yield from _measured(FLIP_RATIO, cell.flip_rate, labels)
    yield from _told(LATENCY_P50, cell.latency_s.p50, labels)
    yield from _told(LATENCY_P95, cell.latency_s.p95, labels)
    yield from _told(RUN_COST, cell.cost.all_attempts_usd, labels)
    for verdict in VERDICTS:
        yield Sample(RUN_TRIALS, getattr(cell, verdict), (*labels, verdict))


def _of_verdict(arm: ArmVerdict, labels: ArmLabels) -> Iterator[Sample]:
    for verdict in GATE_VERDICTS:
        yield Sample(GATE_VERDICT, float(arm.verdict == verdict), (*labels, verdict))
    if arm.change is not None:
        yield from _measured(GATE_CHANGE, arm.change, labels)
    if arm.latency is not None:
        yield from _measured(GATE_LATENCY, arm.latency.factor, labels)
        yield Sample(GATE_LATENCY_RISEN, float(arm.latency.risen), labels)


def _measured(metrics: _Interval, figure: Rate | Measure, labels: tuple[str, ...]) -> Iterator[Sample]:
    for metric, value in zip(metrics, (figure.value, figure.low, figure.high), strict=True):
        yield from _told(metric, value, labels)


def _told(metric: Metric, value: float | None, labels: tuple[str, ...]) -> Iterator[Sample]:
    """What cannot be estimated is not told: a 0 in its place would be a figure."""
    if value is not None:
        yield Sample(metric, value, labels)
