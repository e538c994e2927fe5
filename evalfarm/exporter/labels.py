"""Which arms have series of their own: as many as a Prometheus bears, the newest. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, Self

from evalfarm.contracts.run import QueueName
from evalfarm.exporter.catalogue import OTHER
from evalfarm.exporter.seen import NightOf, Seen

MOST_ARMS = 200
"""Of all suites together: some ten thousand series, where each arm has about fifty."""


class _Arm(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def harness(self) -> str: ...
    @property
    def variant(self) -> str: ...


class ArmLabels(NamedTuple):
    """An arm of a suite in a queue, as a metric's labels have it."""

    suite: str
    queue: QueueName
    model: str
    harness: str
    variant: str

    @classmethod
    def of(cls, night: NightOf, arm: _Arm) -> Self:
        """The labels of a suite's arm."""
        return cls(*night, arm.model, arm.harness, arm.variant)


class Bound:
    """The arms that are told apart. All others are told together, or not at all."""

    def __init__(self, arms: Iterable[ArmLabels], most: int = MOST_ARMS) -> None:
        """`arms` in the order of their claim to a series of their own; one may come several times."""
        every = list(dict.fromkeys(arms))
        self._arms = frozenset(every[:most])
        self._nights = frozenset(NightOf(arm.suite, arm.queue) for arm in self._arms)
        self.left_out = len(every) - len(self._arms)

    def holds(self, arm: ArmLabels) -> bool:
        """Whether the arm is told by its names."""
        return arm in self._arms

    def holds_night(self, night: NightOf) -> bool:
        """Whether the suite is told by its name."""
        return night in self._nights

    def arm(self, arm: ArmLabels) -> ArmLabels:
        """The arm, or the one that stands for all others of its queue."""
        return arm if self.holds(arm) else ArmLabels(OTHER, arm.queue, OTHER, OTHER, OTHER)

    def night(self, night: NightOf) -> NightOf:
        """The suite, or what stands for all others in the queue."""
        return night if self.holds_night(night) else NightOf(OTHER, night.queue)


def bound_of(seen: Seen, most: int = MOST_ARMS) -> Bound:
    """The bound of a look: the arms of the last runs come first, then those of earlier ones, newest first."""
    return Bound(_claims(seen), most)


def _claims(seen: Seen) -> Iterator[ArmLabels]:
    for night in seen.nights:
        for arm in night.started.arms:
            yield ArmLabels.of(night.of, arm)
        for cell in night.finished.cells if night.finished else ():
            yield ArmLabels.of(night.of, cell)
        for judged in night.gate.arms if night.gate else ():
            yield ArmLabels.of(night.of, judged)
    for took in seen.took:
        for tally in took.tally.arms:
            yield ArmLabels.of(took.of, tally)
