import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.contracts.gate import GateRecord
from evalfarm.contracts.run import Plan
from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.nights import Nights
from evalfarm.outcomes import Outcomes
from evalfarm.settings import load_settings
from evalfarm.store import Store
from tests.made_runs import LOOP, made_case, made_run

DAY_S = 86_400.0


@pytest.fixture
def store() -> Store:
    return Store(load_settings().store_url)


@pytest.fixture
def keep(store: Store, make_plan: Callable[..., Plan]) -> Callable[..., None]:
    """Stores a run that began so many days ago."""

    def put(run: str, age_days: float, label: str | None = None, *, finished: bool = True) -> None:
        summary = made_run(run, made_case("case", LOOP, 1, 1), created_at=time.time() - age_days * DAY_S, label=label)
        assert summary.manifest is not None
        store.put_plan(make_plan(run))
        store.put_manifest(summary.manifest)
        if finished:
            store.put_summary(summary)

    return put


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    def build(run: str) -> Plan:
        return Plan.model_validate(
            {
                "run": run,
                "suite": {
                    "suite": "small",
                    "version": "1",
                    "plugin": {"name": "p"},
                    "server": {"python": "server.py"},
                    "cases": [{"id": "case", "query": "?"}],
                },
                "arms": [LOOP._asdict()],
                "cases": ["case"],
                "repeats": 1,
            }
        )

    return build


def runs(store: Store) -> set[str]:
    return {manifest.run for manifest in store.runs()}


def test_nothing_is_deleted_unless_it_is_asked_for(evalfarm: Any, store: Store, keep: Any) -> None:
    keep("old", 100)
    ended = evalfarm("prune", "--older-than", "90d")
    assert ended.code == 0
    assert ended.out == "would be deleted: old\n1 run would be deleted. Nothing was: add --delete.\n"
    assert runs(store) == {"old"}


def test_what_is_old_goes_whole_and_what_is_protected_stays(evalfarm: Any, store: Store, keep: Any) -> None:
    nights = Nights(store.objects)
    night = Night(schedule="shop", stamp="20260101-0230", due_at=0.0, decided_at=0.0, decision="on time")
    nights.since("shop", 0.0)
    nights.put(night)
    nights.put_end(NightEnd(schedule="shop", stamp=night.stamp, verdict="held", accepted=True, ended_at=0.0))
    keep(night.run, 300, "shop")
    keep("old", 100)
    keep("release", 100, "golden")
    keep("open", 100, finished=False)
    keep("young", 3)
    ended = evalfarm("prune", "--older-than", "2w", "--keep", "golden", "--delete", "--json")
    assert json.loads(ended.out) == {
        "deleted": True,
        "runs": ["old"],
        "kept": {
            night.run: "a schedule's next night may be held against it",
            "release": "it was named to be kept",
            "open": "it has not ended",
        },
    }
    assert runs(store) == {night.run, "release", "open", "young"}
    assert store.objects.names("runs") == sorted(runs(store))


def test_what_somebody_held_a_run_against_by_hand_stays_as_long_as_that_run(
    evalfarm: Any, store: Store, keep: Any
) -> None:
    for run, age_days in (("long-ago", 300), ("accepted", 200), ("tonight", 1)):
        keep(run, age_days)
    outcomes = Outcomes(store.objects)
    judged = (("accepted", "long-ago"), ("tonight", "long-ago"), ("tonight", "accepted"))
    for at, (run, baseline) in enumerate(judged):
        outcomes.add_gate(GateRecord(run=run, at=float(at), verdict="held", baselines=(baseline,), arms=()))
    ended = evalfarm("prune", "--older-than", "90d", "--delete", "--json")
    assert json.loads(ended.out) == {
        "deleted": True,
        "runs": ["long-ago"],
        "kept": {"accepted": "the last verdict on a later run was held against it"},
    }
    assert runs(store) == {"accepted", "tonight"}


def test_a_removal_that_was_cut_off_can_be_repeated(store: Store, keep: Any) -> None:
    keep("old", 100)
    store.objects.delete("runs/old/plan.json")
    assert store.delete_run("old") == 2
    assert store.objects.names("runs") == []


def test_a_name_that_was_taken_for_a_run_which_never_began_goes_too(
    evalfarm: Any, store: Store, keep: Any, make_plan: Any
) -> None:
    keep("run", 100)
    for name in ("bare", "named"):
        store.put_plan(make_plan(name))
    prune = ("prune", "--older-than", "0d", "--keep", "run")
    assert json.loads(evalfarm("prune", "--older-than", "1d", "--keep", "run", "--json").out)["runs"] == []
    assert json.loads(evalfarm(*prune, "--label", "any", "--json").out)["runs"] == []
    assert json.loads(evalfarm(*prune, "--keep", "named", "--json").out)["runs"] == ["bare"]
    ended = evalfarm(*prune, "--keep", "named", "--delete")
    assert ended.out.splitlines() == [
        "deleted: bare",
        "kept: run: it was named to be kept",
        "1 run deleted, 1 object in all.",
    ]
    assert store.objects.names("runs") == ["named", "run"]


@pytest.mark.parametrize("age", ["90", "3m", "-1d", "soon"])
def test_an_age_that_is_none_is_refused(evalfarm: Any, age: str) -> None:
    ended = evalfarm("prune", f"--older-than={age}")
    assert ended.code == 2
    assert f"Error: '{age}' is no age" in ended.err
