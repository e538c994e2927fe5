"""Every attempt of a closed trial is given once, however the run's results and traces arrive."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.conversations.attempts import Attempts
from evalfarm.contracts.run import Arm, Plan, Telemetry, Trace
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Result
from evalfarm.errors import UnknownName
from evalfarm.store import Store

_SUITE = Suite(
    suite="shop",
    version="1",
    plugin=Plugin(name="Shop"),
    server=Server(python="server.py"),
    cases=(Case(id="c", turns=("How many?",)),),
)
_PLAN = Plan(
    run="shop-1", suite=_SUITE, arms=(Arm(model="m", harness="loop", variant="plain"),), cases=("c",), repeats=6
)


@pytest.fixture
def store() -> Store:
    return _opened()


def _opened() -> Store:
    made = Store("memory://")
    made.put_plan(_PLAN)
    return made


def _keep(store: Store, index: int, attempt: int) -> None:
    store.put_trace(
        Trace(
            run=_PLAN.run,
            trial=_PLAN.trial(index),
            attempt=attempt,
            outcome="finished",
            telemetry=Telemetry(complete=True),
            started_at=1.0,
            duration_s=1.0,
        )
    )


def _closed(index: int, attempt: int = 1, verdict: str = "passed") -> Result:
    return Result.model_validate(
        {"trial": _PLAN.trial(index), "attempt": attempt, "outcome": "finished", "verdict": verdict}
    )


def _told(given: Sequence[tuple[Trace, object]]) -> list[tuple[int, int]]:
    return [(trace.trial.index, trace.attempt) for trace, _ in given]


def test_what_is_stored_while_the_run_is_at_work_is_given_once(store: Store) -> None:
    attempts = Attempts(store, "shop-1")
    assert list(attempts.counted()) == []
    for index in range(3):
        _keep(store, index, 1)
    store.put_segment("shop-1", 0, [_closed(2), _closed(0)])
    assert _told(list(attempts.counted())) == [(2, 1), (0, 1)]
    assert list(attempts.counted()) == []
    store.put_segment("shop-1", 1, [_closed(1)])
    assert _told(list(attempts.counted())) == [(1, 1)]
    assert list(attempts.others()) == []


def test_a_superseded_attempt_is_given_in_the_end_however_late_it_was_stored_and_does_not_count(store: Store) -> None:
    _keep(store, 0, 2)
    store.put_segment("shop-1", 0, [_closed(0, attempt=2)])
    attempts = Attempts(store, "shop-1")
    ((_, counted),) = attempts.counted()
    _keep(store, 0, 1)
    ((late, superseded),) = attempts.others()
    assert (late.attempt, counted.counted, superseded.counted) == (1, True, False)
    assert (counted.verdict, superseded.verdict) == ("passed", None)


def test_of_a_trial_that_is_not_closed_or_whose_attempt_left_nothing_there_is_no_conversation(store: Store) -> None:
    _keep(store, 1, 1)
    store.put_segment("shop-1", 0, [_closed(0, attempt=3, verdict="infra_failed")])
    attempts = Attempts(store, "shop-1")
    assert [list(attempts.counted()), list(attempts.others())] == [[], []]


def test_a_trial_that_a_judge_looked_at_has_the_judges_verdict(store: Store) -> None:
    _keep(store, 0, 1)
    store.put_segment("shop-1", 0, [_closed(0, verdict="inconclusive")])
    store.put_judged("shop-1", [_closed(0, verdict="failed")])
    ((_, origin),) = Attempts(store, "shop-1").counted()
    assert origin.verdict == "failed"


def test_a_run_that_is_not_there_is_unknown(store: Store) -> None:
    with pytest.raises(UnknownName, match="no run 'shop-2'"):
        Attempts(store, "shop-2")


@given(
    kept=st.sets(st.tuples(st.integers(0, 5), st.integers(1, 4))),
    closed=st.dictionaries(st.integers(0, 5), st.integers(1, 4)),
    cut=st.integers(0, 6),
)
def test_of_closed_trials_every_kept_attempt_is_given_once_and_of_others_none(
    kept: set[tuple[int, int]], closed: dict[int, int], cut: int
) -> None:
    store = _opened()
    for index, attempt in kept:
        _keep(store, index, attempt)
    results = [_closed(index, attempt) for index, attempt in closed.items()]
    attempts = Attempts(store, "shop-1")
    given = []
    for k, stretch in enumerate(filter(None, (results[:cut], results[cut:]))):
        store.put_segment("shop-1", k, stretch)
        given += _told(list(attempts.counted()))
    given += _told(list(attempts.others()))
    assert sorted(given) == sorted((index, attempt) for index, attempt in kept if index in closed)
