"""How those who tend a run judge what is stored of it."""

import pytest

from evalfarm.cli.standing import grader_of
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.run import Plan, Telemetry, Trace
from evalfarm.contracts.verdict import Result
from evalfarm.errors import StoreUnavailable
from evalfarm.store import Store

FALLS = b"raise RuntimeError('not here')"


@pytest.fixture
def plan() -> Plan:
    """A trial of a case with a fact that the suite's own function is to judge; its file does not import."""
    fact = {"id": "blue", "function": "blue", "rests_on": ["request"]}
    suite = {
        "suite": "small",
        "version": "1",
        "plugin": {"name": "p"},
        "server": {"python": "server.py"},
        "answer_functions": "answers.py",
        "cases": [{"id": "case", "query": "?", "facts": [fact]}],
    }
    return Plan.model_validate(
        {
            "run": "small-1",
            "suite": suite,
            "arms": [{"model": "m", "harness": "loop", "variant": "plain"}],
            "cases": ["case"],
            "repeats": 1,
            "files": {"answers.py": digest_bytes(FALLS)},
        }
    )


@pytest.fixture
def trace(plan: Plan) -> Trace:
    return Trace(
        run=plan.run,
        trial=plan.trial(0),
        attempt=2,
        outcome="finished",
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=1.0,
        cost_usd=0.25,
    )


def test_a_stored_trace_that_cannot_be_judged_fails_as_infrastructure_and_ends_nothing_else(
    plan: Plan, trace: Trace
) -> None:
    store = Store("memory://")
    store.put_blob(FALLS)
    judged = grader_of(store)(plan, trace)
    failure = judged.failure or ""
    assert failure.startswith("evalfarm itself failed to judge it: SuiteError: ")
    assert "answers.py: the file of answer functions does not import: RuntimeError: not here" in failure
    assert judged == Result(
        trial=trace.trial,
        attempt=2,
        outcome="infra_failed",
        verdict="infra_failed",
        failure=failure,
        failure_kind="internal",
        cost_usd=0.25,
    )


def test_a_stored_trace_is_not_judged_while_the_store_keeps_back_what_that_takes(plan: Plan, trace: Trace) -> None:
    with pytest.raises(StoreUnavailable, match="missing"):
        grader_of(Store("memory://"))(plan, trace)
