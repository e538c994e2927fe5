"""A resolved failure that stays: what went wrong once, what it was judged by, and what passed since."""

from pydantic import Field

from evalfarm.contracts.answer import Reference
from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.run import Arm, ToolCall, Turn
from evalfarm.contracts.verdict import Label


class Provenance(Contract):
    """Where a piece of evidence comes from: one attempt of one run."""

    run: Name
    trial: int
    attempt: int
    arm: Arm
    suite_version: str
    evalfarm: str
    versions: dict[str, str] = {}


class Regression(Contract):
    """One line of a suite's regression set, never changed once it is written."""

    case: Name
    fixture_version: str
    turns: tuple[Turn, ...] = Field(min_length=1)  #: what was asked, and the answers that failed
    evidence: tuple[ToolCall, ...] = ()  #: what the tools were asked and returned
    labels: tuple[Label, ...] = ()  #: what failed it
    reference: Reference | None = None  #: as it stood then
    failed: Provenance
    passed: Provenance  #: the trial of the same case that passed since
    note: str = ""
    promoted_at: float  #: seconds since the epoch
