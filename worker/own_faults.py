"""What becomes of an attempt over a fault of evalfarm's own: infrastructure failed it, with the fault's words."""

from evalfarm.contracts.run import Plan, Telemetry, Trace, Trial
from evalfarm.contracts.verdict import Result


def unobserved(plan: Plan, trial: Trial, attempt: int, error: Exception) -> Trace:
    """The trace of an attempt that nobody saw through."""
    return Trace(
        run=plan.run,
        trial=trial,
        attempt=attempt,
        outcome="infra_failed",
        failure=f"evalfarm itself failed: {_words(error)}",
        failure_kind="internal",
        telemetry=Telemetry(complete=False, gaps=("the attempt was not observed to its end",)),
        isolation=plan.isolation,
        started_at=0.0,
        duration_s=0.0,
    )


def unjudged(trace: Trace, error: Exception) -> Result:
    """The result of an attempt whose stored trace could not be judged; what it cost is not forgotten."""
    return Result(
        trial=trace.trial,
        attempt=trace.attempt,
        outcome="infra_failed",
        verdict="infra_failed",
        failure=f"evalfarm itself failed to judge it: {_words(error)}",
        failure_kind="internal",
        cost_usd=trace.cost_usd,
    )


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
