"""Which level breaks first: the same case read at direct, loop, codex names the layer at fault."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary.tables import Tables
from evalfarm.contracts.run import NO_MODEL
from evalfarm.contracts.suite import HARNESSES
from evalfarm.contracts.verdict import FirstBreak


def first_breaks(tables: Tables) -> tuple[FirstBreak, ...]:
    """Case by case, and within a case each model × variant. Arms of other harnesses are not read."""
    arms = [arm for arm in tables.arms if arm.harness in HARNESSES]
    at = {
        (case, tables.arms[arm]): place for place, (case, arm) in enumerate(zip(tables.cases, tables.arm, strict=True))
    }
    return tuple(
        _first_break(tables, case, reading, [at[case, arm] for arm in levels if (case, arm) in at])
        for case in dict.fromkeys(tables.cases)
        for reading, levels in _readings(arms)
    )


def _readings(arms: Sequence[ArmName]) -> Iterator[tuple[tuple[str, str], list[ArmName]]]:
    """Each model × variant with its arms, level by level; `none` only for a variant that no model ran."""
    asked = list(dict.fromkeys((arm.model, arm.variant) for arm in arms if arm.model != NO_MODEL))
    with_model = {variant for _, variant in asked}
    alone = dict.fromkeys((NO_MODEL, arm.variant) for arm in arms if arm.variant not in with_model)
    for model, variant in [*asked, *alone]:
        read = (arm for arm in arms if arm.variant == variant and arm.model in (model, NO_MODEL))
        yield (model, variant), sorted(read, key=lambda arm: HARNESSES.index(arm.harness))


def _first_break(tables: Tables, case: str, reading: tuple[str, str], levels: Sequence[int]) -> FirstBreak:
    """`levels`: the cells of the case, level by level."""
    passed, decided = tables.counts["passed"], tables.decided
    # A level where nothing was decided proves nothing of the levels above it: the reading ends there.
    read = list(takewhile(lambda cell: decided[cell] > 0, levels))
    broken = next((cell for cell in read if passed[cell] < decided[cell]), None)
    reasons = [] if broken is None else [reason.text for reason in tables.reasons[broken] if reason.failed]
    harness = {cell: tables.arms[tables.arm[cell]].harness for cell in levels}
    return FirstBreak(
        case=case,
        model=reading[0],
        variant=reading[1],
        level=None if broken is None else harness[broken],
        passed={harness[cell]: f"{int(passed[cell])}/{int(decided[cell])}" for cell in levels},
        reason=reasons[0] if reasons else None,
    )
