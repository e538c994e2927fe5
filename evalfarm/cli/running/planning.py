"""The options of `evalfarm run` about money."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

import click

from evalfarm.cli.stored import run_of, summary_of
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UsageError
from evalfarm.prices import load_prices
from evalfarm.runstate import load_limits
from evalfarm.settings import Settings
from evalfarm.store import Store
from scheduler.estimate import Estimate, budget_of, estimate


@dataclass(frozen=True, slots=True)
class Spending:
    """What the options of `run` say of money."""

    max_cost_usd: float | None
    dry_run: bool
    like: str | None  #: a run or a label

    def budget(self, plan: Plan, settings: Settings, slots: int) -> Budget | None:
        """The budget of a run, where one is asked for. Raises UsageError as `scheduler.estimate.budget_of` does."""
        if self.max_cost_usd is None:
            return None
        return budget_of(self._estimate(plan, settings, slots, self._earlier(settings)), self.max_cost_usd)

    def show(self, plan: Plan, settings: Settings, slots: int, *, as_json: bool) -> None:
        """Print what a plan comes to; nothing is started, and nothing is stored."""
        earlier = self._earlier(settings)
        told = self._estimate(plan, settings, slots, earlier)
        budget = None if self.max_cost_usd is None else budget_of(told, self.max_cost_usd)
        # Imported when asked for: what a plan can tell apart is reckoned with half a second of statistics.
        import_module("evalfarm.cli.running.dry_run").show_dry_run(plan, told, budget, earlier, as_json=as_json)

    def _earlier(self, settings: Settings) -> RunSummary | None:
        if self.like is None:
            return None
        store = Store(settings.store_url)
        return summary_of(store, run_of(store, self.like))

    def _estimate(self, plan: Plan, settings: Settings, slots: int, earlier: RunSummary | None) -> Estimate:
        prices, limits = load_prices(settings.prices), load_limits(settings.limits)
        return estimate(plan, prices, limits, slots=slots, like=earlier)


def spending_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options of `run` about money, which it gets as one `spending`."""

    @click.option("--max-cost", type=float, metavar="USD", help="A budget: when it is reached, the rest is not run.")
    @click.option("--dry-run", is_flag=True, help="Print the plan, its cost and what it can tell; start nothing.")
    @click.option("--like", metavar="RUN", help="An earlier run to estimate by, instead of a guess.")
    @wraps(command)
    def with_spending(*, max_cost: float | None, dry_run: bool, like: str | None, **said: Any) -> int:
        if like is not None and max_cost is None and not dry_run:
            raise UsageError("--like says what to estimate by", "add --dry-run or --max-cost, or leave it out")
        return command(spending=Spending(max_cost, dry_run, like), **said)

    return with_spending
