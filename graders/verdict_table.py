"""What a trial's labels add up to, by the suite's own table."""

from evalfarm.contracts.answer import BOTH_MUST_PASS, GRADERS, Value, VerdictTable
from evalfarm.contracts.run import Outcome
from evalfarm.contracts.verdict import Label, Verdict


def verdict_of(outcome: Outcome, labels: tuple[Label, ...], table: VerdictTable = BOTH_MUST_PASS) -> Verdict:
    """The verdict of the first row that covers the labels; no label at all is no evidence, and no pass.

    A grader that gave no label is none that the suite asked. Raises ValueError for a label of a grader that no table
    can speak of.
    """
    if outcome == "infra_failed":
        return "infra_failed"
    values: dict[str, Value] = {label.grader: label.value for label in labels}
    if strange := sorted(values.keys() - set(GRADERS)):
        raise ValueError(f"no verdict table speaks of the grader {strange[0]!r}")
    if not values:
        return "inconclusive"
    return next(row.verdict for row in table if row.covers(values))
