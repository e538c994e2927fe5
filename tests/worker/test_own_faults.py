from typing import Any

import pytest

from evalfarm.contracts.run import Telemetry, Trace
from evalfarm.contracts.verdict import Result
from worker.own_faults import unjudged


@pytest.mark.parametrize("cost_usd", [0.25, None])
def test_an_attempt_that_cannot_be_judged_says_why_and_what_it_cost(
    suite: Any, planned: Any, cost_usd: float | None
) -> None:
    trial = planned(suite())[1]
    trace = Trace(
        run="r1",
        trial=trial,
        attempt=2,
        outcome="finished",
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=1.0,
        cost_usd=cost_usd,
    )
    assert unjudged(trace, RuntimeError("the judge fell")) == Result(
        trial=trial,
        attempt=2,
        outcome="infra_failed",
        verdict="infra_failed",
        failure="evalfarm itself failed to judge it: RuntimeError: the judge fell",
        failure_kind="internal",
        cost_usd=cost_usd,
    )
