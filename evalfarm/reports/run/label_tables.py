"""Route, answer and judge apart, and the coverage of the suite's categories, as tables."""

from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run import findings
from evalfarm.reports.run.label_findings import graders_of, word
from evalfarm.reports.table import Table


def shown(summary: RunSummary) -> tuple[Table, ...]:
    """Those that say more than the verdicts do."""
    found = [labels(summary)] if len(graders_of(summary)) > 1 else []
    return (*found, coverage(summary)) if summary.categories else tuple(found)


def labels(summary: RunSummary) -> Table:
    """Each grader's labels, arm by arm."""
    rows = []
    for cell in summary.cells:
        arm = findings.arm(cell)
        cases = [case for case in summary.cases if findings.arm(case) == arm]
        for grader in graders_of(summary):
            told = [tally for case in cases for tally in case.by_grader if tally.grader == grader]
            if told:
                counts = (sum(getattr(tally, name) for tally in told) for name in ("passed", "failed", "inconclusive"))
                rows.append((arm, word(grader), *(f"{count:,}" for count in counts)))
    note = "A right route does not make an answer right, and a fluent answer does not mend a wrong route."
    return Table(
        "Labels by grader", ("arm", "grader", "PASS", "FAIL", "INCON-\nCLUSIVE"), tuple(rows), words=2, note=note
    )


def coverage(summary: RunSummary) -> Table:
    """Every category of the suite, those without a case too."""
    return Table(
        title="Coverage by category, over all arms",
        heads=("category", "cases", "planned", "passed", "failed", "not\ndecided"),
        rows=tuple(
            (
                one.category,
                *(f"{n:,}" for n in (one.cases, one.planned, one.passed, one.failed)),
                f"{one.inconclusive + one.infra_failed + one.not_run:,}",
            )
            for one in summary.categories
        ),
        words=1,
        note="The cases were chosen by kind, not drawn from traffic: none of this is accuracy in production.",
    )
