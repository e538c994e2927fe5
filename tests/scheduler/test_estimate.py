from datetime import date
from typing import Any

import pytest

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.run import NO_MODEL, Arm, Manifest, Plan
from evalfarm.contracts.verdict import GraderTally, Result, RunSummary
from evalfarm.errors import UsageError
from evalfarm.prices import Price, Prices, PriceTable
from evalfarm.runstate import Limits, ModelLimits
from scheduler.estimate import EFFORTS, JUDGING, ArmEstimate, Estimate, budget_of, estimate

LOOP = Arm(model="gpt-x", harness="loop", variant="plain")
CODEX = Arm(model="gpt-x", harness="codex", variant="plain")
DIRECT = Arm(model=NO_MODEL, harness="direct", variant="plain")
SIMULATED = Arm(model="sim-careful", harness="loop", variant="plain")
PRICES = Prices(
    tables=(
        PriceTable(
            price=(
                Price(
                    models=("gpt-x",),
                    input=1.0,
                    cached_input=0.1,
                    output=10.0,
                    as_of=date(2026, 1, 31),
                    source="this test",
                ),
                Price(
                    models=("sim-*",), input=0, cached_input=0, output=0, as_of=date(2026, 1, 31), source="this test"
                ),
            )
        ),
    )
)
LOOP_USD = (EFFORTS["loop"].input_tokens + 10 * EFFORTS["loop"].output_tokens) / 1e6


def of(plan: Plan, *arms: Arm, repeats: int = 2) -> Plan:
    """3 cases of one turn each."""
    return plan.model_copy(update={"arms": arms, "repeats": repeats})


def estimated(plan: Plan, *arms: Arm, limits: Limits | None = None, slots: int = 2, **more: Any) -> Estimate:
    return estimate(of(plan, *arms), PRICES, limits or Limits(), slots=slots, **more)


def test_without_an_earlier_run_a_trial_costs_what_a_turn_takes_as_a_rule(plan: Plan) -> None:
    assert estimated(plan, DIRECT, LOOP, slots=1) == Estimate(
        arms=(
            ArmEstimate(DIRECT, 6, "guessed", 0.0, 0.1, 0.0),
            ArmEstimate(LOOP, 6, "guessed", LOOP_USD, 10.0, 18.0),
        ),
        trials=12,
        usd=6 * LOOP_USD,
        seconds=6 * 0.1 + 6 * 10 / 6,  # of twelve trials, six travel together
        slots=1,
    )


def test_a_model_without_a_price_makes_the_cost_unknown_and_not_nothing(plan: Plan) -> None:
    unknown = Arm(model="new", harness="loop", variant="plain")
    told = estimated(plan, LOOP, unknown)
    assert (told.usd, told.arms[0].usd, told.arms[1].usd) == (None, 6 * LOOP_USD, None)


def test_beside_codex_every_trial_takes_a_slot_of_its_own(plan: Plan) -> None:
    assert estimated(plan, CODEX, LOOP).seconds == (6 * 30 + 6 * 10) / 2


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [(ModelLimits(concurrency=1), 60.0), (ModelLimits(requests_per_minute=6), 180.0), (ModelLimits(), 30.0)],
)
def test_a_plan_takes_as_long_as_its_models_limits_let_it(plan: Plan, limits: ModelLimits, seconds: float) -> None:
    assert estimated(plan, LOOP, limits=Limits(models={"gpt-x": limits})).seconds == seconds


@pytest.fixture
def earlier(plan: Plan, manifest: Manifest) -> RunSummary:
    """Of the loop's six trials four ran, in two seconds and for ten cents each."""
    ran = of(plan, LOOP)
    results = [
        Result(trial=ran.trial(at), attempt=1, outcome="finished", verdict="passed", latency_s=2.0, cost_usd=0.1)
        for at in range(4)
    ]
    return summarize(manifest, ran, results, attempts=4, finished=False)


def test_an_earlier_run_tells_what_its_arms_took(plan: Plan, earlier: RunSummary) -> None:
    first, second = estimated(plan, LOOP, SIMULATED, like=earlier).arms
    assert (first.basis, second.basis) == ("measured", "guessed")
    assert (first.trial_usd, first.trial_s) == (pytest.approx(0.1), pytest.approx(2.0))


def test_what_all_attempts_cost_is_measured_where_it_is_known(plan: Plan, earlier: RunSummary) -> None:
    (cell,) = earlier.cells
    paid = cell.model_copy(update={"cost": cell.cost.model_copy(update={"all_attempts_usd": 0.8})})
    told = estimated(plan, LOOP, like=earlier.model_copy(update={"cells": (paid,)}))
    assert told.arms[0].trial_usd == pytest.approx(0.2)


def test_a_budget_sets_aside_the_guess_and_twice_what_was_measured(plan: Plan, earlier: RunSummary) -> None:
    assert budget_of(estimated(plan, DIRECT, LOOP), 5) == Budget(max_cost_usd=5, trial_usd=(0.0, LOOP_USD))
    measured = budget_of(estimated(plan, LOOP, like=earlier), 5)
    assert measured == Budget(max_cost_usd=5, trial_usd=(0.2,))


@pytest.mark.parametrize(("usd", "shown"), [(0.0, "0"), (-2.5, "-2.5"), (float("nan"), "nan"), (float("inf"), "inf")])
def test_a_budget_of_nothing_is_refused(plan: Plan, usd: float, shown: str) -> None:
    with pytest.raises(UsageError) as raised:
        budget_of(estimated(plan, LOOP), usd)
    assert str(raised.value) == (
        f"--max-cost {shown} leaves nothing to spend\n\nhint: give an amount in USD above 0, as in --max-cost 5"
    )


def test_a_budget_over_an_unknown_price_is_refused_with_the_model_and_where_to_put_it(plan: Plan) -> None:
    with pytest.raises(UsageError) as raised:
        budget_of(estimated(plan, LOOP, Arm(model="new", harness="loop", variant="plain")), 5)
    assert str(raised.value) == (
        "a budget needs a price for every model, and none is known for 'new'\n\n"
        "hint: add it to a price table of your own and name that in EVALFARM_PRICES (docs/reference/settings.md), "
        "or run without --max-cost"
    )


def test_a_budget_that_does_not_cover_one_trial_is_refused(plan: Plan) -> None:
    with pytest.raises(UsageError) as raised:
        budget_of(estimated(plan, LOOP, CODEX), 0.05)
    assert str(raised.value) == (
        "--max-cost 0.05 does not cover one trial of gpt-x at codex, for which 0.076 USD are set aside\n\n"
        "hint: give more, or name an earlier run of these arms with --like, whose cost is then taken instead of a guess"
    )


def test_what_costs_nothing_needs_no_more_than_something(plan: Plan) -> None:
    assert budget_of(estimated(plan, SIMULATED), 0.01) == Budget(max_cost_usd=0.01, trial_usd=(0.0,))


def judged(plan: Plan, *judges: str) -> Plan:
    """The plan at `loop` and `direct`, with a rubric for one case of three."""
    case = plan.suite.cases[0].model_copy(update={"rubric": "desk"})
    suite = plan.suite.model_copy(update={"cases": (case, *plan.suite.cases[1:])})
    return of(plan.model_copy(update={"suite": suite, "judges": judges}), DIRECT, LOOP)


def test_what_judges_may_cost_is_told_apart_and_part_of_a_budget(plan: Plan) -> None:
    told = estimate(judged(plan, "gpt-x", "sim-judge-sound"), PRICES, Limits(), slots=2)
    each = (JUDGING.input_tokens + 10 * JUDGING.output_tokens) / 1e6
    assert (told.judgings, told.judging_usd, told.usd) == (2, each, 6 * LOOP_USD)
    assert budget_of(told, 5) == Budget(
        max_cost_usd=5, trial_usd=(0.0, LOOP_USD), judging_usd=each, judged_share=2 / 12
    )
    with pytest.raises(UsageError, match="set aside, its judging included"):
        budget_of(told, LOOP_USD + each / 2)


def test_a_budget_over_judges_without_a_price_is_refused(plan: Plan) -> None:
    with pytest.raises(UsageError, match="none is known for one of the judges"):
        budget_of(estimate(judged(plan, "new"), PRICES, Limits(), slots=2), 5)


def test_judges_that_an_earlier_run_had_cost_what_they_took_there(plan: Plan, earlier: RunSummary) -> None:
    assert earlier.manifest is not None
    manifest = earlier.manifest.model_copy(update={"digests": {"judge/gpt-x": "sha256:j"}})
    labelled = GraderTally(grader="judge", passed=2, failed=1, inconclusive=1)
    case = earlier.cases[0].model_copy(update={"by_grader": (labelled,)})
    like = earlier.model_copy(update={"manifest": manifest, "judges_usd": 0.5, "cases": (case,)})
    assert estimate(judged(plan, "gpt-x"), PRICES, Limits(), slots=2, like=like).judging_usd == 0.125
    assert estimate(judged(plan, "sim-judge-sound"), PRICES, Limits(), slots=2, like=like).judging_usd == 0
