"""What one look at the farm found: the facts that metrics are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evalfarm.contracts.calibration import Calibration
from evalfarm.contracts.gate import GateRecord
from evalfarm.contracts.run import Manifest, QueueName
from evalfarm.contracts.tally import RunTally
from evalfarm.contracts.verdict import RunSummary
from evalfarm.runstate import FarmView, Limits

Source = Literal["ledger", "store"]


class NightOf(NamedTuple):
    """Whose nights are told apart: a suite in a queue."""

    suite: str
    queue: QueueName


@dataclass(frozen=True, slots=True)
class Night:
    """The newest of a suite's runs in a queue that carry one label, or none; confirm runs are no nights.

    Two schedules of one suite, with other arms, differ in their labels, and neither hides the other's.
    """

    of: NightOf
    started: Manifest  #: the newest, finished or not
    finished: RunSummary | None  #: the newest whose every trial was closed
    gate: GateRecord | None  #: the last word on the newest run that a gate has judged


@dataclass(frozen=True, slots=True)
class Owed:
    """A schedule of a suite."""

    of: NightOf
    schedule: str
    due_at: float  #: when the first night was due that it owes, or when the next one is; epoch seconds


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge of a suite's last finished run."""

    suite: str
    model: str
    calibration: Calibration | None  #: the newest on held-out labels, of the judge as it is; None: there is none


@dataclass(frozen=True, slots=True)
class Took:
    """What a run took so far, or in all."""

    of: NightOf
    tally: RunTally


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. What belongs to a source that could not be read is what was last known of it."""

    nights: tuple[Night, ...]  #: newest first
    owed: tuple[Owed, ...]  #: of every schedule that had a night
    judges: tuple[Judge, ...]
    took: tuple[Took, ...]  #: every run that is kept, newest first
    farm: FarmView | None  #: None: the ledger could not be read, and what goes on is not known
    manifests: Mapping[str, Manifest]  #: of the runs that are kept
    untended: int  #: runs of late that are neither sealed nor in the ledger
    limits: Limits
    read_at: Mapping[Source, float]  #: when each source was last read with success, epoch seconds
    failed: Mapping[Source, str]  #: why it could not be read now
