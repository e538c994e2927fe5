"""What a run took, from the ledger and the rows, as it is sealed. Pure but for asking the rows."""

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.run import Plan
from evalfarm.contracts.tally import RunTally, TokenCounts
from evalfarm.runstate import OpenRun


def tally_of(plan: Plan, seen: OpenRun, rows: Rows) -> RunTally:
    """The tally of a run of ours, by the rows that `rows_of_run` made."""
    tokens = tokens_of(rows)
    arms = []
    for place, arm in enumerate(plan.arms):
        tally = seen.arm_tally(place, arm.model_dump())
        arms.append(tally.model_copy(update={"tokens": tokens.get(ArmName.of(arm), _NONE)}))
    return RunTally(run=plan.run, attempts=seen.attempts, arms=tuple(arms))


def tokens_of(rows: Rows) -> dict[ArmName, TokenCounts]:
    """Tokens of each arm that has a result."""
    found = rows.records("SELECT model, harness, variant, input, cached, output, reasoning FROM tokens")
    return {
        ArmName(model, harness, variant): TokenCounts(
            input=round(fresh), cached=round(cached), output=round(output), reasoning=round(reasoning)
        )
        for model, harness, variant, fresh, cached, output, reasoning in found
    }


_NONE = TokenCounts(input=0, cached=0, output=0, reasoning=0)
