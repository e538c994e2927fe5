"""From a plan's trial to the terms on which it starts, and from its attempt's result to its end in the ledger.

The same for whoever ran it and for whoever adopts it.
"""

from evalfarm.contracts.run import NO_MODEL, Plan, Trial
from evalfarm.contracts.verdict import Result
from evalfarm.runstate.budget import Spent, Terms
from evalfarm.runstate.ledger import Ledger
from evalfarm.runstate.limits import Limits
from evalfarm.runstate.records import BACKOFF_S, MAX_ATTEMPTS, Ended, Ending


def terms_of(plan: Plan, trial: Trial, limits: Limits) -> Terms:
    """On what terms a trial may start: those of its arm and of its model."""
    arm, model = plan.arms.index(trial.arm), trial.arm.model
    return Terms(arm) if model == NO_MODEL else Terms(arm, model, limits.of(model).concurrency)


def commit_result(ledger: Ledger, plan: Plan, result: Result) -> Ending:
    """Commit one attempt. Raises BrokerUnavailable."""
    return ledger.end(ended_of(plan, result))


def ended_of(plan: Plan, result: Result) -> Ended:
    """How the attempt of a result ended; an infrastructure failure is tried again, each time later."""
    return Ended(
        result.trial.index,
        result.attempt,
        verdict=result.verdict,
        row=result.model_dump_json().encode(),
        final=result.verdict != "infra_failed",
        backoff_s=BACKOFF_S * 2 ** (result.attempt - 1),
        max_attempts=MAX_ATTEMPTS,
        spent=Spent(plan.arms.index(result.trial.arm), result.cost_usd),
    )
