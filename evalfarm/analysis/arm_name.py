"""What an arm is called: the one name for it in summaries, comparisons and reports."""

from typing import NamedTuple, Self

from evalfarm.contracts.run import NO_MODEL, Arm
from evalfarm.contracts.verdict import CaseSummary, CellSummary

NOT_NAMED = "-"
"""A model, harness or variant that rows from elsewhere do not name."""


class ArmName(NamedTuple):
    """What tells an arm from the others of its run; rows from elsewhere may name any harness."""

    model: str
    harness: str
    variant: str

    @classmethod
    def of(cls, told: Arm | CellSummary | CaseSummary) -> Self:
        """The arm of a cell, a case, or an arm of a plan."""
        return cls(told.model, told.harness, told.variant)

    def __str__(self) -> str:
        """`gpt-5 · codex · guided`; `direct · plain` where no model takes part, and without what rows do not name."""
        named = [value for value in self if value not in (NO_MODEL, NOT_NAMED)]
        return " · ".join(named) or "all trials"
