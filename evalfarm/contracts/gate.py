"""What a gate said of a run, as it is kept: the verdict of each arm with the intervals that it rests on."""

from typing import Literal

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.figures import Measure

GateVerdict = Literal["held", "regressed", "improved", "inconclusive"]
GATE_VERDICTS: tuple[GateVerdict, ...] = ("held", "regressed", "improved", "inconclusive")


class RisenFigure(Contract):
    """A figure of an arm, as a multiple of its baseline's. `risen` is the rule's word, by size and by test."""

    factor: Measure
    risen: bool


class ArmVerdict(Contract):
    """One arm. `change` and the figures: None where it has no baseline, as under a fixed bar alone."""

    model: str
    harness: str
    variant: Name
    verdict: GateVerdict
    reasons: tuple[str, ...]
    pass_rate: Measure | None = None  #: tonight's, with the trials of its confirm run
    change: Measure | None = None  #: of the pass rate, as a difference of shares, for the same cases
    latency: RisenFigure | None = None  #: mean seconds per question


class GateRecord(Contract):
    """One verdict of `evalfarm gate`. A run that is judged again gets another record; the newest holds."""

    schema_version: Literal[1] = 1
    run: Name
    at: float  #: seconds since the epoch
    verdict: GateVerdict
    baselines: tuple[str, ...]  #: runs, oldest first
    confirm: str | None = None  #: the confirm run that was taken in
    to_confirm: bool = False  #: fresh repeats are yet to decide
    arms: tuple[ArmVerdict, ...]
