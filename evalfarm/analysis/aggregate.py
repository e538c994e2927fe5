"""The results of a run to its summary: every planned trial counted once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalfarm.analysis.stats import flip_rate, pass_rate, quantile
from evalfarm.contracts.run import NO_MODEL, Arm, Manifest, Plan
from evalfarm.contracts.suite import HARNESSES
from evalfarm.contracts.verdict import (
    VERDICTS,
    CaseSummary,
    CellSummary,
    FirstBreak,
    Latency,
    Result,
    RunSummary,
    Verdict,
)

DECIDED: tuple[Verdict, ...] = ("passed", "failed")
"""The verdicts that enter a rate; the other three are counted beside it."""


def summarize(
    manifest: Manifest, plan: Plan, results: Iterable[Result], *, attempts: int, finished: bool
) -> RunSummary:
    """The one document that every report of a run is drawn from.

    What was planned follows from the plan; a trial without a result is `not_run`. `attempts` counts what was
    started, counted or not. Arms and cases keep the plan's order.
    Raises ValueError, naming the trial, for a second result of one trial and for a result that is no trial of
    this plan.
    """
    closed = _by_index(plan, results)
    groups = _group(plan, closed)
    cases = tuple(_case_summary(plan, group) for group in groups)
    totals = _count(group.verdicts for group in groups)
    return RunSummary(
        run=manifest.run,
        suite=manifest.suite,
        label=manifest.label,
        simulated=manifest.simulated,
        synthetic=manifest.synthetic,
        isolation=manifest.isolation,
        finished=finished,
        planned=plan.size,
        attempts=attempts,
        cells=tuple(_cell_summary(arm, [group for group in groups if group.arm == arm]) for arm in plan.arms),
        cases=cases,
        breaks=tuple(_first_breaks(plan, groups)),
        manifest=manifest,
        **totals,
    )


class _Group(NamedTuple):
    """One case in one arm: its trials' indices in the order of repeats, and what is known of them."""

    case: str
    arm: Arm
    trials: tuple[int, ...]
    results: tuple[Result, ...]  #: of the trials that have one, in the same order
    verdicts: tuple[Verdict, ...]  #: aligned with `trials`

    @property
    def passed(self) -> int:
        return self.verdicts.count("passed")

    @property
    def decided(self) -> int:
        return sum(verdict in DECIDED for verdict in self.verdicts)


def _by_index(plan: Plan, results: Iterable[Result]) -> dict[int, Result]:
    closed: dict[int, Result] = {}
    for result in results:
        index = result.trial.index
        if index in closed:
            raise ValueError(f"trial {index} of run {plan.run} has two results; a trial counts once")
        if not 0 <= index < plan.size or result.trial != plan.trial(index):
            raise ValueError(f"the result of trial {index} belongs to another plan than that of run {plan.run}")
        closed[index] = result
    return closed


def _group(plan: Plan, closed: Mapping[int, Result]) -> list[_Group]:
    """Case by case, and within a case arm by arm."""
    width = plan.size // plan.repeats
    groups: dict[tuple[str, Arm], _Group] = {}
    for place in range(width):
        first = plan.trial(place)
        # Repeats are outermost in a plan: the same case and arm come back every `width` trials.
        trials = tuple(range(place, plan.size, width))
        results = tuple(closed[index] for index in trials if index in closed)
        verdicts = tuple(closed[index].verdict if index in closed else "not_run" for index in trials)
        groups[first.case, first.arm] = _Group(first.case, first.arm, trials, results, verdicts)
    return [groups[case, arm] for case in plan.cases for arm in plan.arms]


def _count(verdicts: Iterable[Sequence[Verdict]]) -> dict[Verdict, int]:
    counted = Counter(verdict for some in verdicts for verdict in some)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def _case_summary(plan: Plan, group: _Group) -> CaseSummary:
    return CaseSummary(
        case=group.case,
        model=group.arm.model,
        harness=group.arm.harness,
        variant=group.arm.variant,
        tags=dict(plan.suite.case(group.case).tags),
        labels=_count([group.verdicts]),
        reasons=_reasons(result for result in group.results if result.verdict != "passed"),
        trials=group.trials,
        verdicts=group.verdicts,
    )


def _reasons(results: Iterable[Result]) -> tuple[str, ...]:
    """Each reason once, the one that most trials give first; equals in the order of repeats."""
    told = Counter(reason for result in results for reason in dict.fromkeys(result.reasons))
    return tuple(reason for reason, _ in told.most_common())


def _cell_summary(arm: Arm, groups: Sequence[_Group]) -> CellSummary:
    results = [result for group in groups for result in group.results]
    decided = [result for result in results if result.verdict in DECIDED]
    passes, trials = [group.passed for group in groups], [group.decided for group in groups]
    latencies = [result.latency_s for result in decided if result.latency_s is not None]
    return CellSummary(
        model=arm.model,
        harness=arm.harness,
        variant=arm.variant,
        planned=sum(len(group.trials) for group in groups),
        pass_rate=pass_rate(passes, trials),
        flip_rate=flip_rate(passes, trials),
        tool_calls_per_question=_mean([result.tool_calls for result in decided]),
        reasoning_tokens_per_question=_mean([result.reasoning_tokens for result in decided]),
        latency_s=Latency(p50=quantile(latencies, 0.5), p95=quantile(latencies, 0.95)),
        cost_usd=_total([result.cost_usd for result in results if result.verdict != "not_run"]),
        **_count(group.verdicts for group in groups),
    )


def _mean(observed: Sequence[int | None]) -> float | None:
    """Over the trials that report a figure; a figure that is missing is no zero."""
    reported = [value for value in observed if value is not None]
    return sum(reported) / len(reported) if reported else None


def _total(costs: Sequence[float | None]) -> float | None:
    """Unknown as soon as one of them is, and where there is none."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _first_breaks(plan: Plan, groups: Sequence[_Group]) -> Iterator[FirstBreak]:
    by_place = {(group.case, group.arm): group for group in groups}
    for case in plan.cases:
        for model, variant in _readings(plan.arms):
            levels = [
                by_place[case, arm]
                for harness in HARNESSES
                for arm in plan.arms
                if arm.harness == harness and arm.variant == variant and arm.model in (model, NO_MODEL)
            ]
            yield _first_break(case, model, variant, levels)


def _readings(arms: Sequence[Arm]) -> list[tuple[str, str]]:
    """Each model × variant to read through the levels; `none` only for a variant that no model ran."""
    asked = list(dict.fromkeys((arm.model, arm.variant) for arm in arms if arm.model != NO_MODEL))
    with_model = {variant for _, variant in asked}
    alone = dict.fromkeys((NO_MODEL, arm.variant) for arm in arms if arm.variant not in with_model)
    return asked + list(alone)


def _first_break(case: str, model: str, variant: str, levels: Sequence[_Group]) -> FirstBreak:
    broken = next((group for group in levels if group.passed < group.decided), None)
    reasons = _reasons(result for result in broken.results if result.verdict == "failed") if broken else ()
    return FirstBreak(
        case=case,
        model=model,
        variant=variant,
        level=broken.arm.harness if broken else None,
        passed={group.arm.harness: f"{group.passed}/{group.decided}" for group in levels},
        reason=reasons[0] if reasons else None,
    )
