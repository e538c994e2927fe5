"""A comparison on the terminal or as Markdown: the finding in the first three lines, then what it rests on."""

from collections import Counter
from collections.abc import Iterator, Sequence

from evalfarm.analysis.judgement.comparability import meant_to_differ, refused
from evalfarm.analysis.judgement.verdicts import ArmPair, SquareNote, Verdicts
from evalfarm.analysis.statistics.comparisons import Finding
from evalfarm.reports.comparison.blocks import Block, Listed, Said
from evalfarm.reports.comparison.pair_names import against, names
from evalfarm.reports.comparison.parts import caveats, changed_cases, figure_rows, some
from evalfarm.reports.comparison.points import p_value, with_interval
from evalfarm.reports.comparison.record import whole_run
from evalfarm.reports.numbers import percent, plural, rate_with_interval
from evalfarm.reports.table import Table

_MOST_PAIRS = 5  #: whose cases are told, those with the widest gaps; the JSON document has them all
_FINDINGS: tuple[Finding, ...] = ("better", "worse", "equivalent", "too little evidence")


def report(found: Verdicts) -> list[Block]:
    """The whole report, for `blocks.to_terminal` and `blocks.to_markdown`."""
    return [
        *_opening(found),
        *caveats(found.runs),
        *_what_iscompared(found),
        _new_cases(found.pairs),
        _same_cases(found.pairs),
        *_to_decide(found),
        *_ranking(found),
        *_squares(found.squares),
        *_changes(found.pairs),
        *_figures(found.pairs),
        *whole_run(found.runs),
    ]


def _opening(found: Verdicts) -> list[Said]:
    if len(found.pairs) == 1:
        return _one_pair(found.pairs[0], found.margin)
    lines = []
    for question, findings in (
        ("New cases", [pair.new_cases for pair in found.pairs]),
        ("Same cases", [pair.same_cases for pair in found.pairs]),
    ):
        counts = Counter(findings)
        told = ", ".join(f"{counts[finding]} {_words(finding, found.margin)}" for finding in _FINDINGS)
        lines.append(Said(f"{question}, {plural(len(findings), 'pair')}: {told}.", finding=True))
    widest = max(found.pairs, key=lambda pair: abs(pair.comparison.new_cases.estimate.value or 0.0))
    change = with_interval(widest.comparison.new_cases.estimate)
    lines.append(Said(f"Widest gap: {against(widest)}: {change} points, {widest.new_cases}.", finding=True))
    return lines


def _one_pair(pair: ArmPair, margin: float) -> list[Said]:
    made = pair.comparison
    rates = f"{percent(made.candidate.value)} against {percent(made.baseline.value)}"
    on_cases = f"on {plural(made.new_cases.cases, 'case')} decided in both"
    return [
        Said(
            f"New cases: {_words(pair.new_cases, margin)}, {with_interval(made.new_cases.estimate)} points. "
            f"{against(pair)}",
            finding=True,
        ),
        Said(
            f"Same cases: {_words(pair.same_cases, margin)}, {with_interval(made.same_cases)} points on a rerun.",
            finding=True,
        ),
        Said(f"Pass rates: {rates}, {on_cases}.{_what_decides(pair)}", finding=True),
    ]


def _words(finding: Finding, margin: float) -> str:
    return f"equivalent within ±{100 * margin:g} points" if finding == "equivalent" else finding


def _what_iscompared(found: Verdicts) -> Iterator[Block]:
    for at, run in enumerate(found.runs):
        role = "" if len(found.runs) == 1 else ("Baseline: ", "Candidate: ")[at]
        label = f", label {run.label}" if run.label else ""
        version = f" {run.suite_version}" if run.suite_version else ""
        yield Said(f"{role}run {run.run} of suite {run.suite}{version}{label}, isolation {run.isolation}")
    lines = dict.fromkeys(line for pair in found.pairs for line in _notes(pair))
    if found.not_compared:
        left = ", ".join(f"{arm.name} of {arm.run}" for arm in found.not_compared)
        lines[f"Not compared, for want of a partner: {left}"] = None
    if lines:
        yield Listed("Read this first", tuple(lines))


def _notes(pair: ArmPair) -> Iterator[str]:
    allowed = refused(pair.differing, meant_to_differ(pair.axes), ())
    for mismatch in pair.differing:
        yield f"{'DIFFERS, as was allowed' if mismatch in allowed else 'May differ, being compared'}: {mismatch}"
    sets = pair.cases
    only = [
        f"{len(cases)} only in the {side} ({some(cases)})"
        for side, cases in (("baseline", sets.only_baseline), ("candidate", sets.only_candidate))
        if cases
    ]
    if only:
        yield f"Compared on the {plural(sets.common, 'case')} that both have; {' and '.join(only)}."
    whole = pair.comparison.completeness
    if max(whole.undecided_baseline, whole.undecided_candidate) > 0:
        lost = f"{percent(whole.undecided_baseline)} and {percent(whole.undecided_candidate)}"
        effect = "this does not turn the finding" if whole.harmless else "too many, or too unlike, to find anything"
        yield f"{against(pair)}: of the trials planned {lost} were not decided (baseline, candidate); {effect}."


def _new_cases(pairs: Sequence[ArmPair]) -> Table:
    heads, named_pairs = names(pairs)
    rows = [
        (
            *named,
            str(pair.comparison.new_cases.cases),
            f"{percent(pair.comparison.candidate.value)} / {percent(pair.comparison.baseline.value)}",
            with_interval(pair.comparison.new_cases.estimate),
            p_value(pair.new_cases_p),
            pair.new_cases,
        )
        for named, pair in zip(named_pairs, pairs, strict=True)
    ]
    title = f"New cases: would it hold on other questions like these?{_correction(pairs)}"
    figures = ("cases", "pass rates", "points, 95 %", "p", "finding")
    return Table(title, (*heads, *figures), tuple(rows), words=len(heads))


def _same_cases(pairs: Sequence[ArmPair]) -> Table:
    heads, named_pairs = names(pairs)
    rows = [
        (
            *named,
            str(pair.comparison.same_cases_test.varied),
            with_interval(pair.comparison.same_cases),
            p_value(pair.same_cases_p),
            pair.same_cases,
        )
        for named, pair in zip(named_pairs, pairs, strict=True)
    ]
    title = f"Same cases: would a rerun of these differ?{_correction(pairs)}"
    return Table(title, (*heads, "varied cases", "points, 95 %", "p", "finding"), tuple(rows), words=len(heads))


def _correction(pairs: Sequence[ArmPair]) -> str:
    return f" p corrected for {len(pairs)} pairs" if len(pairs) > 1 else ""


def _what_decides(pair: ArmPair) -> str:
    """What it would take to decide on new cases; nothing where it is decided."""
    needed = pair.comparison.needed
    if pair.new_cases != "too little evidence":
        return ""
    if needed.cases is None:
        equal = needed.cases_for_equivalence
        return "" if equal is None else f" To show that it is none: {plural(equal, 'case')} like these."
    repeats = "" if needed.repeats is None else f", or {plural(needed.repeats, 'repeat')} of these"
    return f" To decide, if that is the true gap: {plural(needed.cases, 'case')} like these{repeats}."


def _to_decide(found: Verdicts) -> Iterator[Table]:
    open_ones = [pair for pair in found.pairs if pair.new_cases == "too little evidence"]
    if len(found.pairs) > 1 and open_ones:
        heads, named_pairs = names(open_ones)
        rows = tuple(
            (*named, *(_count(count) for count in (needed.cases, needed.repeats, needed.cases_for_equivalence)))
            for named, needed in zip(named_pairs, (pair.comparison.needed for pair in open_ones), strict=True)
        )
        title = "What would decide on new cases, with 80 % power, if the gap seen is the true one"
        equal = f"cases to show ±{100 * found.margin:g} points"
        yield Table(title, (*heads, "cases", "or repeats", equal), rows, words=len(heads))


def _count(needed: int | None) -> str:
    return "no number" if needed is None else f"{needed:,}"


def _ranking(found: Verdicts) -> Iterator[Table]:
    if found.ranking:
        arms = len(found.ranking)
        rows = tuple(
            (
                arm.name,
                f"{arm.best}" if arm.best == arm.worst else f"{arm.best} to {arm.worst}",
                rate_with_interval(arm.rate),
            )
            for arm in found.ranking
        )
        title = f"Places on new cases, corrected for {plural(arms * (arms - 1) // 2, 'pair')}; a range is a tie"
        yield Table(title, ("arm", "place", "pass rate"), rows, words=1)


def _squares(squares: Sequence[SquareNote]) -> Iterator[Table]:
    if squares:
        rows = []
        for square in squares:
            made, (a1, b1, a2, b2) = square.interaction, square.arms
            gaps = (made.first_gap.estimate, made.second_gap.estimate)
            for over, under, rates, gap in ((a1, b1, made.cells[:2], gaps[0]), (a2, b2, made.cells[2:], gaps[1])):
                rows.append(
                    (
                        over.name,
                        under.name,
                        f"{percent(rates[0].value)} / {percent(rates[1].value)}",
                        with_interval(gap),
                        "",
                    )
                )
            rows.append(
                ("", "difference of the gaps", "", with_interval(made.difference.estimate), p_value(made.difference.p))
            )
        title = "Gaps under two harnesses, in points of the pass rate; near 100 % a gap must shrink"
        yield Table(title, ("arm", "minus", "pass rates", "points, 95 %", "p"), tuple(rows), words=2)


def _changes(pairs: Sequence[ArmPair]) -> Iterator[Listed]:
    widest = sorted(pairs, key=lambda pair: -abs(pair.comparison.new_cases.estimate.value or 0.0))
    for pair in widest[:_MOST_PAIRS]:
        yield from changed_cases(f"Cases that came out differently: {against(pair)}", pair.changes)


def _figures(pairs: Sequence[ArmPair]) -> Iterator[Table]:
    heads, named_pairs = names(pairs)
    rows = [(*named, *row) for named, pair in zip(named_pairs, pairs, strict=True) for row in figure_rows(pair.figures)]
    if rows:
        title = "Effort and latency: by what factor, over the cases that report it in both; p not corrected"
        yield Table(title, (*heads, "figure", "cases", "factor, 95 %", "p"), tuple(rows), words=len(heads) + 1)
