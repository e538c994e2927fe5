"""What a report says of route and answer: in its first lines, in a table, and of what they leave open."""

from io import StringIO

import pytest
from rich.console import Console

from evalfarm.contracts.verdict import CategoryCoverage, GraderTally, Label, Result, RunSummary
from evalfarm.reports.run import label_tables, markdown, page, terminal
from evalfarm.reports.run.findings import caveats, headlines
from evalfarm.reports.run.label_findings import where_it_failed
from evalfarm.reports.run.regraded import side_by_side

CATEGORY = {"passed": 0, "failed": 0, "inconclusive": 0, "infra_failed": 0, "not_run": 0}


def tally(grader: str, passed: int, failed: int = 0, inconclusive: int = 0) -> GraderTally:
    return GraderTally(grader=grader, passed=passed, failed=failed, inconclusive=inconclusive)


@pytest.fixture
def labelled(summary: RunSummary) -> RunSummary:
    """A summary whose first case fails by its answer."""
    first, *rest = summary.cases
    failing = first.model_copy(update={"by_grader": (tally("tool_route", 3), tally("answer", 0, 2, 1))})
    others = [case.model_copy(update={"by_grader": (tally("tool_route", 1),)}) for case in rest]
    return summary.model_copy(
        update={
            "cases": (failing, *others),
            "categories": (
                CategoryCoverage(category="plain", cases=2, planned=6, **{**CATEGORY, "passed": 4, "failed": 2}),
                CategoryCoverage(category="other", cases=0, planned=0, **CATEGORY),
            ),
            "unresolved": ("one", "two", "three", "four"),
            "disputed": ("five",),
        }
    )


def test_the_second_line_says_which_side_failed_and_where(labelled: RunSummary) -> None:
    routes = 2 + len(labelled.cases)
    answer = f"answer failed in 2 of 3 trials ({labelled.cases[0].case}), 1 inconclusive"
    told = f"Route failed in 0 of {routes} trials; {answer}."
    assert where_it_failed(labelled) == told
    assert headlines(labelled)[1] == told


def test_nothing_is_said_of_sides_where_only_the_route_was_judged(summary: RunSummary) -> None:
    assert where_it_failed(summary) == ""
    assert label_tables.shown(summary) == ()


def test_what_is_left_open_is_said_beside_the_caveats(labelled: RunSummary) -> None:
    assert [said for said in caveats(labelled) if said.split(":")[0] in ("Not covered", "Left open", "Disputed")] == [
        "Not covered: no case of other was run.",
        "Left open: a right answer to 4 cases (one, two, three and 1 more) says what is missing, and settles nothing.",
        "Disputed: reviewers disagree on the reference of five; none is judged.",
    ]


def test_labels_and_coverage_are_told_in_every_form(labelled: RunSummary) -> None:
    printed = StringIO()
    terminal.render(labelled, console=Console(file=printed, width=100))
    for text in (printed.getvalue(), markdown.render(labelled), page.render(labelled)):
        assert "Labels by grader" in text
        assert "Coverage by category, over all arms" in text
        assert "none of this is accuracy in production" in text


def test_regraded_trials_are_told_side_by_side(labelled: RunSummary) -> None:
    trial = {
        "index": 3,
        "case": "one",
        "repeat": 0,
        "arm": {"model": "m", "harness": "loop", "variant": "plain"},
        "seed": 1,
    }

    def result(verdict: str, *labels: Label) -> Result:
        told = {"trial": trial, "attempt": 1, "outcome": "finished", "verdict": verdict, "labels": labels}
        return Result.model_validate(told)

    route = Label(grader="tool_route", version="1", value="PASS")
    answer = Label(grader="answer", version="1", value="FAIL", reasons=("it claims a refund", "and more"))
    assert side_by_side([result("passed", route)], [result("failed", route, answer)]) == [
        "Regraded 1 trial, by tool_route 1 before and tool_route 1, answer 1 now: 1 trial labelled otherwise,"
        " 1 verdict changed. The run keeps what it was told.",
        "  trial 3 (one): passed → failed",
        "    tool_route: PASS (1) → PASS (1)",
        "    answer: no label → FAIL (1)",
        "      it claims a refund",
    ]
