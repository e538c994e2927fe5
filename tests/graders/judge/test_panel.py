from collections.abc import Callable

import pytest

from evalfarm.contracts.judging import CriterionLabel, Opinion, TrialOpinions
from evalfarm.contracts.run import Arm, Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, LabelValue, Result
from graders.judge.panel import conclude, label_of


def said(judge: str, *values: LabelValue) -> Opinion:
    labels = [CriterionLabel(criterion=f"c{at}", value=one, quote="so", reason="R.") for at, one in enumerate(values)]
    return Opinion(judge=judge, labels=tuple(labels))


FAILED = Opinion(judge="j", failure="HTTP 503", outage=True)


@pytest.fixture
def plan() -> Plan:
    case = Case(id="a", turns=("Q?",))
    suite = Suite(suite="s", version="1", plugin=Plugin(name="P"), server=Server(python="s.py"), cases=(case,))
    arm = Arm(model="m", harness="loop", variant="plain")
    return Plan(run="s-1", suite=suite, arms=(arm,), cases=("a",), repeats=1, judges=("j",))


@pytest.fixture
def result(plan: Plan) -> Callable[[LabelValue], Result]:
    def made(route: LabelValue) -> Result:
        label = Label(grader="tool_route", version="1", value=route)
        return Result(trial=plan.trial(0), attempt=1, outcome="finished", verdict="passed", labels=(label,))

    return made


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (("PASS", "PASS"), "PASS"),
        (("PASS", "FAIL"), "FAIL"),
        (("INCONCLUSIVE", "FAIL"), "FAIL"),
        (("PASS", "INCONCLUSIVE"), "INCONCLUSIVE"),
    ],
)
def test_one_fail_fails_and_then_one_abstention_leaves_open(values: tuple[LabelValue, ...], told: LabelValue) -> None:
    assert label_of([said("j", *values)]).value == told


def test_a_fail_names_criterion_reason_and_quote() -> None:
    assert label_of([said("j", "PASS", "FAIL")]).reasons == ("fails 'c1': R. (“so”)",)
    assert label_of([said("j", "PASS")]).reasons == ()


def test_judges_that_disagree_leave_it_inconclusive_and_say_who_says_what() -> None:
    label = label_of([said("j", "PASS"), said("k", "FAIL")])
    assert (label.value, label.reasons) == (
        "INCONCLUSIVE",
        ("the judges disagree: j says PASS; k says FAIL", "k: fails 'c0': R. (“so”)"),
    )


def test_a_judge_that_failed_is_never_a_fail_of_the_answer() -> None:
    label = label_of([FAILED])
    assert (label.value, label.reasons) == ("INCONCLUSIVE", ("the judge gave no label: HTTP 503",))


def test_the_first_attempt_that_reached_every_judge_counts(plan: Plan, result: Callable[..., Result]) -> None:
    attempts = [
        TrialOpinions(run="s-1", index=0, judged=1, attempt=number, opinions=(one,))
        for number, one in enumerate((FAILED, said("j", "FAIL"), said("j", "PASS")), start=1)
    ]
    found = conclude(plan, result("PASS"), attempts, "")
    assert (found.verdict, [label.value for label in found.labels]) == ("failed", ["PASS", "FAIL"])


def test_without_an_opinion_it_is_inconclusive_and_a_failed_route_stays_failed(
    plan: Plan, result: Callable[..., Result]
) -> None:
    found = conclude(plan, result("PASS"), (), "the judges' budget of $1 was spent")
    assert (found.verdict, found.labels[-1].reasons) == ("inconclusive", ("the judges' budget of $1 was spent",))
    assert conclude(plan, result("FAIL"), (), "spent").verdict == "failed"


def test_a_later_conclusion_replaces_the_judge_s_label(plan: Plan, result: Callable[..., Result]) -> None:
    once = conclude(plan, result("PASS"), (), "lost")
    again = conclude(
        plan, once, [TrialOpinions(run="s-1", index=0, judged=1, attempt=1, opinions=(said("j", "PASS"),))], ""
    )
    assert (again.verdict, [label.grader for label in again.labels]) == ("passed", ["tool_route", "judge"])
