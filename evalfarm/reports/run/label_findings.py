"""What a report says first of route and answer, and of what the labels leave open."""

from collections.abc import Sequence

from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.numbers import plural

GRADER_WORDS = {"tool_route": "route", "answer": "answer", "judge": "judge"}
_CASES_NAMED = 3


def where_it_failed(summary: RunSummary) -> str:
    """One sentence on the side that failed, grader by grader; empty where only the route was judged."""
    graders = graders_of(summary)
    told = "; ".join(_failed(summary, grader) for grader in graders)
    return f"{told[:1].upper()}{told[1:]}." if len(graders) > 1 else ""


def graders_of(summary: RunSummary) -> tuple[str, ...]:
    """The graders that labelled anything, in the order in which they label."""
    found = {tally.grader for case in summary.cases for tally in case.by_grader}
    known = [grader for grader in GRADER_WORDS if grader in found]
    return (*known, *sorted(found - set(known)))


def word(grader: str) -> str:
    """A grader as a reader knows it."""
    return GRADER_WORDS.get(grader, grader)


def left_open(summary: RunSummary) -> tuple[str, ...]:
    """What the cases do not cover and the labels do not decide, a sentence each."""
    said = []
    if empty := [one.category for one in summary.categories if not one.cases]:
        said.append(f"Not covered: no case of {', '.join(empty)} was run.")
    if summary.unresolved:
        subject = f"{plural(len(summary.unresolved), 'case')} ({_named(summary.unresolved)})"
        said.append(f"Left open: a right answer to {subject} says what is missing, and settles nothing.")
    if summary.disputed:
        said.append(f"Disputed: reviewers disagree on the reference of {_named(summary.disputed)}; none is judged.")
    return tuple(said)


def _failed(summary: RunSummary, grader: str) -> str:
    told = [(case.case, tally) for case in summary.cases for tally in case.by_grader if tally.grader == grader]
    total = sum(tally.passed + tally.failed + tally.inconclusive for _, tally in told)
    failed, open_ones = (sum(getattr(tally, name) for _, tally in told) for name in ("failed", "inconclusive"))
    cases = tuple(dict.fromkeys(case for case, tally in told if tally.failed))
    where = f" ({_named(cases)})" if cases else ""
    undecided = f", {open_ones:,} inconclusive" if open_ones else ""
    return f"{word(grader)} failed in {failed:,} of {plural(total, 'trial')}{where}{undecided}"


def _named(cases: Sequence[str]) -> str:
    more = len(cases) - _CASES_NAMED
    return ", ".join(cases[:_CASES_NAMED]) + (f" and {more} more" if more > 0 else "")
