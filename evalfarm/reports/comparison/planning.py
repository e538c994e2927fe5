"""What a plan resolves, and a run against itself: the reports of `evalfarm power` and `evalfarm aa`."""

from collections.abc import Iterator

from evalfarm.analysis.judgement.plans import ArmPower, Power, SelfChecks
from evalfarm.reports.comparison.blocks import Block, Listed, Said
from evalfarm.reports.comparison.parts import caveats
from evalfarm.reports.comparison.points import p_value
from evalfarm.reports.numbers import percent, plural
from evalfarm.reports.table import Table


def power_report(found: Power) -> list[Block]:
    """What the plan can tell apart, what the effect needs, and when more repeats stop helping."""
    weakest = max(found.arms, key=lambda arm: arm.resolution.new_cases)
    made, needs = weakest.resolution, weakest.needs
    effect = f"{100 * found.effect:g} points"
    repeats = needs.repeats_new_cases
    these = "no number of repeats of these is enough" if repeats is None else f"or {plural(repeats, 'repeat')} of these"
    return [
        Said(
            f"{plural(found.cases, 'case')} × {plural(found.repeats, 'repeat')} of {found.subject}: no drop below "
            f"{_points(made.same_cases)} points on the same cases is seen,",
            finding=True,
        ),
        Said(f"no difference of two arms below {_points(made.new_cases)} points on new cases.", finding=True),
        Said(
            f"To find {effect}: same cases, {plural(needs.repeats_same_cases, 'repeat')}; "
            f"new cases, {plural(needs.cases_new_cases, 'case')} like these ({these}).",
            finding=True,
        ),
        *(Said(line) for line in _bases(found)),
        *(grid for arm in found.arms for grid in _curve(arm)),
        Listed(
            "How to read it",
            (
                f"Smallest effects found with a power of {found.power:.0%}, at 5 %: same cases one-sided, new cases "
                "two-sided.",
                "More repeats sharpen the same cases without end; for new cases they stop helping where the cases",
                f"themselves differ more than reruns do: beyond {plural(made.useful_repeats, 'repeat')} add cases.",
            ),
        ),
    ]


def self_check_report(found: SelfChecks) -> list[Block]:
    """Whether every arm's repeats agree with each other."""
    not_held = [one.arm.name for one in found.arms if not one.held]
    verdict = "HELD" if found.held else "NOT HELD"
    lines = [
        Said(f"{verdict}: run {found.run.run} against itself, {plural(len(found.arms), 'arm')}", finding=True),
        Said(
            "Half of the repeats against the other half raise no more alarms than stated."
            if found.held
            else f"Repeats that differ by more than chance: {', '.join(not_held)}. No interval over them holds.",
            finding=True,
        ),
    ]
    rows = tuple(
        (
            one.arm.name,
            "held" if one.held else "not held",
            str(one.check.splits),
            str(one.check.alarms),
            f"{one.check.stated * one.check.splits:.1f}",
            p_value(one.check.p_repeats_alike),
        )
        for one in found.arms
    )
    title = "Every split of the repeats in two, or many of them"
    heads = ("arm", "verdict", "splits", "alarms", "allowed", "p repeats alike")
    return [*lines, *caveats([found.run]), Table(title, heads, rows, words=2)]


def _bases(found: Power) -> Iterator[str]:
    for arm in found.arms:
        if arm.arm is None:
            yield (
                f"Assumed: a disagreement D of {percent(arm.disagreement)}, as in a published study; a run of your own "
                "says better: evalfarm power RUN"
            )
        else:
            told = f"Measured: D = {percent(arm.measured)} for {arm.arm.name} in run {arm.arm.run}"
            yield f"{told}; reckoned with {percent(arm.disagreement)}"
    if any(arm.arm is not None for arm in found.arms):
        yield "Reckoned with: D smoothed by one more case that is a coin flip, so that it is never 0."
    spread = f"{100 * found.arms[0].between ** 0.5:.0f} points"
    yield f"Assumed: the true difference of two arms varies between cases with an SD of {spread}."


def _curve(arm: ArmPower) -> Iterator[Table]:
    rows = tuple((str(made.repeats), _points(made.same_cases), _points(made.new_cases)) for made in arm.by_repeats)
    named = "" if arm.arm is None else f": {arm.arm.name}"
    yield Table(
        f"Smallest effect that is found, in points{named}", ("repeats", "same cases", "new cases"), rows, words=0
    )


def _points(share: float) -> str:
    """In percentage points; beyond 100 there is nothing to find."""
    return f"{100 * share:.1f}" if share <= 1 else ">100"
