import pytest
import redis

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.runstate import Ledger, Money
from scheduler.rebuilder import shape_of
from scheduler.spending import with_money


@pytest.fixture
def summary(plan: Plan, manifest: Manifest) -> RunSummary:
    return summarize(manifest, plan, [], attempts=0, finished=False)


def money(*arms: float | None, budget: float | None = None, reserved: float = 0.0, exhausted: bool = False) -> Money:
    return Money(budget, sum(arm or 0.0 for arm in arms), reserved, exhausted, arms)


def test_each_arm_is_told_what_all_its_attempts_cost(summary: RunSummary) -> None:
    told = with_money(summary, money(1.5, None))
    assert [cell.cost.all_attempts_usd for cell in told.cells] == [1.5, None]
    assert told == summary.model_copy(update={"cells": told.cells})


@pytest.mark.parametrize(
    ("of_run", "note"),
    [
        (money(1.5, 0.25, budget=4), "Budget: $1.75 of $4.00 spent, over all attempts."),
        (
            money(1.5, 0.25, budget=4, reserved=0.5),
            "Budget: $1.75 of $4.00 spent, over all attempts, and $0.50 set aside for attempts that were lost.",
        ),
        (
            money(3.5, 0.25, budget=4, exhausted=True),
            "BUDGET REACHED: $3.75 of $4.00 spent, over all attempts; what is left does not cover one more trial, so "
            "that 12 trials did not run.",
        ),
    ],
)
def test_what_became_of_a_budget_is_a_note(summary: RunSummary, of_run: Money, note: str) -> None:
    assert with_money(summary, of_run).notes == (*summary.notes, note)


@pytest.mark.parametrize(
    ("judges_usd", "told"),
    [
        (0.5, "Budget: $2.00 of $4.00 spent, over all attempts, $0.50 of it by judges."),
        (None, "Budget: $1.50 of $4.00 spent, over all attempts, and besides what judges cost, which is not known."),
    ],
)
def test_what_judges_cost_counts_against_the_budget_and_stands_apart(
    summary: RunSummary, judges_usd: float | None, told: str
) -> None:
    judged = summary.model_copy(update={"judges_usd": judges_usd})
    found = with_money(judged, money(1.5, 0.0, budget=4))
    assert found.notes[-1] == told
    assert [cell.cost.all_attempts_usd for cell in found.cells] == [1.5, 0.0]


def test_a_run_that_is_built_anew_keeps_its_budget(client: redis.Redis, plan: Plan, manifest: Manifest) -> None:
    budget = Budget(max_cost_usd=4, trial_usd=(0.5, 0.25), judging_usd=0.5, judged_share=0.25)
    ledger = Ledger(client, plan.run)
    shape = shape_of(plan, manifest.model_copy(update={"budget": budget}))
    ledger.create(plan.size, "sha256:plan", shape, rebuilding=True)
    assert ledger.money(2) == Money(4, 0, 0, False, (0, 0))
    assert client.hmget(f"f:{{{plan.run}}}:meta", "guess:0", "guess:1") == [b"500000", b"250000"]
    assert client.hmget(f"f:{{{plan.run}}}:meta", "judging", "judging:trial") == [b"500000", b"125000"]
