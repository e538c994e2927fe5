"""What each grader said, case by case, and how far a run covers the categories of its suite."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.answer import GRADERS
from evalfarm.contracts.suite import Suite
from evalfarm.contracts.verdict import VERDICTS, CaseSummary, CategoryCoverage, GraderTally

_TALLIES = """
SELECT "case", model, harness, variant, grader, passed, failed, inconclusive FROM grades
"""


def with_labels(rows: Rows, suite: Suite, cases: Sequence[CaseSummary]) -> tuple[CaseSummary, ...]:
    """The cases with their category and with what each grader said; `rows` are those of a run."""
    tallies: Mapping[tuple[str, str, str, str], list[GraderTally]] = defaultdict(list)
    for case, model, harness, variant, grader, passed, failed, inconclusive in rows.records(_TALLIES):
        tally = GraderTally(grader=grader, passed=passed, failed=failed, inconclusive=inconclusive)
        tallies[case, model, harness, variant].append(tally)
    of = {case.id: case.category for case in suite.cases}
    return tuple(
        case.model_copy(
            update={
                "category": of[case.case],
                "by_grader": tuple(
                    sorted(
                        tallies[case.case, case.model, case.harness, case.variant], key=lambda one: _place(one.grader)
                    )
                ),
            }
        )
        for case in cases
    )


def coverage(suite: Suite, cases: Sequence[CaseSummary]) -> tuple[CategoryCoverage, ...]:
    """Every category of the suite, in its order, with the trials of its cases over all arms."""
    named = dict(suite.categories) | {c.category: "" for c in suite.cases if c.category and not suite.categories}
    found = []
    for category, about in named.items():
        inside = [case for case in cases if case.category == category]
        counts = {verdict: sum(case.labels[verdict] for case in inside) for verdict in VERDICTS}
        found.append(
            CategoryCoverage(
                category=category,
                about=about,
                cases=len({case.case for case in inside}),
                planned=sum(counts.values()),
                **counts,
            )
        )
    return tuple(found)


def unresolved(suite: Suite, cases: Sequence[str]) -> tuple[str, ...]:
    """Of these cases those whose right answer leaves open what was asked."""
    references = {case.id: case.reference for case in suite.cases}
    return tuple(
        case
        for case in cases
        if (reference := references[case]) is not None and not suite.judgements[reference.judgement].resolves
    )


def disputed(suite: Suite, cases: Sequence[str]) -> tuple[str, ...]:
    """Of these cases those whose reference reviewers disagree on."""
    references = {case.id: case.reference for case in suite.cases}
    return tuple(case for case in cases if (found := references[case]) is not None and found.disputed)


def _place(grader: str) -> tuple[int, str]:
    return (GRADERS.index(grader) if grader in GRADERS else len(GRADERS), grader)
