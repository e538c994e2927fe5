"""What a comparison says of each whole run: versions, categories, the plan and whether it was carried out."""

from evalfarm.analysis.judgement.notes import RunNote
from evalfarm.analysis.judgement.record import CaseLabels, RunRecord
from evalfarm.reports.comparison.blocks import Listed
from evalfarm.reports.comparison.record import whole_run
from evalfarm.reports.table import Table

WHOLE = RunRecord(
    versions={"suite desk": "2", "grader": "sha256:" + "ab" * 32},
    categories={"edge": 2, "other": 0},
    cases=2,
    arms=1,
    repeats=3,
    planned=6,
    not_run=0,
    infra_failed=0,
    labels=(CaseLabels("a", "tool_route", 3, 0, 0), CaseLabels("a", "answer", 1, 2, 0)),
    unresolved=(),
    disputed=(),
    disagreements=(),
    gaps=(),
)
CUT_SHORT = RunRecord(
    versions={"suite desk": "3"},
    categories={},
    cases=2,
    arms=1,
    repeats=3,
    planned=6,
    not_run=2,
    infra_failed=1,
    labels=(CaseLabels("a", "tool_route", 1, 0, 1),),
    unresolved=("b",),
    disputed=("a",),
    disagreements=("r-2/4",),
    gaps=("the witnesses disagree",),
)


def note(run: str, record: RunRecord | None) -> RunNote:
    return RunNote(run, None, "desk", "2", simulated=True, synthetic=True, isolation="cell", record=record)


def test_each_run_is_told_with_what_it_tested_and_what_it_left_undone() -> None:
    assert list(whole_run([note("r-1", WHOLE), note("r-2", CUT_SHORT)])) == [
        Listed(
            "What run r-1 is about",
            (
                "Versions: suite desk 2, grader abababababab",
                "Cases by category: edge 2; without a case: other. Coverage, no accuracy in production",
                "Repetition plan: 2 cases × 1 arm × 3 repeats, 6 trials, carried out in full",
                "Disputed references: none",
                "Open disagreements between labels: none",
            ),
        ),
        Listed(
            "What run r-2 is about",
            (
                "Versions: suite desk 3",
                "Repetition plan: 2 cases × 1 arm × 3 repeats, 6 trials, NOT carried out in full",
                "Planned and not run: 2 trials",
                "Run and lost to infrastructure: 1 trial",
                "Disputed references: a",
                "Open disagreements between labels: 1 answer (r-2/4)",
                "Left open by a right answer: 1 case (b)",
                "Unresolved gap: the witnesses disagree",
            ),
        ),
        Table(
            "Labels by case, PASS / FAIL / INCONCLUSIVE, where one is no PASS",
            ("case", "grader", "r-1", "r-2"),
            (("a", "route", "3 / 0 / 0", "1 / 0 / 1"), ("a", "answer", "1 / 2 / 0", "not run")),
            words=2,
        ),
    ]


def test_nothing_is_told_of_rows_whose_plan_is_not_known() -> None:
    assert list(whole_run([note("rows.csv", None)])) == []
