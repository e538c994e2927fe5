import itertools
from collections.abc import Callable, Sequence

import pytest
import redis

from evalfarm.broker import App
from evalfarm.contracts.answer import Criterion, Rubric
from evalfarm.contracts.judging import CriterionLabel, JudgingTally, Opinion, TrialOpinions
from evalfarm.contracts.run import Arm, Outcome, Plan
from evalfarm.contracts.suite import Case, DirectCall, JudgeOptions, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, LabelValue, Result, RunSummary
from evalfarm.judgings import Judgings
from evalfarm.runstate import Handed, JudgingQueue
from evalfarm.store import Store
from scheduler.judging import HOLD_S, Judging, judging_plan, tally_of, with_judging


@pytest.fixture
def plan() -> Plan:
    """Two cases, one of them with a rubric, × 3 repeats at `loop` and `direct`: 12 trials, 3 of them to be judged."""
    suite = Suite(
        suite="shop",
        version="1",
        plugin=Plugin(name="Shop"),
        server=Server(python="server.py"),
        rubrics=(Rubric(id="desk", version="1", criteria=(Criterion(id="right", text="It is right."),)),),
        judging=JudgeOptions(concurrency=2, max_cost_usd=10.0),
        cases=(
            Case(id="judged", turns=("Q?",), direct=DirectCall(tool="t"), rubric="desk"),
            Case(id="ruled", turns=("Q?",), direct=DirectCall(tool="t")),
        ),
    )
    arms = (Arm(model="m", harness="loop", variant="plain"), Arm(model="none", harness="direct", variant="plain"))
    return Plan(run="shop-1", suite=suite, arms=arms, cases=("judged", "ruled"), repeats=3, judges=("j",))


def results(plan: Plan, outcome: Outcome = "finished") -> list[Result]:
    label = Label(grader="answer", version="1", value="PASS")
    return [
        Result(trial=plan.trial(index), attempt=1, outcome=outcome, verdict="passed", labels=(label,))
        for index in range(plan.size)
    ]


def told(plan: Plan, result: Result, attempts: Sequence[TrialOpinions], why: str) -> Result:
    """A twin of the graders' conclusion: the last opinion's value, or why there is none."""
    value: LabelValue = attempts[-1].opinions[0].value if attempts else "INCONCLUSIVE"
    label = Label(grader="judge", version="1", value=value, reasons=() if attempts else (why,))
    return result.model_copy(update={"labels": (*result.labels, label), "verdict": "inconclusive"})


@pytest.fixture
def store(plan: Plan) -> Store:
    store = Store("memory://")
    store.put_plan(plan)
    store.put_segment(plan.run, 0, results(plan))
    return store


@pytest.fixture
def judging(store: Store, client: redis.Redis, app: App) -> Judging:
    return Judging(store, client, app, told)


@pytest.fixture
def judge(store: Store, client: redis.Redis, plan: Plan) -> Callable[..., None]:
    """Ends one item as a judge would."""

    def end(handed: Handed, value: LabelValue = "PASS", cost_usd: float = 1.0) -> None:
        index = Judgings(store.objects).plan(plan.run).items[handed.item].index  # type: ignore[union-attr]
        label = CriterionLabel(criterion="right", value=value, quote="so")
        opinion = Opinion(judge="j", labels=(label,), cost_usd=cost_usd)
        opinions = TrialOpinions(run=plan.run, index=index, judged=1, attempt=handed.attempt, opinions=(opinion,))
        Judgings(store.objects).put_opinions(opinions)
        JudgingQueue(client, plan.run).end(handed, cost_usd=cost_usd, again=False)

    return end


def waiting(app: App) -> int:
    with app.connection_or_acquire() as connection:
        return int(connection.default_channel.queue_declare(queue="judging", passive=True).message_count)


def test_only_answers_of_cases_with_a_rubric_go_to_the_judges(plan: Plan) -> None:
    items = judging_plan(plan, iter(results(plan))).items
    assert {(plan.trial(item.index).case, plan.trial(item.index).arm.harness) for item in items} == {("judged", "loop")}
    assert len(items) == 3
    assert items == tuple(sorted(items, key=lambda item: item.index))
    assert judging_plan(plan, iter(results(plan, "crashed"))).items == ()


def test_a_run_without_judges_has_nothing_to_wait_for(judging: Judging, plan: Plan, client: redis.Redis) -> None:
    assert judging.tend(plan.model_copy(update={"judges": ()}))
    assert client.keys("f:*") == []


def test_answers_are_handed_out_as_many_as_may_be_at_work_and_not_twice(
    judging: Judging, plan: Plan, client: redis.Redis, app: App
) -> None:
    assert not judging.tend(plan)
    assert waiting(app) == 1  # both in one message
    assert not judging.tend(plan)
    assert waiting(app) == 1
    assert JudgingQueue(client, plan.run).progress().left == 3


def test_when_the_last_answer_is_judged_its_results_stand_in_the_place_of_the_earlier_ones(
    judging: Judging, plan: Plan, store: Store, client: redis.Redis, judge: Callable[..., None]
) -> None:
    judging.tend(plan)
    judge(Handed(0, 1), "PASS")
    judge(Handed(1, 1), "FAIL")
    assert not judging.tend(plan)
    judge(Handed(2, 1), "PASS")
    assert judging.tend(plan)
    judged = [result for result in store.results(plan.run) if len(result.labels) == 2]
    assert sorted(result.labels[1].value for result in judged) == ["FAIL", "PASS", "PASS"]
    assert len(list(store.results(plan.run))) == plan.size
    assert [Result.model_validate_json(one) for one in store.result_documents(plan.run)] == list(
        store.results(plan.run)
    )
    assert Judgings(store.objects).tally(plan.run) == JudgingTally(
        run=plan.run, labels={"PASS": 2, "FAIL": 1, "INCONCLUSIVE": 0}, attempts=3, cost_usd=3.0, disagreements=1
    )
    assert client.keys("f:{shop-1}:*") == []


def test_a_judging_that_is_over_is_not_done_again(
    judging: Judging, plan: Plan, store: Store, client: redis.Redis, app: App, judge: Callable[..., None]
) -> None:
    judging.tend(plan)
    for item in range(2):
        judge(Handed(item, 1))
    judging.tend(plan)
    judge(Handed(2, 1))
    assert judging.tend(plan)
    before = list(store.results(plan.run))
    assert Judging(store, client, app, told).tend(plan)
    assert list(store.results(plan.run)) == before


def test_any_number_of_tenders_come_to_the_same(
    plan: Plan, store: Store, client: redis.Redis, app: App, judge: Callable[..., None]
) -> None:
    tenders = [Judging(store, client, app, told) for _ in range(3)]
    for tender in tenders:
        tender.tend(plan)
    assert waiting(app) == 1
    for item in range(3):
        for tender in tenders:
            tender.tend(plan)
        judge(Handed(item, 1))
    assert [tender.tend(plan) for tender in tenders] == [True, True, True]
    assert len(store.judged(plan.run) or ()) == 3


def test_a_queue_that_was_lost_is_opened_anew(
    judging: Judging, plan: Plan, store: Store, client: redis.Redis, judge: Callable[..., None]
) -> None:
    judging.tend(plan)
    judge(Handed(0, 1))
    client.flushall()
    assert not judging.tend(plan)
    progress = JudgingQueue(client, plan.run).progress()
    assert (progress.left, progress.spent_usd) == (2, 1.0)  # what is stored is neither asked again nor forgotten
    assert len(Judgings(store.objects).plan(plan.run).items) == 3  # type: ignore[union-attr]


def test_when_the_judges_budget_is_spent_the_rest_is_inconclusive_and_says_so(
    judging: Judging, plan: Plan, store: Store, client: redis.Redis, judge: Callable[..., None]
) -> None:
    judging.tend(plan)
    judge(Handed(0, 1), cost_usd=9.0)
    assert not judging.tend(plan)  # what is at work may end
    judge(Handed(1, 1))
    assert not judging.tend(plan)
    assert not JudgingQueue(client, plan.run).claim(Handed(2, 1), HOLD_S)  # as the dearest, it might cost 9
    assert judging.tend(plan)
    judged = list(itertools.chain.from_iterable(result.labels[1:] for result in store.judged(plan.run) or ()))
    assert [label.value for label in judged] == ["PASS", "PASS", "INCONCLUSIVE"]
    assert judged[2].reasons == ("the judges' budget of $10 was spent",)


def test_an_answer_whose_judging_was_lost_each_time_is_inconclusive(
    judging: Judging, plan: Plan, store: Store, client: redis.Redis
) -> None:
    queue = JudgingQueue(client, plan.run)
    judging.tend(plan.model_copy(update={"suite": plan.suite.model_copy(update={"judging": JudgeOptions()})}))
    for _ in range(4):
        handed = [Handed(item, attempt) for item in range(3) for attempt in (1, 2, 3)]
        assert [queue.claim(one, 0.0) for one in handed].count(True) in (3, 0)
        done = judging.tend(
            plan.model_copy(update={"suite": plan.suite.model_copy(update={"judging": JudgeOptions()})})
        )
    assert done
    assert {label.reasons for result in store.judged(plan.run) or () for label in result.labels[1:]} == {
        ("its judging was lost each time that it was begun",)
    }


def test_the_tally_counts_disagreements_and_forgets_no_unknown_cost(plan: Plan) -> None:
    opinion = Opinion(judge="j", failure="HTTP 503", outage=True)
    attempt = TrialOpinions(run="shop-1", index=0, judged=1, attempt=1, opinions=(opinion,))
    concluded = [(told(plan, result, (attempt,), ""), (attempt,)) for result in results(plan)[:2]]
    assert tally_of("shop-1", concluded) == JudgingTally(
        run="shop-1", labels={"PASS": 0, "FAIL": 0, "INCONCLUSIVE": 2}, attempts=2, cost_usd=None, disagreements=0
    )


def test_the_summary_says_what_the_judges_did(plan: Plan, store: Store) -> None:
    summary = RunSummary.model_construct(notes=("earlier",))
    assert with_judging(summary, plan, store) is summary
    tally = JudgingTally(
        run=plan.run,
        labels={"PASS": 2, "FAIL": 1, "INCONCLUSIVE": 0},
        attempts=4,
        cost_usd=0.5,
        disagreements=1,
        not_asked=2,
    )
    Judgings(store.objects).put_tally(tally)
    found = with_judging(summary, plan, store)
    assert found.judges_usd == 0.5
    assert found.notes == (
        "earlier",
        "Judged by j: 2 PASS, 1 FAIL, 0 INCONCLUSIVE (4 judgings, $0.50, which is in no other figure).",
        "NOT JUDGED: 2 answers, which are inconclusive; each says why.",
        "Rules and judge disagree on 1 answer; settle them with: evalfarm adjudicate shop-1",
    )
