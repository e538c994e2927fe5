"""Tables that have a row per case, or per slice of the cases."""

from collections.abc import Iterable

from evalfarm.contracts.verdict import CaseSummary, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import findings
from evalfarm.reports.run.tables import Table


def slices(summary: RunSummary) -> Table:
    """Every slice by a tag."""
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
