"""What a plan is likely to cost and how long it may take, before anything of it runs. Pure.

From an earlier run where one is named, arm by arm; else from what a turn of each harness takes as a rule, at the
prices of the table. Neither is a promise: what a run may cost at most is its budget's to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from cases.policies import is_simulated
from evalfarm.broker import SIDE_BY_SIDE
from evalfarm.contracts.budget import Budget
from evalfarm.contracts.judging import JUDGE
from evalfarm.contracts.run import NO_MODEL, Arm, Plan
from evalfarm.contracts.suite import HarnessName
from evalfarm.contracts.verdict import CellSummary, RunSummary
from evalfarm.errors import UsageError
from evalfarm.prices import Prices
from evalfarm.runstate import Limits
from scheduler.feeder import bite, together

Basis = Literal["measured", "guessed"]


@dataclass(frozen=True, slots=True)
class Effort:
    """What one turn of a case takes, as a rule."""

    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    simulated_s: float  #: where a simulated model answers


EFFORTS: dict[HarnessName, Effort] = {
    "direct": Effort(0, 0, 0, 0.1, 0.1),
    # Three requests of the suite's prompt, a few tools and what was called so far; an answer with its reasoning.
    "loop": Effort(3, 6_000, 1_000, 10.0, 0.05),
    # Codex's own instructions and tools are some 11,000 tokens of its first request, and go with each of them.
    "codex": Effort(4, 56_000, 2_000, 30.0, 0.5),
}

JUDGING = Effort(1, 3_000, 1_000, 10.0, 0.05)
"""What one judge takes for one answer: rubric, conversation and tool results in, a label for each criterion out."""

RESERVE = 2.0
"""A trial is reserved this many times the measured mean of its arm: trials of one arm differ."""


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """One arm of the plan."""

    arm: Arm
    trials: int
    basis: Basis
    trial_usd: float | None  #: the mean trial's; None: the model's price is not known
    trial_s: float
    requests: float  #: of all its trials

    @property
    def usd(self) -> float | None:
        """Of all its trials."""
        return None if self.trial_usd is None else self.trials * self.trial_usd


@dataclass(frozen=True, slots=True)
class Estimate:
    """The plan as a whole."""

    arms: tuple[ArmEstimate, ...]
    trials: int
    usd: float | None  #: None: a price is not known
    seconds: float  #: with `slots` trials of one message each at a time, and the models' limits kept
    slots: int
    judgings: int = 0  #: answers for the judges, if all trials answer
    judging_usd: float | None = 0.0  #: of one of them, by all judges; in no other figure; None: a price is not known


def estimate(plan: Plan, prices: Prices, limits: Limits, *, slots: int, like: RunSummary | None = None) -> Estimate:
    """What a plan comes to; `like` is an earlier run whose arms are taken as measured where the plan has them too."""
    slots = max(1, slots)
    turns = sum(len(plan.suite.case(case).turns) or 1 for case in plan.cases) / len(plan.cases)
    trials = len(plan.cases) * plan.repeats
    # Those of `loop` travel together and share a slot, but not in a plan with `codex`.
    side_by_side = 1 if together(plan) == 1 else min(SIDE_BY_SIDE, bite(plan, trials, slots=slots, room=1))
    arms = tuple(
        _measured(arm, trials, turns, cell)
        if (cell := _cell_of(like, arm)) is not None
        else _guessed(arm, trials, turns, prices)
        for arm in plan.arms
    )
    costs = [arm.usd for arm in arms]
    return Estimate(
        arms=arms,
        trials=plan.size,
        usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        seconds=_seconds(arms, limits, slots, side_by_side),
        slots=slots,
        judgings=_judgings(plan),
        judging_usd=_judging_usd(plan, prices, like),
    )


def budget_of(estimated: Estimate, max_cost_usd: float) -> Budget:
    """The budget of a run: what may be spent, and what is set aside for a trial of each arm while none has ended.

    What judging takes of an answer is part of it.

    Raises UsageError for an amount that is none, for one that does not cover a single trial, and where a price is not
    known: then nobody could tell when it is spent.
    """
    if not (isfinite(max_cost_usd) and max_cost_usd > 0):
        raise UsageError(
            f"--max-cost {max_cost_usd:g} leaves nothing to spend", "give an amount in USD above 0, as in --max-cost 5"
        )
    _check_priced(estimated)
    reserved = tuple(RESERVE * usd if one.basis == "measured" else usd for one, usd in _priced(estimated))
    judging_usd = estimated.judging_usd if estimated.judgings and estimated.judging_usd else 0.0
    share = estimated.judgings / estimated.trials
    dearest = max(reserved)
    if dearest + judging_usd > max_cost_usd:
        at = estimated.arms[reserved.index(dearest)].arm
        raise UsageError(
            f"--max-cost {max_cost_usd:g} does not cover one trial of {at.model} at {at.harness}, for which "
            f"{dearest + judging_usd:.2g} USD are set aside" + (", its judging included" if judging_usd else ""),
            "give more, or name an earlier run of these arms with --like, whose cost is then taken instead of a guess",
        )
    return Budget(max_cost_usd=max_cost_usd, trial_usd=reserved, judging_usd=judging_usd, judged_share=share)


def _check_priced(estimated: Estimate) -> None:
    unknown = [repr(one.arm.model) for one in estimated.arms if one.trial_usd is None]
    unknown += ["one of the judges"] if estimated.judging_usd is None else []
    if unknown:
        raise UsageError(
            f"a budget needs a price for every model, and none is known for {unknown[0]}",
            "add it to a price table of your own and name that in EVALFARM_PRICES (docs/reference/settings.md), "
            "or run without --max-cost",
        )


def _judgings(plan: Plan) -> int:
    judged = sum(plan.suite.case(case).rubric is not None for case in plan.cases)
    asked = sum(arm.harness != "direct" for arm in plan.arms)
    return judged * asked * plan.repeats if plan.judges else 0


def _judging_usd(plan: Plan, prices: Prices, like: RunSummary | None) -> float | None:
    """What judging one answer costs: as it did in an earlier run by the same judges, else as a rule."""
    if like is not None and like.judges_usd and like.manifest is not None:
        asked = {name for name in like.manifest.digests if name.startswith("judge/")}
        tallies = [tally for case in like.cases for tally in case.by_grader if tally.grader == JUDGE]
        answers = sum(tally.passed + tally.failed + tally.inconclusive for tally in tallies)
        if answers and asked == {f"judge/{judge}" for judge in plan.judges}:
            return like.judges_usd / answers
    of_one = [
        prices.cost_usd(judge, input_tokens=JUDGING.input_tokens, cached_tokens=0, output_tokens=JUDGING.output_tokens)
        for judge in plan.judges
    ]
    return None if None in of_one else sum(usd for usd in of_one if usd is not None)


def _priced(estimated: Estimate) -> Iterator[tuple[ArmEstimate, float]]:
    for one in estimated.arms:
        if one.trial_usd is not None:
            yield one, one.trial_usd


def _cell_of(like: RunSummary | None, arm: Arm) -> CellSummary | None:
    """The same arm of an earlier run, if trials of it ran."""
    cells = () if like is None else like.cells
    for cell in cells:
        same = (cell.model, cell.harness, cell.variant) == (arm.model, arm.harness, arm.variant)
        if same and cell.planned > cell.not_run:
            return cell
    return None


def _measured(arm: Arm, trials: int, turns: float, cell: CellSummary) -> ArmEstimate:
    ran, effort = cell.planned - cell.not_run, EFFORTS[arm.harness]
    spent = cell.cost.all_attempts_usd
    usd = cell.cost.per_question_usd if spent is None else spent / ran
    seconds = cell.latency_s.p50
    guess_s = turns * _turn_s(effort, arm.model)
    return ArmEstimate(
        arm, trials, "measured", usd, guess_s if seconds is None else seconds, trials * turns * effort.requests
    )


def _guessed(arm: Arm, trials: int, turns: float, prices: Prices) -> ArmEstimate:
    effort = EFFORTS[arm.harness]
    usd: float | None = 0.0
    if arm.model != NO_MODEL:
        of_turn = prices.cost_usd(
            arm.model, input_tokens=effort.input_tokens, cached_tokens=0, output_tokens=effort.output_tokens
        )
        usd = None if of_turn is None else turns * of_turn
    return ArmEstimate(
        arm, trials, "guessed", usd, turns * _turn_s(effort, arm.model), trials * turns * effort.requests
    )


def _turn_s(effort: Effort, model: str) -> float:
    return effort.simulated_s if is_simulated(model) else effort.seconds


def _seconds(arms: tuple[ArmEstimate, ...], limits: Limits, slots: int, side_by_side: int) -> float:
    """The longest of: one trial, all trials over all slots, and each model's own over what its limits allow."""
    work = sum(one.trials * one.trial_s / (slots * (side_by_side if one.arm.harness == "loop" else 1)) for one in arms)
    bounds = [work, *(one.trial_s for one in arms)]
    for model in {one.arm.model for one in arms}:
        of_model, known = [one for one in arms if one.arm.model == model], limits.of(model)
        busy_s = sum(one.trials * one.trial_s for one in of_model)
        bounds.append(busy_s / (known.concurrency or inf))
        bounds.append(sum(one.requests for one in of_model) * 60 / (known.requests_per_minute or inf))
    return max(bounds)
