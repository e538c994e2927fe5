"""Answers drawn at random within a judge's labels, and the pass rate that people's labels of them give. Pure.

A label that somebody chose to give, or gave because two labels disagreed, says nothing of the answers beside it.
Therefore a draw is made before anybody labels, and a rate follows from whole draws alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.calibration import share
from evalfarm.analysis.statistics.judges import Labelled, post_stratified_rate
from evalfarm.analysis.statistics.stats import effective_cases, family_index
from evalfarm.contracts.base import digest
from evalfarm.contracts.calibration import Share
from evalfarm.contracts.drawn import Draw, DrawnArm, StratifiedRate, Stratum
from evalfarm.contracts.judging import JUDGE
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import LabelValue, Rate, Result
from evalfarm.errors import UsageError


def draw(run: str, results: Iterable[Result], *, each: int, seed: int, at: float) -> Draw:
    """`each` answers of every arm: what the judge failed first, then what it passed, both at random.

    Failed ones take at most half while passed ones are left to draw, for without labels on both sides there is no
    rate. An arm with fewer answers is drawn whole. Raises UsageError for a run without a judge's label.
    """
    found: dict[ArmName, dict[LabelValue, list[int]]] = {}
    for result, value in _decided(results):
        found.setdefault(ArmName.of(result.trial.arm), {"PASS": [], "FAIL": []})[value].append(result.trial.index)
    if not found:
        raise UsageError(f"no answer of run {run!r} has a judge's label to draw within", "run it with --judge MODEL")
    arms = tuple(_drawn(arm, sides["PASS"], sides["FAIL"], each, seed) for arm, sides in found.items())
    return Draw(run=run, each=each, seed=seed, at=at, arms=arms)


def stratified_rates(
    made: Draw, plan: Plan, results: Iterable[Result], labels: Mapping[int, LabelValue]
) -> tuple[StratifiedRate, ...]:
    """The pass rate of each arm, by `post_stratified_rate`; `labels` are people's, of every trial that was drawn.

    The judge's own rate is worth as many cases as its labels show (`effective_cases`; families are the unit where
    cases have one). Disputed answers take no part. Raises KeyError for a drawn trial without a label.
    """
    told: dict[str, Counter[tuple[str, LabelValue]]] = {}
    for result, value in _decided(results):
        told.setdefault(str(ArmName.of(result.trial.arm)), Counter())[result.trial.case, value] += 1
    return tuple(_rate(made, arm, plan, told[arm.arm], labels) for arm in made.arms)


def _decided(results: Iterable[Result]) -> Iterator[tuple[Result, LabelValue]]:
    for result in results:
        for label in result.labels:
            if label.grader == JUDGE and label.value != "INCONCLUSIVE":
                yield result, label.value


def _drawn(arm: ArmName, passed: Sequence[int], failed: Sequence[int], each: int, seed: int) -> DrawnArm:
    of_failed = min(len(failed), max(each // 2, each - len(passed)))
    return DrawnArm(
        arm=str(arm), passed=_stratum(passed, each - of_failed, seed), failed=_stratum(failed, of_failed, seed)
    )


def _stratum(trials: Sequence[int], most: int, seed: int) -> Stratum:
    # By digest: the same order on every machine, whatever version of Python or numpy draws.
    shuffled = sorted(trials, key=lambda trial: digest([seed, trial]))
    return Stratum(answers=len(trials), drawn=tuple(shuffled[:most]))


def _rate(
    made: Draw, arm: DrawnArm, plan: Plan, told: Counter[tuple[str, LabelValue]], labels: Mapping[int, LabelValue]
) -> StratifiedRate:
    passed = [labels[trial] for trial in arm.passed.drawn]
    failed = [labels[trial] for trial in arm.failed.drawn]
    judged = share(arm.passed.answers, arm.passed.answers + arm.failed.answers)
    of_passed, of_failed = _passed_by_people(passed), _passed_by_people(failed)
    found = post_stratified_rate(
        judged.hits / judged.of,
        _worth(plan, told),
        Labelled(of_passed.hits, of_passed.of),
        Labelled(of_failed.hits, of_failed.of),
    )
    return StratifiedRate(
        run=made.run,
        arm=arm.arm,
        each=made.each,
        seed=made.seed,
        judged=judged,
        of_passed=of_passed,
        of_failed=of_failed,
        disputed=(passed + failed).count("INCONCLUSIVE"),
        rate=Rate(value=found.value, low=found.low, high=found.high),
    )


def _passed_by_people(labels: Sequence[LabelValue]) -> Share:
    return share(labels.count("PASS"), len(labels) - labels.count("INCONCLUSIVE"))


def _worth(plan: Plan, told: Counter[tuple[str, LabelValue]]) -> float:
    """How many independent cases the judge's labels are worth; as many as there are where they cannot vary."""
    cases = sorted({case for case, _ in told})
    passed = np.array([told[case, "PASS"] for case in cases], dtype=np.float64)
    decided = passed + [told[case, "FAIL"] for case in cases]
    shares = passed / decided
    # The marks keep a case without a family apart from a family of that name.
    named = [(f"family {family}" if (family := plan.suite.case(case).family) else f"case {case}") for case in cases]
    groups = family_index(named, len(cases))
    units = len(set(named))
    alone = units == len(cases) and bool(np.all((shares == 0) | (shares == 1)))
    if units == 1 or alone or shares.mean() in (0, 1):
        return units
    return effective_cases(shares, decided, groups)
