"""What `evalfarm run --dry-run` prints: cost, time, and what the plan can tell apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from evalfarm.analysis.judgement.plans import Power, plan_power, run_power
from evalfarm.analysis.statistics.comparisons import MARGIN
from evalfarm.cli.showing import show
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.run import NO_MODEL, Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.comparison.blocks import Block, Said
from evalfarm.reports.comparison.planning import power_report
from evalfarm.reports.numbers import cost, plural
from evalfarm.reports.table import Table
from scheduler.estimate import ArmEstimate, Estimate


@dataclass(frozen=True, slots=True)
class DryRun:
    """The one document of `evalfarm run --dry-run`."""

    suite: str
    cases: int
    repeats: int
    like: str | None  #: the earlier run that it is estimated by
    estimate: Estimate
    budget: Budget | None
    power: Power
    schema_version: Literal[1] = 1


def show_dry_run(
    plan: Plan, told: Estimate, budget: Budget | None, earlier: RunSummary | None, *, as_json: bool
) -> None:
    """Print what a plan comes to, estimated by an earlier run where there is one."""
    cases = len(plan.cases)
    found = DryRun(
        suite=plan.suite.suite,
        cases=cases,
        repeats=plan.repeats,
        like=None if earlier is None else earlier.run,
        estimate=told,
        budget=budget,
        power=plan_power(plan.suite.suite, cases, plan.repeats, MARGIN)
        if earlier is None
        else run_power(earlier, plan.repeats, MARGIN),
    )
    show(found, TypeAdapter(DryRun), dry_run_report, "json" if as_json else None)


def dry_run_report(found: DryRun) -> list[Block]:
    """Trials, cost and time first, arm by arm; then what the plan can and cannot resolve."""
    told = found.estimate
    return [
        Said(
            f"Dry run of {found.suite}: {plural(told.trials, 'trial')} = {plural(found.cases, 'case')} × "
            f"{plural(len(told.arms), 'arm')} × {plural(found.repeats, 'repeat')}. Nothing was started.",
            finding=True,
        ),
        Said(
            f"It may cost {_usd(told.usd)} and take {_time(told.seconds)} on {plural(told.slots, 'slot')}.",
            finding=True,
        ),
        *(Said(line) for line in _bases(found)),
        Table(
            "Arms",
            ("model", "harness", "variant", "trials", "cost\na trial", "cost", "seconds\na trial", "known by"),
            tuple(_row(one) for one in told.arms),
        ),
        *power_report(found.power),
    ]


def _row(one: ArmEstimate) -> tuple[str, ...]:
    arm = one.arm
    model = "" if arm.model == NO_MODEL else arm.model
    figures = (f"{one.trials:,}", cost(one.trial_usd), cost(one.usd), f"{one.trial_s:.2g}", one.basis)
    return (model, arm.harness, arm.variant, *figures)


def _bases(found: DryRun) -> Iterator[str]:
    guessed = [one for one in found.estimate.arms if one.basis == "guessed"]
    if len(guessed) < len(found.estimate.arms):
        yield f"Measured: cost and time of a trial as in run {found.like}, over all its attempts."
    if guessed:
        yield (
            "Guessed: prices × the tokens that a turn takes as a rule, and nothing out of a cache; "
            "--like RUN takes what a run of your own took."
        )
    if found.budget is not None:
        yield f"The budget ends it at {found.budget.max_cost_usd:g} USD; what is left is then not run."
    told = found.estimate
    if told.judgings:
        each = "at a price that is not known" if told.judging_usd is None else f"about {cost(told.judging_usd)} each"
        yield f"Besides, up to {plural(told.judgings, 'answer')} go to the judges, {each}."
    if any(one.usd is None for one in told.arms):
        yield "A price is not known: name a table of your own in EVALFARM_PRICES."


def _usd(usd: float | None) -> str:
    return "an amount that is not known" if usd is None else f"about {cost(usd)}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} minutes" if minutes < 90 else f"about {minutes / 60:.1f} hours"
