"""What a pair of arms is called: by what tells the two apart, then by what they share."""

from collections.abc import Sequence

from evalfarm.analysis.arm_name import NOT_NAMED
from evalfarm.analysis.judgement.arms import AXES, Axis
from evalfarm.analysis.judgement.verdicts import ArmPair
from evalfarm.contracts.run import NO_MODEL


def against(pair: ArmPair) -> str:
    """`guided vs plain (gpt-5 · codex)`; the arm alone where the runs are all that differs."""
    if not pair.axes:
        return pair.candidate.name
    told, else_ = compared(pair)
    return f"{told} ({else_})" if else_ else told


def compared(pair: ArmPair) -> tuple[str, str]:
    """What is held against what, and what both arms share."""
    sides = [" · ".join(getattr(arm, axis) for axis in pair.axes) for arm in (pair.candidate, pair.baseline)]
    shared = (_shared(pair, axis) for axis in AXES if axis not in pair.axes)
    return f"{sides[0]} vs {sides[1]}", " · ".join(value for value in shared if value)


def names(pairs: Sequence[ArmPair]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the cells that name each pair."""
    if not any(pair.axes for pair in pairs):
        return ("arm",), [(pair.candidate.name,) for pair in pairs]
    return ("compared", "all else"), [
        compared(pair) if pair.axes else ("the two runs", pair.candidate.name) for pair in pairs
    ]


def _shared(pair: ArmPair, axis: Axis) -> str:
    """The value of both on an axis; where one runs without a model, the other's."""
    return "".join({getattr(pair.candidate, axis), getattr(pair.baseline, axis)} - {NO_MODEL, NOT_NAMED})
