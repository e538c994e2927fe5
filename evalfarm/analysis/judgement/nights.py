"""One arm of a run against the nights before it: the nightly rule, and what stands beside its verdict."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import (
    FIGURES,
    ArmCases,
    Figure,
    arms_of,
    counts_of,
    figures_of,
    slices_of,
)
from evalfarm.analysis.judgement.comparability import UNDER_TEST, Mismatch, mismatches, new_patch, refuse, refused
from evalfarm.analysis.judgement.notes import CaseChange, CaseSets, Source, change_of_cases
from evalfarm.analysis.statistics.drift import ALARM, Drift, drift
from evalfarm.analysis.statistics.figures import FigureChange, figure_change
from evalfarm.analysis.statistics.paired import CaseCounts, smoothed_disagreement
from evalfarm.analysis.statistics.regression import (
    Dispersion,
    Night,
    NightlyRule,
    Suspect,
    judge_night,
    regressed_among,
    rose,
    suspects,
)
from evalfarm.analysis.statistics.rule_check import nightly_odds
from evalfarm.analysis.statistics.stats import Estimate, pass_rate
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import UsageError

DROPS = (0.03, 0.05, 0.08)  #: for which the rule's power is told


@dataclass(frozen=True, slots=True)
class DropPower:
    """The chance that the rule alerts on the night of a drop."""

    drop: float
    power: float


@dataclass(frozen=True, slots=True)
class RuleOdds:
    """How often the rule errs on an arm with these cases, this steadiness and so many nights."""

    nights: int
    false_alarm: float  #: per night on which nothing changed
    power: tuple[DropPower, ...]


@dataclass(frozen=True, slots=True)
class NightNote:
    """The nightly rule on one arm, with all that led to its verdict."""

    nights: int
    baseline: Rate
    tonight: Rate  #: with the confirm run's trials, where there was one
    change: Estimate  #: with the interval for the same cases
    p_screen: float | None
    p_confirm: float | None
    to_confirm: bool  #: the screen fired, and fresh repeats decide
    dispersion: Dispersion
    drift: Drift
    drifted: bool  #: the slow-drift detector alarms tonight
    odds: RuleOdds | None  #: None: one night does not say how far nights lie apart
    slices: tuple[Suspect, ...]  #: looked at after an alert alone
    suspects: tuple[Suspect, ...]  #: likewise, case by case
    cases: CaseSets  #: against the cases of all its nights
    changes: tuple[CaseChange, ...]  #: largest loss first
    figures: Mapping[Figure, FigureChange]  #: the factor from the baseline to tonight
    risen: tuple[Figure, ...]  #: for information
    differing: tuple[Mismatch, ...]  #: from some night of the baseline


@dataclass(frozen=True, slots=True)
class Judged:
    """An arm with the rule's verdict on it."""

    arm: ArmCases
    before: tuple[ArmCases, ...]  #: its nights, oldest first
    cases: tuple[str, ...]  #: tonight's that some night has too
    accepted: tuple[CaseCounts, ...]
    night: Night
    differing: tuple[Mismatch, ...]


def judge_arm(
    run: Source,
    arm: ArmCases,
    nights: Sequence[Source],
    confirm: Source | None,
    rule: NightlyRule,
    allowed: Collection[str],
) -> Judged:
    """The nightly rule on one arm; `nights` have it, oldest first, and so may `confirm`.

    Raises UsageError for no case in common and for settings that differ and are not under test; a confirm run may
    differ in nothing.
    """
    before = tuple(arms_of(source.summary)[arm.name] for source in nights)
    differing = _differing(run, arm.name, nights, UNDER_TEST | set(allowed))
    known = {case for night in before for case in night.cases}
    cases = tuple(case for case in arm.cases if case in known)
    if not cases:
        raise UsageError(
            f"{arm.name} of run {arm.run!r} has no case in common with its baseline",
            "name baselines of the same suite whose filters overlap",
        )
    accepted = tuple(counts_of(night, cases) for night in before)
    again = arms_of(confirm.summary).get(arm.name) if confirm else None
    if confirm and again:
        _differing(confirm, arm.name, [run], set(allowed))
    fresh = counts_of(again, cases) if again else None
    night = judge_night(accepted, counts_of(arm, cases), fresh, rule)
    return Judged(arm, before, cases, accepted, night, differing)


def as_family(judged: Sequence[Judged], rule: NightlyRule) -> tuple[Judged, ...]:
    """Several arms judged in one night: what regressed is decided over all of them (`regression.regressed_among`)."""
    if len(judged) < 2:
        return tuple(judged)
    flagged = regressed_among([one.night for one in judged], rule)
    return tuple(replace(one, night=_in_family(one.night, alert)) for one, alert in zip(judged, flagged, strict=True))


def night_note(judged: Judged, rule: NightlyRule) -> NightNote:
    """All that a report says of the arm's night."""
    night, cases = judged.night, judged.cases
    slow = drift([*judged.accepted, night.tonight])
    figures = {figure: _figure_change(judged, figure) for figure in FIGURES}
    known = {case: None for before in judged.before for case in before.cases}
    return NightNote(
        nights=night.nights,
        baseline=pass_rate(night.baseline.passed, night.baseline.decided),
        tonight=pass_rate(night.tonight.passed, night.tonight.decided),
        change=night.change,
        p_screen=night.p_screen,
        p_confirm=night.p_confirm,
        to_confirm=night.verdict == "to confirm",
        dispersion=night.dispersion,
        drift=slow,
        drifted=bool(slow.levels) and slow.levels[-1] >= ALARM,
        odds=rule_odds(night, rule),
        slices=suspects(night, slices_of(judged.arm, cases)),
        suspects=suspects(night, {case: (place,) for place, case in enumerate(cases)}),
        cases=CaseSets(
            common=len(cases),
            only_baseline=tuple(case for case in known if case not in judged.arm.cases),
            only_candidate=tuple(case for case in judged.arm.cases if case not in known),
        ),
        changes=change_of_cases(night.baseline, night.tonight, cases),
        figures=figures,
        risen=tuple(figure for figure, change in figures.items() if rose(change)),
        differing=judged.differing,
    )


def rule_odds(night: Night, rule: NightlyRule) -> RuleOdds | None:
    """The rule's false-alarm rate and power for a baseline of as many nights as there are, or as it needs.

    From the steadiness and the pass rate that the baseline shows, each smoothed by half a case, so that a baseline
    without a flip or a failure does not make the rule look perfect. None with one night, or without repeats.
    """
    nights = max(night.nights, rule.least_nights)
    there = night.baseline.decided > 0
    passed, decided = night.baseline.passed[there], night.baseline.decided[there]
    if nights < 2 or not (decided >= 2).any():
        return None
    steady = smoothed_disagreement(passed, decided)
    rate = float((passed / decided).sum() + 0.5) / (len(decided) + 1)
    repeats = max(1, round(float(night.baseline.planned[there].mean()) / night.nights))
    fitted = replace(rule, most_nights=nights)
    found = [
        nightly_odds(int(there.sum()), repeats, drop, disagreement=steady, rate=rate, rule=fitted) for drop in DROPS
    ]
    return RuleOdds(
        nights=nights,
        false_alarm=found[0].false_alarm,
        power=tuple(DropPower(drop, odds.power) for drop, odds in zip(DROPS, found, strict=True)),
    )


def _differing(run: Source, arm: ArmName, others: Iterable[Source], allowed: Collection[str]) -> tuple[Mismatch, ...]:
    """How an arm of a run differs from the same arm of others, each difference once. Raises UsageError as said."""
    found: dict[Mismatch, None] = {}
    for other in others:
        here = mismatches(other.side(arm), run.side(arm))
        told = f"{arm} of run {run.summary.run!r} and of run {other.summary.run!r}"
        refuse(told, refused([one for one in here if not new_patch(one)], (), allowed))
        found.update(dict.fromkeys(here))
    return tuple(found)


def _in_family(night: Night, alert: bool) -> Night:
    if alert:
        return replace(night, verdict="regressed", reason=f"{night.reason}; an alert among all arms of tonight")
    if night.verdict == "regressed":
        return replace(night, verdict="held", reason=f"{night.reason}, but not for as many arms as were judged tonight")
    return night


def _figure_change(judged: Judged, figure: Figure) -> FigureChange:
    """Tonight's mean per case against the mean over the nights that report it."""
    nights = np.stack([figures_of(night, figure, judged.cases) for night in judged.before])
    reported = ~np.isnan(nights)
    told = np.maximum(reported.sum(axis=0), 1)
    before = np.where(reported.any(axis=0), np.where(reported, nights, 0).sum(axis=0) / told, np.nan)
    return figure_change(before, figures_of(judged.arm, figure, judged.cases))
