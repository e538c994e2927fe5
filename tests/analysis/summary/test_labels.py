"""Labels by grader and by case, and the coverage of a suite's categories, from stored results."""

from typing import Any

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.run import Arm, Plan, Trial
from evalfarm.contracts.suite import Suite
from evalfarm.contracts.verdict import CategoryCoverage, GraderTally, Label, Result, RunSummary, Verdict
from scheduler.planner import Measured, manifest_of

REFERENCE = {"because": "So it is.", "rests_on": ["request"]}
SUITE = Suite.model_validate(
    {
        "suite": "desk",
        "version": "1",
        "plugin": {"name": "Desk"},
        "server": {"python": "server.py"},
        "categories": {"plain": "an ordinary case", "edge": "on the edge", "other": "nothing yet"},
        "judgements": {"yes": {"meaning": "Yes"}, "open": {"meaning": "Open", "resolves": False}},
        "cases": [
            {"id": "a", "query": "a?", "category": "plain", "reference": {"judgement": "yes", **REFERENCE}},
            {"id": "b", "query": "b?", "category": "edge", "reference": {"judgement": "open", **REFERENCE}},
            {
                "id": "c",
                "query": "c?",
                "category": "edge",
                "reference": {"judgement": "yes", "disputed": True, **REFERENCE},
            },
        ],
    }
)
PLAN = Plan(
    run="r1",
    suite=SUITE,
    arms=(Arm(model="sim-careful", harness="loop", variant="plain"),),
    cases=("a", "b", "c"),
    repeats=2,
)


def result(trial: Trial, verdict: Verdict, **labels: Any) -> Result:
    made = tuple(Label(grader=grader, version="1", value=value) for grader, value in labels.items())
    return Result(trial=trial, attempt=1, outcome="finished", verdict=verdict, labels=made)


def summary() -> RunSummary:
    said: dict[str, list[tuple[Verdict, dict[str, Any]]]] = {
        "a": [
            ("passed", {"tool_route": "PASS", "answer": "PASS"}),
            ("failed", {"tool_route": "PASS", "answer": "FAIL"}),
        ],
        "b": [("inconclusive", {"tool_route": "PASS", "answer": "INCONCLUSIVE"}), ("failed", {"tool_route": "FAIL"})],
        "c": [("passed", {"tool_route": "PASS"})],
    }
    results = [
        result(trial, said[trial.case][trial.repeat][0], **said[trial.case][trial.repeat][1])
        for trial in map(PLAN.trial, range(PLAN.size))
        if trial.repeat < len(said[trial.case])
    ]
    manifest = manifest_of(
        PLAN, Measured(versions={}, digests={}, simulated=True), created_at=0.0, label=None, filters={}
    )
    return summarize(manifest, PLAN, results, attempts=5, finished=False)


def tally(grader: str, passed: int, failed: int, inconclusive: int) -> GraderTally:
    return GraderTally(grader=grader, passed=passed, failed=failed, inconclusive=inconclusive)


def test_each_case_is_told_with_its_category_and_each_graders_labels() -> None:
    assert [(case.case, case.category, case.by_grader) for case in summary().cases] == [
        ("a", "plain", (tally("tool_route", 2, 0, 0), tally("answer", 1, 1, 0))),
        ("b", "edge", (tally("tool_route", 1, 1, 0), tally("answer", 0, 0, 1))),
        ("c", "edge", (tally("tool_route", 1, 0, 0),)),
    ]


def test_every_category_is_told_also_one_without_a_case() -> None:
    nothing = {"passed": 0, "failed": 0, "inconclusive": 0, "infra_failed": 0, "not_run": 0}
    assert summary().categories == (
        CategoryCoverage(
            category="plain", about="an ordinary case", cases=1, planned=2, **nothing | {"passed": 1, "failed": 1}
        ),
        CategoryCoverage(
            category="edge",
            about="on the edge",
            cases=2,
            planned=4,
            **nothing | {"passed": 1, "failed": 1, "inconclusive": 1, "not_run": 1},
        ),
        CategoryCoverage(category="other", about="nothing yet", cases=0, planned=0, **nothing),
    )


def test_what_a_right_answer_leaves_open_and_what_reviewers_dispute_is_named() -> None:
    found = summary()
    assert (found.unresolved, found.disputed) == (("b",), ("c",))
