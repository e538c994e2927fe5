"""A gate's verdict on the terminal or as Markdown: the verdict in the first three lines, then what it rests on."""

from collections import Counter
from collections.abc import Iterator, Sequence

from evalfarm.analysis.judgement.gate import Gate, GatedArm
from evalfarm.analysis.judgement.nights import NightNote, RuleOdds
from evalfarm.analysis.statistics.drift import ALARM, Drift
from evalfarm.analysis.statistics.regression import NightlyRule, Suspect
from evalfarm.reports.comparison.blocks import Block, Listed, Said, Typed
from evalfarm.reports.comparison.parts import FIGURE_WORDS, caveats, changed_cases, figure_rows, some
from evalfarm.reports.comparison.points import p_value, points, told_p, with_interval
from evalfarm.reports.numbers import percent, plural
from evalfarm.reports.table import Table

_NIGHTS_APART = 0.05  #: of Q's p, below which nights spread more than reruns do
_MOST_SUSPECTS = 10
_LARGE_LEVEL = 10_000  #: of the slow-drift detector; how far beyond its alarm says no more


def report(found: Gate) -> list[Block]:
    """The whole report, for `blocks.to_terminal` and `blocks.to_markdown`."""
    with_night = [(arm, arm.night) for arm in found.arms if arm.night is not None]
    return [
        *_opening(found),
        *caveats([found.run]),
        *_against_what(found),
        *_nights(with_night),
        *_bars(found),
        *(block for arm, night in with_night for block in _behind(arm, night)),
        *_figures(with_night),
        *_rule(found.rule, with_night),
        *_next(found),
    ]


def _opening(found: Gate) -> Iterator[Block]:
    counts = Counter(arm.verdict for arm in found.arms)
    over = f" ({', '.join(f'{count} {verdict}' for verdict, count in counts.items())})" if len(found.arms) > 1 else ""
    yield Said(f"{found.verdict.upper()}: run {found.run.run}{over}", finding=True)
    first = min((arm for arm in found.arms if arm.verdict == found.verdict), key=_pass_rate)
    yield Said(f"{first.arm.name}: {'; '.join(first.reasons)}.", finding=True)
    if found.confirm_with is not None:
        yield Said("The screen fired. Run the fresh repeats with", finding=True)
        yield Typed(found.confirm_with)
    elif first.night is not None:
        yield Said(_rates(first.night), finding=True)


def _pass_rate(arm: GatedArm) -> float:
    """By which of several arms with one verdict a reader is told of the worst first."""
    rates = (arm.bar.value if arm.bar else None, arm.night.tonight.value if arm.night else None)
    return min((rate for rate in rates if rate is not None), default=1.0)


def _rates(night: NightNote) -> str:
    rates = f"{percent(night.tonight.value)} against {percent(night.baseline.value)}"
    nights = plural(night.nights, "night")
    return f"Pass rate {rates} over {nights}: {with_interval(night.change)} points on the same cases."


def _against_what(found: Gate) -> Iterator[Block]:
    label = f", label {found.run.label}" if found.run.label else ""
    yield Said(f"Run {found.run.run} of suite {found.run.suite}{label}, isolation {found.run.isolation}")
    if found.baselines:
        yield Said(f"Baseline, oldest first: {', '.join(found.baselines)}")
    if found.confirm:
        yield Said(f"Confirm run: {found.confirm}")
    lines = dict.fromkeys(line for arm in found.arms if arm.night is not None for line in _notes(arm, arm.night))
    if found.without_baseline:
        lines[f"Not in any baseline: {', '.join(arm.name for arm in found.without_baseline)}"] = None
    if lines:
        yield Listed("Read this first", tuple(lines))


def _notes(arm: GatedArm, night: NightNote) -> Iterator[str]:
    yield from (f"Changed since the baseline: {mismatch}" for mismatch in night.differing)
    sets = night.cases
    if sets.only_candidate or sets.only_baseline:
        new, gone = sets.only_candidate, sets.only_baseline
        only = [f"{len(cases)} {words} ({some(cases)})" for cases, words in ((new, "new"), (gone, "gone")) if cases]
        yield f"Judged on the {plural(sets.common, 'case')} that were asked before; {' and '.join(only)}."
    if night.dispersion.p < _NIGHTS_APART:
        yield (
            f"{arm.arm.name}: the nights of the baseline lie further apart than reruns do "
            f"(φ = {night.dispersion.factor:.1f}, {told_p(night.dispersion.p)}); "
            "run the old build beside the new one."
        )
    if night.drift.alarm_night is not None and not night.drifted:
        yield f"{arm.arm.name}: the slow-drift detector alarmed on an earlier night of the baseline."
    yield from (f"{arm.arm.name}: {FIGURE_WORDS[figure]} rose, for information." for figure in night.risen)


def _nights(arms: Sequence[tuple[GatedArm, NightNote]]) -> Iterator[Table]:
    if arms:
        rows = tuple(
            (
                arm.arm.name,
                arm.verdict,
                f"{percent(night.tonight.value)} / {percent(night.baseline.value)}",
                with_interval(night.change),
                p_value(night.p_screen),
                p_value(night.p_confirm),
                _level(night.drift),
            )
            for arm, night in arms
        )
        heads = ("arm", "verdict", "tonight / before", "points, 95 %", "p screen", "p confirm", "drift")
        yield Table(f"Against the nights before, on the same cases; drift alarms at {ALARM:.0f}", heads, rows, words=2)


def _level(drift: Drift) -> str:
    if not drift.levels:
        return ""
    return f"{drift.levels[-1]:.1f}" if drift.levels[-1] < _LARGE_LEVEL else f">{_LARGE_LEVEL:,}"


def _bars(found: Gate) -> Iterator[Table]:
    rows = tuple(
        (
            arm.arm.name,
            arm.bar.verdict,
            percent(arm.bar.value),
            percent(arm.bar.at_least),
            percent(arm.bar.at_most),
            "" if arm.bar.cases_needed is None else f"{arm.bar.cases_needed:,}",
        )
        for arm in found.arms
        if arm.bar is not None
    )
    if rows:
        title = f"Against the bar of {percent(found.at_least)}, on cases like these, each limit with 95 % confidence"
        heads = ("arm", "finding", "pass rate", "at least", "at most", "cases to decide")
        needed = any(arm.bar is not None and arm.bar.cases_needed is not None for arm in found.arms)
        note = "Cases to decide: like these, were the rate seen the true one." if needed else ""
        yield Table(title, heads, rows, words=2, note=note)


def _behind(arm: GatedArm, night: NightNote) -> Iterator[Block]:
    """What may be behind an alert, and the cases that came out differently where there was one or may be."""
    for title, found in (("Slices", night.slices), ("Cases", night.suspects)):
        shown = [suspect for suspect in found if suspect.named][:_MOST_SUSPECTS]
        if found:
            lines = tuple(_suspect(suspect) for suspect in shown) or ("none can be named from these trials alone",)
            yield Listed(f"{title} behind the drop of {arm.arm.name} (of {len(found)} looked at, corrected)", lines)
    if night.to_confirm or (arm.verdict == "regressed" and not any(case.named for case in night.suspects)):
        losses = [change for change in night.changes if change.change < 0]
        yield from changed_cases(f"Cases that lost: {arm.arm.name}, tonight against before", losses)


def _suspect(suspect: Suspect) -> str:
    return f"{suspect.name}: {points(suspect.change)} points, {told_p(suspect.p_adjusted)}"


def _figures(arms: Sequence[tuple[GatedArm, NightNote]]) -> Iterator[Table]:
    rows = tuple((arm.arm.name, *row) for arm, night in arms for row in figure_rows(night.figures))
    if rows:
        title = "Effort and latency: by what factor since the baseline; for information"
        yield Table(title, ("arm", "figure", "cases", "factor, 95 %", "p"), rows, words=2)


def _rule(rule: NightlyRule, arms: Sequence[tuple[GatedArm, NightNote]]) -> Iterator[Block]:
    known = [(arm, night.odds) for arm, night in arms if night.odds is not None]
    if not arms:
        return
    yield Listed(
        "The rule",
        (
            f"Screen at p ≤ {rule.screen:g}, then {plural(rule.confirm_repeats, 'fresh repeat')} of every case.",
            f"Alert at p ≤ {rule.confirm:g} over both, if the drop is {100 * rule.least_drop:g} points or more.",
            f"Baseline: the last {rule.most_nights} accepted nights, {rule.least_nights} at least.",
            *(() if known else ("How often it errs here cannot be told: that takes two nights, and repeats.",)),
        ),
    )
    if known:
        drops = [f"{100 * power.drop:g} points" for power in known[0][1].power]
        rows = tuple(_odds(arm, odds) for arm, odds in known)
        title = "How often the rule errs on a suite of this size and steadiness: alerts on a night of …"
        yield Table(title, ("arm", "nights", "no change", *drops), rows, words=1)


def _odds(arm: GatedArm, odds: RuleOdds) -> tuple[str, ...]:
    told = f"{odds.false_alarm:.4f}" if odds.false_alarm >= 0.00005 else "<0.0001"
    return arm.arm.name, str(odds.nights), told, *(f"{power.power:.2f}" for power in odds.power)


def _next(found: Gate) -> Iterator[Block]:
    """Where the trials behind a verdict that asks for a look are told of; rows from elsewhere are in no store."""
    if found.verdict in ("regressed", "inconclusive") and found.run.suite_version is not None:
        yield Listed("Next", (f"evalfarm report {found.run.run}: what did not pass, why, and how to see each trial",))
