"""Whether a run held against the nights before it, or against a fixed bar: the one document of `evalfarm gate`.

What is under test may differ from night to night: its files, its packaging, its tools. Nothing else may.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import ArmCases, arms_of, counts_of, families_of
from evalfarm.analysis.judgement.nights import Judged, NightNote, as_family, judge_arm, night_note
from evalfarm.analysis.judgement.notes import ArmNote, RunNote, Source, arm_note, run_note
from evalfarm.analysis.statistics.drift import BarCheck, BarVerdict, against_bar
from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.contracts.gate import GateVerdict
from evalfarm.errors import UsageError

_WORST_FIRST: tuple[GateVerdict, ...] = ("regressed", "inconclusive", "improved", "held")
_OF_BAR: dict[BarVerdict, tuple[GateVerdict, str]] = {
    "met": ("held", "with 95 % confidence the pass rate reaches"),
    "missed": ("regressed", "with 95 % confidence the pass rate stays below"),
    "too little evidence": ("inconclusive", "too little evidence whether the pass rate reaches"),
}


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """What is asked of a gate."""

    rule: NightlyRule = NIGHTLY
    at_least: float | None = None  #: the fixed bar; None: none
    allowed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class GatedArm:
    """One arm's verdict: the worst of what the nightly rule, the slow-drift detector and the bar say."""

    arm: ArmNote
    verdict: GateVerdict
    reasons: tuple[str, ...]
    night: NightNote | None  #: None: it has no baseline
    bar: BarCheck | None  #: None: no bar was given


@dataclass(frozen=True, slots=True)
class Gate:
    """The one document of `evalfarm gate`."""

    run: RunNote
    baselines: tuple[str, ...]  #: runs, oldest first
    confirm: str | None  #: the confirm run that was taken in
    rule: NightlyRule
    at_least: float | None
    verdict: GateVerdict
    arms: tuple[GatedArm, ...]
    without_baseline: tuple[ArmNote, ...]  #: arms that no baseline has, so that the nightly rule does not judge them
    confirm_with: str | None = None  #: the command whose fresh repeats decide; None: nothing waits for them
    schema_version: Literal[1] = 1

    @property
    def to_confirm(self) -> tuple[ArmNote, ...]:
        """The arms whose screen fired and that no fresh repeats have decided yet."""
        return tuple(one.arm for one in self.arms if one.night is not None and one.night.to_confirm)


def judge_run(run: Source, baselines: Sequence[Source], confirm: Source | None, question: GateQuestion) -> Gate:
    """The verdict on a run: regressed if one of its arms is, else inconclusive if one is.

    `baselines` are the accepted nights, oldest first; `confirm` is the run of fresh repeats, once there is one. An
    alarm of the slow-drift detector is a regression too, where the nightly rule held.
    Raises UsageError where there is nothing to hold the run against, for a baseline that is the run itself, for no arm
    or case in common, for a bar outside 0 … 1, and for settings that differ and are not under test.
    """
    _check(run, baselines, question)
    arms = arms_of(run.summary)
    by_name = _judged(run, baselines, confirm, question)
    gated = tuple(
        _gated(arm, by_name.get(name), question)
        for name, arm in arms.items()
        if name in by_name or question.at_least is not None
    )
    return Gate(
        run=run_note(run.summary),
        baselines=tuple(source.summary.run for source in baselines),
        confirm=None if confirm is None else confirm.summary.run,
        rule=question.rule,
        at_least=question.at_least,
        verdict=worst_of([arm.verdict for arm in gated]),
        arms=gated,
        without_baseline=tuple(arm_note(arm) for name, arm in arms.items() if baselines and name not in by_name),
    )


def worst_of(verdicts: Sequence[GateVerdict]) -> GateVerdict:
    """What at least one verdict adds up to: one that regressed outweighs all others, then one that is inconclusive."""
    return next(verdict for verdict in _WORST_FIRST if verdict in verdicts)


def _judged(
    run: Source, baselines: Sequence[Source], confirm: Source | None, question: GateQuestion
) -> dict[ArmName, Judged]:
    """The nightly rule on every arm that some night of the baseline has."""
    arms, nights_of = arms_of(run.summary), [(source, arms_of(source.summary)) for source in baselines]
    having = {name: [source for source, there in nights_of if name in there] for name in arms}
    if baselines and not any(having.values()):
        raise UsageError(
            f"no arm of run {run.summary.run!r} is in its baseline: {', '.join(map(str, arms))}",
            "name baselines that ran the same models, harnesses and variants",
        )
    judged = [
        judge_arm(run, arms[name], nights, confirm, question.rule, question.allowed)
        for name, nights in having.items()
        if nights
    ]
    return {one.arm.name: one for one in as_family(judged, question.rule)}


def _check(run: Source, baselines: Sequence[Source], question: GateQuestion) -> None:
    name, bar = run.summary.run, question.at_least
    if not baselines and bar is None:
        raise UsageError(
            f"there is nothing to hold run {name!r} against",
            "name one run or several with --baseline, or a fixed bar: --at-least 0.9",
        )
    if any(source.summary.run == name for source in baselines):
        raise UsageError(f"run {name!r} is its own baseline", "name runs that went before it")
    if bar is not None and not 0 < bar <= 1:
        raise UsageError(f"a bar of {bar:g} is not between 0 and 1", "give it as a share: --at-least 0.9")


def _gated(arm: ArmCases, judged: Judged | None, question: GateQuestion) -> GatedArm:
    found: list[tuple[GateVerdict, str]] = []
    note = None
    if judged is not None:
        note = night_note(judged, question.rule)
        found += _of_night(judged, note)
    bar = None if question.at_least is None else _bar(arm, question.at_least)
    if bar is not None:
        verdict, words = _OF_BAR[bar.verdict]
        found.append((verdict, f"{words} the bar of {question.at_least:.1%}{_to_decide(bar)}"))
    return GatedArm(
        arm=arm_note(arm),
        verdict=worst_of([verdict for verdict, _ in found]),
        reasons=tuple(reason for _, reason in found),
        night=note,
        bar=bar,
    )


def _of_night(judged: Judged, note: NightNote) -> list[tuple[GateVerdict, str]]:
    night = judged.night
    verdict: GateVerdict = "inconclusive" if night.verdict == "to confirm" else night.verdict
    found: list[tuple[GateVerdict, str]] = [(verdict, night.reason)]
    if note.drifted and night.verdict in ("held", "improved"):
        found.append(("regressed", f"the slow-drift detector alarms (level {note.drift.levels[-1]:.0f})"))
    return found


def _to_decide(bar: BarCheck) -> str:
    if bar.verdict != "too little evidence" or bar.value is None:
        return ""
    if bar.cases_needed is None:
        return ", and too near it for any number of cases to tell"
    return f" (about {bar.cases_needed:,} cases like these would tell)"


def _bar(arm: ArmCases, at_least: float) -> BarCheck:
    cases = tuple(arm.cases)
    counts = counts_of(arm, cases)
    return against_bar(counts.passed, counts.decided, at_least, families_of(arm.cases.values()))
