import pytest

from evalfarm.contracts.gate import GateRecord
from evalfarm.objects import Objects
from evalfarm.outcomes import Outcomes


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes(Objects("memory://"))


def record(at: float) -> GateRecord:
    return GateRecord(run="night-1", at=at, verdict="held", baselines=(), arms=())


def test_verdicts_on_a_run_are_appended_in_the_order_of_their_time(outcomes: Outcomes) -> None:
    for at in (300.0, 100.0, 200.0):
        outcomes.add_gate(record(at))
    found = [outcomes.gate("night-1", name) for name in outcomes.gates("night-1")]
    assert found == [record(100.0), record(200.0), record(300.0)]


def test_a_verdict_that_is_added_once_is_one_however_often_it_is_added(outcomes: Outcomes) -> None:
    for at in (200.0, 100.0):
        outcomes.add_gate(record(at))
    for _ in range(3):
        outcomes.add_gate(record(150.0), "night")
    found = [outcomes.gate("night-1", name) for name in outcomes.gates("night-1")]
    assert found == [record(100.0), record(150.0), record(200.0)]


def test_what_there_is_not_is_none(outcomes: Outcomes) -> None:
    assert (outcomes.runs(), outcomes.gates("x"), outcomes.tally("x"), outcomes.manifest("x")) == ([], (), None, None)
    assert outcomes.summary_version("x") is None
