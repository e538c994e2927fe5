"""What `gate` keeps of its verdict for those who watch."""

import os
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.gate import ArmVerdict, GateRecord
from evalfarm.contracts.run import Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite, Variant
from evalfarm.outcomes import Outcomes
from evalfarm.store import Store
from tests.made_runs import LOOP, made_source

STEADY = [3] * 16 + [2] * 3 + [1]
BROKEN = [0] * 8 + STEADY[8:]


@pytest.fixture
def nights() -> Store:
    """Five steady nights and one that is broken."""
    store = Store(f"file://{Path(os.environ['EVALFARM_HOME']).absolute()}/store")
    for night in range(1, 7):
        name = f"night-{night}"
        summary = made_source(name, {LOOP: BROKEN if night == 6 else STEADY}, created_at=float(night)).summary
        assert summary.manifest is not None
        cases = tuple(dict.fromkeys(case.case for case in summary.cases))
        suite = Suite(
            suite="small",
            version="1",
            plugin=Plugin(name="p"),
            server=Server(python="server.py"),
            variants={"plain": Variant()},
            cases=tuple(Case(id=case, turns=("?",)) for case in cases),
        )
        store.put_plan(Plan(run=name, suite=suite, arms=summary.manifest.arms, cases=cases, repeats=3))
        store.put_manifest(summary.manifest)
        store.put_summary(summary)
    return store


def asked(run: str) -> tuple[str, ...]:
    baselines = [word for night in range(1, 6) for word in ("--baseline", f"night-{night}") if f"night-{night}" != run]
    return ("gate", run, *baselines, "--set", "least_nights=3")


def kept(store: Store, run: str) -> list[GateRecord]:
    outcomes = Outcomes(store.objects)
    found = [outcomes.gate(run, name) for name in outcomes.gates(run)]
    return [one for one in found if one is not None]


def test_a_verdict_is_kept_with_the_intervals_that_it_rests_on(evalfarm: Any, nights: Store) -> None:
    assert evalfarm(*asked("night-6")).code == 3
    (record,) = kept(nights, "night-6")
    assert (record.run, record.verdict, record.to_confirm) == ("night-6", "inconclusive", True)
    assert record.baselines == tuple(f"night-{night}" for night in range(1, 6))
    (arm,) = record.arms
    assert isinstance(arm, ArmVerdict)
    assert (arm.model, arm.harness, arm.variant, arm.verdict) == (*LOOP, "inconclusive")
    assert arm.change is not None
    assert arm.change.value is not None
    assert arm.change.low is not None
    assert arm.change.high is not None
    assert arm.change.low < arm.change.value < arm.change.high < 0
    assert arm.latency is not None
    assert not arm.latency.risen


def test_each_verdict_is_kept_beside_the_earlier_ones(evalfarm: Any, nights: Store) -> None:
    for words in (asked("night-5"), (*asked("night-5"), "--at-least", "0.99")):
        evalfarm(*words)
    assert [record.verdict for record in kept(nights, "night-5")] == ["held", "regressed"]


def test_an_arm_under_a_bar_alone_has_no_change(evalfarm: Any, nights: Store) -> None:
    assert evalfarm("gate", "night-5", "--at-least", "0.5").code == 0
    (record,) = kept(nights, "night-5")
    assert [(arm.verdict, arm.change, arm.latency) for arm in record.arms] == [("held", None, None)]


def test_who_may_only_read_the_store_has_a_verdict_all_the_same(evalfarm: Any, nights: Store) -> None:
    # A file where the folder of verdicts would be: root may write whatever a folder's mode says.
    folder = Path(nights.url.removeprefix("file://")) / "runs/night-5/gates"
    folder.write_text("in the way")
    ended = evalfarm(*asked("night-5"))
    assert (ended.code, ended.out.splitlines()[0]) == (0, "HELD: run night-5")
    assert ended.err.startswith("The verdict is not kept, so no alert will know of it: cannot write file://")
