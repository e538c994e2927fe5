"""From summaries to arms that can be compared: which arms are paired, on which cases, with which counts.

`direct` runs without a model, so an arm of it differs from one with a model in its harness alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.statistics.paired import CaseCounts, case_counts
from evalfarm.analysis.statistics.stats import Floats
from evalfarm.contracts.run import NO_MODEL
from evalfarm.contracts.verdict import CaseSummary, RunSummary

Axis = Literal["model", "harness", "variant"]
AXES: tuple[Axis, ...] = ("model", "harness", "variant")

Figure = Literal["latency_s", "tool_calls", "reasoning_tokens"]
FIGURES: tuple[Figure, ...] = ("latency_s", "tool_calls", "reasoning_tokens")

_TRIED = {"passed": 1.0, "failed": 0.0}


class Pairing(NamedTuple):
    """Two arms to compare, and the axes on which they differ; none: the same arm of two runs."""

    baseline: ArmName
    candidate: ArmName
    axes: tuple[Axis, ...]


class Square(NamedTuple):
    """Four arms for a difference in differences: two that differ along `axis`, under two harnesses."""

    axis: Axis
    first: tuple[ArmName, ArmName]
    second: tuple[ArmName, ArmName]  #: the same two under the other harness


@dataclass(frozen=True, slots=True)
class ArmCases:
    """One arm's cases by their ids, in the order of its run."""

    run: str
    name: ArmName
    cases: Mapping[str, CaseSummary]


def arms_of(summary: RunSummary) -> dict[ArmName, ArmCases]:
    """Every arm of a run with its cases, in the order of the summary."""
    grouped: dict[ArmName, dict[str, CaseSummary]] = {}
    for case in summary.cases:
        grouped.setdefault(ArmName.of(case), {})[case.case] = case
    return {name: ArmCases(summary.run, name, cases) for name, cases in grouped.items()}


def chosen(arms: Mapping[ArmName, ArmCases], wanted: Mapping[Axis, Sequence[str]]) -> dict[ArmName, ArmCases]:
    """The arms that have one of the wanted values on every axis; an axis without any takes all."""
    return {
        name: arm
        for name, arm in arms.items()
        if all(not values or getattr(name, axis) in values for axis, values in wanted.items())
    }


def axes_between(one: ArmName, other: ArmName) -> tuple[Axis, ...]:
    """The axes on which two arms differ."""
    # Where one of two harnesses runs without a model, that is part of what tells the harnesses apart.
    modelless = one.harness != other.harness and NO_MODEL in (one.model, other.model)
    return tuple(
        axis for axis in AXES if getattr(one, axis) != getattr(other, axis) and not (modelless and axis == "model")
    )


def pairs_within(arms: Iterable[ArmName]) -> tuple[Pairing, ...]:
    """Every two arms that differ on one axis alone, or every two where none do; the earlier is the baseline."""
    pairs = [Pairing(one, other, axes_between(one, other)) for one, other in combinations(arms, 2)]
    return tuple(pair for pair in pairs if len(pair.axes) == 1) or tuple(pairs)


def pairs_between(baseline: Iterable[ArmName], candidate: Iterable[ArmName]) -> tuple[Pairing, ...]:
    """Which arm of one run is compared with which of another.

    Equal arms first; of the rest those that differ on one axis alone, where that leaves one choice on either side;
    and if each run has one arm left, these two, whatever they are.
    """
    left, right = list(baseline), list(candidate)
    pairs = _taken([Pairing(name, name, ()) for name in left if name in right], left, right)
    for axis in AXES:
        pairs += _taken(_only_choices(left, right, axis), left, right)
    if len(left) == len(right) == 1:
        pairs.append(Pairing(left[0], right[0], axes_between(left[0], right[0])))
    return tuple(pairs)


def squares(arms: Sequence[ArmName]) -> tuple[Square, ...]:
    """Every two models, and every two variants, that ran under the same two harnesses with all else equal."""
    harnesses = list(dict.fromkeys(name.harness for name in arms))
    found = []
    for one, other in combinations(arms, 2):
        axes = axes_between(one, other)
        if axes in (("model",), ("variant",)):
            for harness in harnesses[harnesses.index(one.harness) + 1 :]:
                under = (one._replace(harness=harness), other._replace(harness=harness))
                if under[0] in arms and under[1] in arms:
                    found.append(Square(axes[0], (one, other), under))
    return tuple(found)


def common_cases(arms: Sequence[ArmCases]) -> tuple[str, ...]:
    """The cases that every arm has, in the order of the first."""
    return tuple(case for case in arms[0].cases if all(case in arm.cases for arm in arms[1:]))


def counts_of(arm: ArmCases, cases: Sequence[str]) -> CaseCounts:
    """The arm's counts over a list of cases, aligned with it; 0 for a case that the arm does not have."""
    labels = [arm.cases[case].labels if case in arm.cases else {} for case in cases]
    return case_counts(
        [of_case.get("passed", 0) for of_case in labels],
        [of_case.get("passed", 0) + of_case.get("failed", 0) for of_case in labels],
        [sum(of_case.values()) for of_case in labels],
    )


def families_of(cases: Iterable[CaseSummary]) -> tuple[str, ...] | None:
    """The family of each case, one without any standing for itself; None where no case has one."""
    named = [(case.family, case.case) for case in cases]
    if all(family is None for family, _ in named):
        return None
    return tuple(f"case {case}" if family is None else f"family {family}" for family, case in named)


def figures_of(arm: ArmCases, figure: Figure, cases: Sequence[str]) -> Floats:
    """Each case's mean of a figure, in its unit; NaN where it was not reported, or the arm does not have the case."""
    return np.array([getattr(arm.cases.get(case), figure, None) for case in cases], dtype=np.float64)


def label_table(arm: ArmCases) -> Floats:
    """Cases × repeats: 1 passed, 0 failed, NaN not decided or not run. Shorter cases are filled up with NaN."""
    verdicts = [case.verdicts for case in arm.cases.values()]
    table = np.full((len(verdicts), max(map(len, verdicts), default=0)), np.nan)
    for row, of_case in enumerate(verdicts):
        table[row, : len(of_case)] = [_TRIED.get(verdict, np.nan) for verdict in of_case]
    return table


def slices_of(arm: ArmCases, cases: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The slices by tag, named `TAG=VALUE`, each with the places of its cases in the list of cases."""
    places: dict[str, list[int]] = {}
    for place, case in enumerate(cases):
        for tag, value in arm.cases[case].tags.items():
            places.setdefault(f"{tag}={value}", []).append(place)
    return {name: tuple(at) for name, at in sorted(places.items())}


def _only_choices(left: Sequence[ArmName], right: Sequence[ArmName], axis: Axis) -> list[Pairing]:
    """The pairs that differ on this axis alone, if each arm is in one of them only."""
    pairs = [Pairing(one, other, (axis,)) for one in left for other in right if axes_between(one, other) == (axis,)]
    for side in ("baseline", "candidate"):
        named = [getattr(pair, side) for pair in pairs]
        pairs = [pair for pair in pairs if named.count(getattr(pair, side)) == 1]
    return pairs


def _taken(pairs: list[Pairing], left: list[ArmName], right: list[ArmName]) -> list[Pairing]:
    """The pairs, their arms taken out of what is left to pair."""
    for pair in pairs:
        left.remove(pair.baseline)
        right.remove(pair.candidate)
    return pairs
