"""A draw is random within the judge's labels, and people's labels of it give what people would say of the run."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.judgement.drawn import draw, stratified_rates
from evalfarm.analysis.statistics.judges import Labelled, post_stratified_rate
from evalfarm.contracts.drawn import Draw, DrawnArm, StratifiedRate, Stratum
from evalfarm.contracts.run import Arm, Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, LabelValue, Rate, Result
from evalfarm.errors import UsageError

ARM = Arm(model="m", harness="loop", variant="plain")
OTHER = Arm(model="n", harness="loop", variant="plain")


def planned(cases: int, repeats: int, *arms: Arm, families: Mapping[int, str] | None = None) -> Plan:
    names = {n: (families or {}).get(n) for n in range(cases)}
    asked = tuple(Case(id=f"c{n}", turns=("?",), family=family) for n, family in names.items())
    suite = Suite(suite="s", version="1", plugin=Plugin(name="P"), server=Server(python="s.py"), cases=asked)
    named = tuple(case.id for case in asked)
    return Plan(run="s-1", suite=suite, arms=arms or (ARM,), cases=named, repeats=repeats)


def judged(plan: Plan, label: Callable[[int], LabelValue]) -> Iterator[Result]:
    for index in range(len(plan.arms) * len(plan.cases) * plan.repeats):
        labels = (
            Label(grader="answer", version="1", value="PASS"),
            Label(grader="judge", version="1", value=label(index)),
        )
        yield Result(trial=plan.trial(index), attempt=1, outcome="finished", verdict="passed", labels=labels)


def told(passed: int, failed: int) -> list[LabelValue]:
    passes: list[LabelValue] = ["PASS"] * passed
    fails: list[LabelValue] = ["FAIL"] * failed
    return passes + fails


def made(plan: Plan, values: Sequence[LabelValue], each: int, seed: int = 0) -> Draw:
    return draw("s-1", judged(plan, values.__getitem__), each=each, seed=seed, at=1.0)


def share(hits: int, of: int, rate: Rate) -> dict[str, float | int | None]:
    return {"hits": hits, "of": of} | rate.model_dump(include={"value", "low", "high"})


labels = st.lists(st.sampled_from(["PASS", "FAIL", "INCONCLUSIVE"]), min_size=1, max_size=30)


@given(labels, st.integers(2, 40), st.integers(0, 9))
def test_a_draw_is_of_what_the_judge_decided_and_a_longer_one_begins_with_it(
    values: list[LabelValue], each: int, seed: int
) -> None:
    plan = planned(len(values), 1)
    decided = [value for value in values if value != "INCONCLUSIVE"]
    if not decided:
        with pytest.raises(UsageError):
            made(plan, values, each, seed)
        return
    (arm,), (longer,) = made(plan, values, each, seed).arms, made(plan, values, each + 1, seed).arms
    for value, stratum, wider in (("PASS", arm.passed, longer.passed), ("FAIL", arm.failed, longer.failed)):
        assert stratum.answers == values.count(value)  # type: ignore[arg-type]
        assert len(set(stratum.drawn)) == len(stratum.drawn)
        assert {values[trial] for trial in stratum.drawn} <= {value}
        assert wider.drawn[: len(stratum.drawn)] == stratum.drawn
        assert stratum.drawn or not stratum.answers  # no side that occurs is left without a label
    drawn = len(arm.passed.drawn) + len(arm.failed.drawn)
    assert drawn == min(each, len(decided))


@pytest.mark.parametrize(
    ("passed", "failed", "each", "drawn"),
    [
        (40, 5, 20, (15, 5)),  # all that the judge failed, then what it passed
        (40, 30, 20, (10, 10)),  # so many failed that nothing would be left for the others
        (3, 30, 20, (3, 17)),
        (3, 4, 20, (3, 4)),
        (9, 0, 4, (4, 0)),
    ],
)
def test_what_the_judge_failed_is_drawn_first(passed: int, failed: int, each: int, drawn: tuple[int, int]) -> None:
    values = told(passed, failed)
    (arm,) = made(planned(len(values), 1), values, each).arms
    assert (len(arm.passed.drawn), len(arm.failed.drawn)) == drawn


def test_another_seed_draws_otherwise_and_the_same_one_the_same() -> None:
    plan, values = planned(50, 1), told(50, 0)
    assert made(plan, values, 10).trials == made(plan, values, 10).trials
    assert made(plan, values, 10).trials != made(plan, values, 10, seed=1).trials


def test_every_answer_is_drawn_as_often_as_another() -> None:
    plan, values = planned(10, 1), told(8, 2)
    counts = [0] * 10
    for seed in range(400):
        for trial in made(plan, values, 6, seed).trials:
            counts[trial] += 1
    passed = [count for count, value in zip(counts, values, strict=True) if value == "PASS"]
    assert all(abs(count - 200) < 50 for count in passed)  # four of eight, 400 times; five standard errors
    assert sum(counts) - sum(passed) == 800


def test_each_arm_is_drawn_and_rated_by_itself() -> None:
    plan = planned(4, 1, ARM, OTHER)
    results = list(judged(plan, lambda index: "PASS" if plan.trial(index).arm == ARM else "FAIL"))
    made_of = draw("s-1", results, each=2, seed=0, at=1.0)
    people: dict[int, LabelValue] = dict.fromkeys(made_of.trials, "PASS")
    rates = stratified_rates(made_of, plan, results, people)
    by_arm = {one.arm: (one.judged.value, one.of_passed.of, one.of_failed.of, one.rate.value) for one in rates}
    assert by_arm == {"m · loop · plain": (1.0, 2, 0, 1.0), "n · loop · plain": (0.0, 0, 2, 1.0)}


def test_a_rate_weighs_each_side_as_the_run_does_and_leaves_disputed_answers_out() -> None:
    """Twenty cases once each: the judge passes 15. Of 8 drawn ones it passed, people pass 6, fail 1, dispute 1."""
    values = told(15, 5)
    plan = planned(20, 1)
    results = list(judged(plan, values.__getitem__))
    passed, failed = tuple(range(8)), tuple(range(15, 20))
    arm = DrawnArm(
        arm="m · loop · plain", passed=Stratum(answers=15, drawn=passed), failed=Stratum(answers=5, drawn=failed)
    )
    made_by_hand = Draw(run="s-1", each=13, seed=7, at=1.0, arms=(arm,))
    people: dict[int, LabelValue] = dict.fromkeys(passed + failed, "PASS")
    people |= {0: "FAIL", 1: "INCONCLUSIVE", 16: "FAIL", 17: "FAIL", 18: "FAIL"}
    (found,) = stratified_rates(made_by_hand, plan, results, people)
    wanted = post_stratified_rate(0.75, 20, Labelled(6, 7), Labelled(2, 5))
    assert found == StratifiedRate(
        run="s-1",
        arm="m · loop · plain",
        each=13,
        seed=7,
        judged=share(15, 20, found.judged),
        of_passed=share(6, 7, found.of_passed),
        of_failed=share(2, 5, found.of_failed),
        disputed=1,
        rate=Rate(value=wanted.value, low=wanted.low, high=wanted.high),
    )
    assert found.rate.value == pytest.approx(0.75 * 6 / 7 + 0.25 * 2 / 5)


def test_repeats_and_families_are_worth_less_than_as_many_cases_of_their_own() -> None:
    values = told(9, 3)

    def width(plan: Plan) -> float:
        results = list(judged(plan, lambda index: values[int(plan.trial(index).case[1:]) % 12]))
        whole = draw("s-1", results, each=99, seed=0, at=1.0)
        people: dict[int, LabelValue] = {
            result.trial.index: label.value for result in results for label in result.labels if label.grader == "judge"
        }
        (found,) = stratified_rates(whole, plan, results, people)
        assert found.rate.low is not None
        assert found.rate.high is not None
        return found.rate.high - found.rate.low

    apart = width(planned(48, 1))
    assert width(planned(12, 4)) > apart
    assert width(planned(48, 1, families={n: f"f{n % 12}" for n in range(48)})) > apart


def test_a_side_whose_labels_are_all_disputed_gives_no_rate() -> None:
    values = told(3, 1)
    plan = planned(4, 1)
    whole = made(plan, values, 4)
    people: dict[int, LabelValue] = {0: "PASS", 1: "PASS", 2: "PASS", 3: "INCONCLUSIVE"}
    (found,) = stratified_rates(whole, plan, judged(plan, values.__getitem__), people)
    assert (found.disputed, found.rate) == (1, Rate(value=None, low=None, high=None))


def test_a_draw_covers_what_people_would_say_where_the_judge_alone_does_not() -> None:
    """60 cases, three times each; a judge that passes 30 % of wrong answers and fails 5 % of right ones."""
    rng = random.Random(5)
    plan, covered, trusted, rounds = planned(60, 3), 0, 0, 80
    trials = range(180)
    for seed in range(rounds):
        # Whether a case passes varies between cases; 0.75 of all answers are right.
        chances = {case: rng.betavariate(3, 1) for case in plan.cases}
        right = [rng.random() < chances[plan.trial(trial).case] for trial in trials]
        said: list[LabelValue] = ["PASS" if rng.random() < (0.95 if right[t] else 0.3) else "FAIL" for t in trials]
        results = list(judged(plan, said.__getitem__))
        drawn = draw("s-1", results, each=60, seed=seed, at=1.0)
        (found,) = stratified_rates(
            drawn, plan, results, {trial: "PASS" if right[trial] else "FAIL" for trial in drawn.trials}
        )
        assert found.rate.low is not None
        assert found.rate.high is not None
        assert found.judged.low is not None
        assert found.judged.high is not None
        covered += found.rate.low <= 0.75 <= found.rate.high
        trusted += found.judged.low <= 0.75 <= found.judged.high
    assert covered >= 0.9 * rounds
    assert trusted < covered


def test_a_run_without_a_judges_label_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        draw("s-1", [], each=10, seed=0, at=1.0)
    assert str(caught.value) == (
        "no answer of run 's-1' has a judge's label to draw within\n\nhint: run it with --judge MODEL"
    )
