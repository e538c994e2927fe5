"""What a run cost, told in its summary: what every attempt cost, and that the budget ended it. Pure."""

from evalfarm.contracts.verdict import CellSummary, RunSummary
from evalfarm.reports.numbers import cost, plural
from evalfarm.runstate import Money


def with_money(summary: RunSummary, money: Money) -> RunSummary:
    """The summary with the cost of all attempts, counted or not, in each arm, and what became of the budget.

    What its judges cost is in the summary already.
    """
    cells = tuple(_paid(cell, usd) for cell, usd in zip(summary.cells, money.arms_usd, strict=True))
    notes = summary.notes if money.budget_usd is None else (*summary.notes, _of_budget(summary, money))
    return summary.model_copy(update={"cells": cells, "notes": notes})


def _paid(cell: CellSummary, usd: float | None) -> CellSummary:
    return cell.model_copy(update={"cost": cell.cost.model_copy(update={"all_attempts_usd": usd})})


def _of_budget(summary: RunSummary, money: Money) -> str:
    spent = (
        f"{cost(money.spent_usd + (summary.judges_usd or 0.0))} of {cost(money.budget_usd)} spent, over all attempts"
    )
    if summary.judges_usd is None:
        spent += ", and besides what judges cost, which is not known"
    elif summary.judges_usd:
        spent += f", {cost(summary.judges_usd)} of it by judges"
    if money.reserved_usd:
        spent += f", and {cost(money.reserved_usd)} set aside for attempts that were lost"
    if not money.exhausted:
        return f"Budget: {spent}."
    return (
        f"BUDGET REACHED: {spent}; what is left does not cover one more trial, so that "
        f"{plural(summary.not_run, 'trial')} did not run."
    )
