"""What a plan can tell apart, and whether a run agrees with itself: the documents of `evalfarm power` and `aa`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evalfarm.analysis.judgement.arms import ArmCases, arms_of, counts_of, label_table
from evalfarm.analysis.judgement.notes import ArmNote, RunNote, arm_note, run_note
from evalfarm.analysis.statistics.paired import smoothed_disagreement
from evalfarm.analysis.statistics.planning import (
    POWER,
    TYPICAL_BETWEEN,
    TYPICAL_DISAGREEMENT,
    Resolution,
    cases_for_difference,
    repeats_for_difference,
    repeats_for_drop,
    resolution,
    variance_of_difference,
)
from evalfarm.analysis.statistics.rule_check import SelfCheck, self_check
from evalfarm.analysis.statistics.steadiness import disagreement
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UsageError

REPEATS_SHOWN = (1, 3, 5, 10, 30)


@dataclass(frozen=True, slots=True)
class Needs:
    """What it takes to find an effect with a power of 80 %."""

    repeats_same_cases: int  #: of these cases on both sides, for a drop between two runs of them
    cases_new_cases: int  #: at the plan's repeats, for a difference of two arms on cases like these
    repeats_new_cases: int | None  #: of the plan's cases; None: no number does, and more cases are needed


@dataclass(frozen=True, slots=True)
class ArmPower:
    """What a plan resolves for an arm as steady as this."""

    arm: ArmNote | None  #: whose steadiness was measured; None: the typical one was assumed
    measured: float | None  #: D as the run shows it, which may be 0; None: assumed
    disagreement: float  #: D that was reckoned with: measured and smoothed, so never 0, or assumed
    between: float  #: variance between cases of the true difference of two arms: typical, no run tells it
    resolution: Resolution
    needs: Needs
    by_repeats: tuple[Resolution, ...]


@dataclass(frozen=True, slots=True)
class Power:
    """The one document of `evalfarm power`."""

    subject: str  #: the suite or the run
    cases: int
    repeats: int
    effect: float
    power: float
    arms: tuple[ArmPower, ...]
    schema_version: Literal[1] = 1


class _Basis(NamedTuple):
    """The steadiness that a plan is reckoned with."""

    arm: ArmCases | None
    measured: float | None
    reckoned: float


_TYPICAL = _Basis(None, None, TYPICAL_DISAGREEMENT)


@dataclass(frozen=True, slots=True)
class ArmCheck:
    """One arm's repeats against each other."""

    arm: ArmNote
    check: SelfCheck
    held: bool


@dataclass(frozen=True, slots=True)
class SelfChecks:
    """The one document of `evalfarm aa`."""

    run: RunNote
    held: bool  #: every arm
    arms: tuple[ArmCheck, ...]
    schema_version: Literal[1] = 1


def plan_power(subject: str, cases: int, repeats: int, effect: float) -> Power:
    """What a plan of this size resolves for an arm of typical steadiness, before anything of it has run.

    Raises UsageError for fewer than one case or repeat and for an effect outside 0 … 1.
    """
    return _power(subject, cases, repeats, effect, [_TYPICAL])


def run_power(summary: RunSummary, repeats: int | None, effect: float) -> Power:
    """What so many repeats (None: as many as the run's) of a run's cases resolve, for each arm as steady as it was.

    The disagreement is smoothed (`paired.smoothed_disagreement`); an arm without repeats is reckoned as typical.
    Raises UsageError as `plan_power` does.
    """
    bases = [found for arm in arms_of(summary).values() if (found := _basis(arm)) is not None]
    own = max(sum(case.labels.values()) for case in summary.cases)
    return _power(
        summary.run,
        len({case.case for case in summary.cases}),
        own if repeats is None else repeats,
        effect,
        bases or [_TYPICAL],
    )


def self_checks(summary: RunSummary, rng: np.random.Generator) -> SelfChecks:
    """Every arm's repeats against each other; raises UsageError as `rule_check.self_check` does."""
    checks = [
        ArmCheck(arm_note(arm), check, check.held)
        for arm in arms_of(summary).values()
        for check in [self_check(label_table(arm), rng)]
    ]
    return SelfChecks(run_note(summary), all(one.held for one in checks), tuple(checks))


def _power(subject: str, cases: int, repeats: int, effect: float, bases: Sequence[_Basis]) -> Power:
    if not 0 < effect < 1:
        raise UsageError(
            f"an effect of {effect:g} is not between 0 and 1", "give it as a share: 0.03 for three percentage points"
        )
    arms = [
        ArmPower(
            arm=None if basis.arm is None else arm_note(basis.arm),
            measured=basis.measured,
            disagreement=basis.reckoned,
            between=TYPICAL_BETWEEN,
            resolution=resolution(cases, repeats, disagreement=basis.reckoned),
            needs=_needs(cases, repeats, effect, basis.reckoned),
            by_repeats=tuple(
                resolution(cases, count, disagreement=basis.reckoned) for count in sorted({*REPEATS_SHOWN, repeats})
            ),
        )
        for basis in bases
    ]
    return Power(subject, cases, repeats, effect, POWER, tuple(arms))


def _needs(cases: int, repeats: int, effect: float, steady: float) -> Needs:
    rerun = steady / 2
    variance = variance_of_difference(TYPICAL_BETWEEN, rerun, rerun, repeats)
    return Needs(
        repeats_same_cases=repeats_for_drop(effect, steady, cases),
        cases_new_cases=int(np.ceil(cases_for_difference(effect, variance))),
        repeats_new_cases=repeats_for_difference(effect, TYPICAL_BETWEEN, steady, cases),
    )


def _basis(arm: ArmCases) -> _Basis | None:
    """None without repeats: nothing is known of how steady the arm is."""
    counts = counts_of(arm, tuple(arm.cases))
    measured = disagreement(counts.passed, counts.decided).value
    return None if measured is None else _Basis(arm, measured, smoothed_disagreement(counts.passed, counts.decided))
