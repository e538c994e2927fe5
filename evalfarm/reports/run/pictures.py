"""Which pictures a page shows of a summary, each with the table of what it draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evalfarm.contracts.verdict import VERDICTS, CaseSummary, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import findings, plots
from evalfarm.reports.run.pairs import Pair, pair_of
from evalfarm.reports.table import Table

_ARM = ("model", "harness", "variant")


@dataclass(frozen=True, slots=True)
class Drawn:
    """One drawing under its caption; without one where the picture has no other."""

    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Picture:
    """One or more drawings of a kind, with their table."""

    anchor: str  #: its name within the page
    title: str
    note: str
    drawings: tuple[Drawn, ...]
    table: Table


def pictures(summary: RunSummary) -> tuple[Picture, ...]:
    """Those that the summary has figures for."""
    pair = pair_of(summary)
    found = (_heat_maps(summary), _flip_curves(summary), None if pair is None else _paired(pair), _latencies(summary))
    return tuple(picture for picture in found if picture is not None)


def _heat_maps(summary: RunSummary) -> Picture | None:
    if all(len(case.verdicts) < 2 for case in summary.cases):
        return None
    by_arm = {arm: findings.steadiest_first(cases) for arm, cases in findings.by_arm(summary.cases).items()}
    heads = ("case", *_ARM, *(findings.VERDICT_WORDS[verdict] for verdict in VERDICTS))
    rows = tuple(_counted(case) for cases in by_arm.values() for case in cases)
    return Picture(
        anchor="steadiness-map",
        title="Case by repeat",
        note="A row is a case, steadiest first; a column is a repeat. Faint passed, strong failed; half a field is"
        " inconclusive, a core alone lost to infrastructure, a thin line not run.",
        drawings=tuple(Drawn(arm, plots.heat_map(cases)) for arm, cases in by_arm.items()),
        table=Table("Verdicts by case", heads, rows, words=4),
    )


def _counted(case: CaseSummary) -> tuple[str, ...]:
    return (case.case, case.model, case.harness, case.variant, *(f"{case.labels[verdict]:,}" for verdict in VERDICTS))


def _flip_curves(summary: RunSummary) -> Picture | None:
    shown = [cell for cell in summary.cells if len(cell.rarefied_flips) >= 2]
    if not shown:
        return None
    rows = tuple(
        (cell.model, cell.harness, cell.variant, f"{of.k}", numbers.rate_with_interval(of.rate), f"{of.cases:,}")
        for cell in shown
        for of in cell.rarefied_flips
    )
    return Picture(
        anchor="flip-curves",
        title="Flips against repeats",
        note="The flip rate that so many repeats would show, with its 95 % interval: more repeats find more flips.",
        drawings=tuple(Drawn(findings.arm(cell), plots.flips_by_repeats(cell.rarefied_flips)) for cell in shown),
        table=Table("Flip rate by repeats", (*_ARM, "repeats", "flip rate", "cases"), rows),
    )


def _paired(pair: Pair) -> Picture:
    mean = pair.mean
    said = f"{numbers.points(mean.value)} points [{numbers.points(mean.low)}, {numbers.points(mean.high)}]"
    return Picture(
        anchor="paired",
        title="Arm against arm, case by case",
        note=f"Pass share of {findings.arm(pair.candidate)} less that of {findings.arm(pair.baseline)}; the band is the"
        f" mean with its 95 % interval for new cases, {said}.",
        drawings=(Drawn("", plots.paired_differences(pair)),),
        table=Table(
            "Difference by case, in points",
            ("case", "difference"),
            tuple((case, numbers.points(difference)) for case, difference in pair.differences),
            words=1,
        ),
    )


def _latencies(summary: RunSummary) -> Picture | None:
    shown = [cell for cell in summary.cells if any(cell.latency_measures_s.deciles)]
    if not shown:
        return None
    rows = tuple(
        (
            cell.model,
            cell.harness,
            cell.variant,
            *_beyond([*cell.latency_measures_s.deciles, cell.latency_s.p95]),
        )
        for cell in shown
    )
    heads = (*_ARM, *(f"p{tenth}0" for tenth in range(1, 10)), "p95")
    return Picture(
        anchor="latencies",
        title="Latency on a log axis",
        note="A line from p10 to p90, thick from p30 to p70, a dot at the median, a bar at p95; waiting left out."
        " What lies beyond the time limit is not drawn.",
        drawings=(Drawn("", plots.latencies(shown)),),
        table=Table("Quantiles of latency, in seconds", heads, rows),
    )


def _beyond(quantiles: Sequence[float | None]) -> list[str]:
    return ["beyond the limit" if seconds is None else numbers.seconds(seconds) for seconds in quantiles]
