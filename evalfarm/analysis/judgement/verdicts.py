"""From runs to the one document of a comparison: every pair of arms, the ranking, the differences in differences.

`comparisons` says what each pair adds up to; here the arms are paired and checked, and what is said of several pairs
at once is corrected for their number.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import (
    FIGURES,
    ArmCases,
    Axis,
    Figure,
    Pairing,
    Square,
    arms_of,
    chosen,
    common_cases,
    counts_of,
    families_of,
    figures_of,
    pairs_between,
    pairs_within,
    squares,
)
from evalfarm.analysis.judgement.comparability import Mismatch, meant_to_differ, mismatches, refuse, refused
from evalfarm.analysis.judgement.notes import (
    ArmNote,
    CaseChange,
    CaseSets,
    RunNote,
    Source,
    arm_note,
    case_sets,
    change_of_cases,
    run_note,
)
from evalfarm.analysis.statistics.comparisons import (
    ALPHA,
    MARGIN,
    Comparison,
    Finding,
    Interaction,
    compare,
    difference_in_differences,
)
from evalfarm.analysis.statistics.figures import FigureChange, figure_change
from evalfarm.analysis.statistics.paired import holm
from evalfarm.analysis.statistics.ranking import Ranked, rank
from evalfarm.errors import UsageError


@dataclass(frozen=True, slots=True)
class ArmPair:
    """Two arms compared. The findings are corrected for the number of pairs in the document (Holm)."""

    baseline: ArmNote
    candidate: ArmNote
    axes: tuple[Axis, ...]  #: on which they differ; none: the same arm of two runs
    cases: CaseSets
    new_cases: Finding
    same_cases: Finding
    new_cases_p: float | None  #: adjusted
    same_cases_p: float  #: adjusted
    comparison: Comparison
    changes: tuple[CaseChange, ...]  #: largest loss first
    figures: Mapping[Figure, FigureChange]  #: the factor from baseline to candidate
    differing: tuple[Mismatch, ...]  #: settings that differ: what is compared, and what was allowed


@dataclass(frozen=True, slots=True)
class SquareNote:
    """A difference in differences: two arms along one axis, under two harnesses, over the cases of all four."""

    axis: Axis
    arms: tuple[ArmNote, ArmNote, ArmNote, ArmNote]
    interaction: Interaction


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The one document of `evalfarm compare`."""

    runs: tuple[RunNote, ...]
    margin: float
    pairs: tuple[ArmPair, ...]
    ranking: tuple[Ranked, ...]  #: of three arms or more of one run, on new cases; corrected for all their pairs
    squares: tuple[SquareNote, ...]
    not_compared: tuple[ArmNote, ...]  #: arms for which the other run has none
    schema_version: Literal[1] = 1


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a comparison."""

    margin: float = MARGIN
    wanted: Mapping[Axis, Sequence[str]] = field(default_factory=dict)  #: the values chosen on an axis; none: all
    allowed: Collection[str] = ()


def compare_runs(baseline: Source, candidate: Source, question: Question) -> Verdicts:
    """Two runs, arm by arm (`arms.pairs_between`).

    Raises UsageError for one run twice, for no two arms to compare, for no case in common, for a margin outside 0 … 1,
    and for settings that differ and were not meant to.
    """
    check_margin(question.margin)
    if baseline.summary.run == candidate.summary.run:
        raise UsageError(
            f"both runs are {baseline.summary.run!r}",
            f"to try a run against itself: evalfarm aa {baseline.summary.run}",
        )
    sides = [chosen(arms_of(source.summary), question.wanted) for source in (baseline, candidate)]
    pairings = pairs_between(*sides)
    if not pairings:
        raise UsageError(
            f"no arm of run {candidate.summary.run!r} can be paired with one of run {baseline.summary.run!r}\n"
            + "\n".join(
                f"  {source.summary.run}: {', '.join(map(str, arms)) or 'none as asked for'}"
                for source, arms in zip((baseline, candidate), sides, strict=True)
            ),
            "choose with --model, --harness and --variant, so that one arm of each is left",
        )
    pairs = [
        _pair((baseline, candidate), (sides[0][one.baseline], sides[1][one.candidate]), one, question)
        for one in pairings
    ]
    paired = {(0, one.baseline) for one in pairings} | {(1, one.candidate) for one in pairings}
    left = [arm_note(arm) for at, arms in enumerate(sides) for name, arm in arms.items() if (at, name) not in paired]
    return Verdicts(
        runs=(run_note(baseline.summary), run_note(candidate.summary)),
        margin=question.margin,
        pairs=_corrected(pairs),
        ranking=(),
        squares=(),
        not_compared=tuple(left),
    )


def compare_arms(source: Source, question: Question) -> Verdicts:
    """The arms of one run among themselves (`arms.pairs_within`), ranked where there are three or more.

    Raises UsageError for fewer than two arms, for a margin outside 0 … 1, and for settings that differ and were not
    meant to: a simulated model against a real one.
    """
    check_margin(question.margin)
    arms = chosen(arms_of(source.summary), question.wanted)
    if len(arms) < 2:
        named = ", ".join(map(str, arms)) or "none as asked for"
        raise UsageError(
            f"run {source.summary.run!r} has fewer than two arms to compare: {named}",
            f"name a second run: evalfarm compare {source.summary.run} OTHER",
        )
    pairs = [
        _pair((source, source), (arms[one.baseline], arms[one.candidate]), one, question) for one in pairs_within(arms)
    ]
    return Verdicts(
        runs=(run_note(source.summary),),
        margin=question.margin,
        pairs=_corrected(pairs),
        ranking=_ranking(arms) if len(arms) >= 3 else (),
        squares=tuple(_square(arms, square) for square in squares(tuple(arms))),
        not_compared=(),
    )


def check_margin(margin: float) -> None:
    """Raises UsageError for a margin that is no share between 0 and 1."""
    if not 0 < margin < 1:
        raise UsageError(
            f"a margin of {margin:g} is not between 0 and 1", "give it as a share: 0.03 for three percentage points"
        )


def _pair(
    sources: tuple[Source, Source], arms: tuple[ArmCases, ArmCases], pairing: Pairing, question: Question
) -> ArmPair:
    """Two arms compared, their findings not corrected yet."""
    sides = [source.side(arm.name) for source, arm in zip(sources, arms, strict=True)]
    differing = mismatches(*sides)
    meant = meant_to_differ(pairing.axes)
    refuse(f"{_told(arms[0])} and {_told(arms[1])}", refused(differing, meant, question.allowed))
    sets, cases = case_sets(*arms), common_cases(arms)
    counts = [counts_of(arm, cases) for arm in arms]
    found = compare(counts[0], counts[1], families_of(arms[0].cases[case] for case in cases), margin=question.margin)
    return ArmPair(
        baseline=arm_note(arms[0]),
        candidate=arm_note(arms[1]),
        axes=pairing.axes,
        cases=sets,
        new_cases=found.new_cases_finding,
        same_cases=found.same_cases_finding,
        new_cases_p=found.new_cases.p,
        same_cases_p=found.same_cases_test.two_sided_mid,
        comparison=found,
        changes=change_of_cases(counts[0], counts[1], cases),
        figures={figure: figure_change(*(figures_of(arm, figure, cases) for arm in arms)) for figure in FIGURES},
        differing=differing,
    )


def _ranking(arms: Mapping[ArmName, ArmCases]) -> tuple[Ranked, ...]:
    """The arms of one run, each over the cases of all."""
    cases = {name: case for arm in arms.values() for name, case in arm.cases.items()}
    counts = {str(name): counts_of(arm, tuple(cases)) for name, arm in arms.items()}
    return rank(counts, families_of(cases.values()))


def _corrected(pairs: Sequence[ArmPair]) -> tuple[ArmPair, ...]:
    """The pairs with their p values adjusted for all being looked at, and the findings that survive it."""
    new = holm([1.0 if pair.new_cases_p is None else pair.new_cases_p for pair in pairs])
    same = holm([pair.same_cases_p for pair in pairs])
    return tuple(
        replace(
            pair,
            new_cases=_survives(pair.new_cases, new_p),
            same_cases=_survives(pair.same_cases, same_p),
            new_cases_p=None if pair.new_cases_p is None else new_p,
            same_cases_p=same_p,
        )
        for pair, new_p, same_p in zip(pairs, new, same, strict=True)
    )


def _survives(finding: Finding, p: float) -> Finding:
    return "too little evidence" if finding in ("better", "worse") and p > ALPHA else finding


def _square(arms: Mapping[ArmName, ArmCases], square: Square) -> SquareNote:
    four = [arms[name] for name in (*square.first, *square.second)]
    cases = common_cases(four)
    a1, b1, a2, b2 = (counts_of(arm, cases) for arm in four)
    notes = [arm_note(arm) for arm in four]
    return SquareNote(
        axis=square.axis,
        arms=(notes[0], notes[1], notes[2], notes[3]),
        interaction=difference_in_differences((a1, b1), (a2, b2), families_of(four[0].cases[case] for case in cases)),
    )


def _told(arm: ArmCases) -> str:
    return f"{arm.name} of run {arm.run!r}"
