"""Tables that have a row per case, per reading of the levels, or per slice of the cases."""

from collections import Counter
from collections.abc import Iterable, Sequence

from evalfarm.analysis.arm_name import ArmName
from evalfarm.contracts.verdict import CaseSummary, FirstBreak, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import findings
from evalfarm.reports.table import Table

_MOST_NAMED = 6


def slices(summary: RunSummary) -> Table:
    """Every slice by a tag; no row where no value of a tag has two cases and leaves some out."""
    return Table(
        title="By tag",
        heads=("tag", "arm", "passed", "pass rate, %", "D, %"),
        rows=tuple(
            (
                f"{part.tag}={part.tag_value}",
                findings.arm(part),
                f"{part.passed:,} of {part.passed + part.failed:,}",
                numbers.bare_rate(part.pass_rate),
                numbers.bare_rate(part.disagreement),
            )
            for part in summary.slices
        ),
        words=2,
        note=_of_one_case(summary),
    )


def _of_one_case(summary: RunSummary) -> str:
    """The values that are no slice because a single case has them."""
    held = Counter(
        (f"{tag}={value}", ArmName.of(case)) for case in summary.cases for tag, value in sorted(case.tags.items())
    )
    most: dict[str, int] = {}
    for (name, _), cases in held.items():
        most[name] = max(most.get(name, 0), cases)
    alone = [name for name, cases in most.items() if cases == 1]
    if not alone:
        return ""
    more = f" and {len(alone) - _MOST_NAMED} more" if alone[_MOST_NAMED:] else ""
    named = ", ".join(alone[:_MOST_NAMED]) + more
    return f"One case, so no interval and no row: {numbers.plural(len(alone), 'value')} ({named})."


def breaks(readings: Sequence[FirstBreak]) -> Table:
    """The readings that did not hold, those that broke first; no row where all held."""
    levels = findings.levels(readings)
    shown = [reading for reading in findings.breaks_first(readings) if findings.end(reading) != findings.HELD]
    held = len(readings) - len(shown)
    which = "The other" if shown else "All"
    return Table(
        title="Which level broke first (passed/decided)",
        heads=("case", "model", "variant", "broke first", *levels),
        rows=tuple(
            (
                reading.case,
                reading.model,
                reading.variant,
                findings.end(reading),
                *(reading.passed.get(level, "") for level in levels),
            )
            for reading in shown
        ),
        words=4,
        note=f"{which} {numbers.plural(held, 'reading')} held." if held else "",
    )


def flipping(cases: Iterable[CaseSummary]) -> Table:
    """Cases that both passed and failed, in the order given."""
    return Table(
        title="Cases that flipped, steadiest to shakiest",
        heads=("case", "model", "harness", "variant", "passed", "failed"),
        rows=tuple(
            (
                case.case,
                case.model,
                case.harness,
                case.variant,
                f"{case.labels['passed']:,}",
                f"{case.labels['failed']:,}",
            )
            for case in cases
        ),
        words=4,
    )
