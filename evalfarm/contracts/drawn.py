"""A random draw of a run's answers for people to label, and the pass rates that their labels give."""

from typing import Literal

from pydantic import Field

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.calibration import Share
from evalfarm.contracts.verdict import Rate


class Stratum(Contract):
    """The answers of one arm that the judge gave one label, and those of them that were drawn."""

    answers: int
    drawn: tuple[int, ...] = ()  #: trials, in the order of the draw: a shorter draw by the same seed is its beginning


class DrawnArm(Contract):
    """One arm's answers that the judge decided, by its label."""

    arm: str
    passed: Stratum
    failed: Stratum


class Draw(Contract):
    """Which of a run's answers people are to label. Made before anybody labels, and kept as it was made."""

    schema_version: Literal[1] = 1
    run: Name
    each: int = Field(ge=2)  #: answers asked for, of each arm
    seed: int
    at: float  #: seconds since the epoch
    arms: tuple[DrawnArm, ...] = Field(min_length=1)

    @property
    def trials(self) -> tuple[int, ...]:
        """All that were drawn, ascending: an order that tells nothing of the judge's label."""
        return tuple(sorted(trial for arm in self.arms for trial in (*arm.passed.drawn, *arm.failed.drawn)))


class StratifiedRate(Contract):
    """One arm's pass rate as people would give it, from labels drawn at random within the judge's labels."""

    run: Name
    arm: str
    each: int  #: of the draw, as is the seed
    seed: int
    judged: Share  #: passed by the judge, of the answers that it decided
    of_passed: Share  #: passed by people, of the drawn answers that the judge passed
    of_failed: Share  #: passed by people, of the drawn answers that the judge failed
    disputed: int  #: drawn, and left out: people could not decide
    rate: Rate  #: no value: a side that occurs has no label
