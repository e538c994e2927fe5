"""What a case asked and expected at the level of its arm, to stand beside what came instead."""

from collections.abc import Mapping
from typing import NamedTuple

from evalfarm.contracts.verdict import Asked, CaseSummary, RunSummary


class Wanted(NamedTuple):
    """What a report says of a case that did not pass."""

    asked: str  #: the questions, or of `direct` the call
    expected: tuple[str, ...]  #: a sentence each; empty: nothing is declared

    @property
    def lines(self) -> tuple[str, ...]:
        """As two lines: `asked: …` and, where something is declared, `expected: …; …`."""
        declared = (f"expected: {'; '.join(self.expected)}",) if self.expected else ()
        return (f"asked: {self.asked}", *declared)


def by_case(summary: RunSummary) -> dict[str, Asked]:
    """What the summary knows of its cases, by their ids."""
    return {asked.case: asked for asked in summary.asked}


def wanted(known: Mapping[str, Asked], case: CaseSummary) -> Wanted | None:
    """What this case wanted in its arm.

    None: not known, as of rows from elsewhere, or of no use, as no trial of it came as far as being judged.
    """
    asked = known.get(case.case)
    if asked is None or not (case.labels.get("failed") or case.labels.get("inconclusive")):
        return None
    if case.harness == "direct" and asked.call is not None:
        return Wanted(asked.call, asked.expected_of_call)
    return Wanted(" / ".join(asked.turns), asked.expected)
