"""status, cancel, rebuild and resume of runs that are open, by what they print."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cases.loader import file_digests, load_suite
from evalfarm.cli.services.tending import Tender
from evalfarm.cli.standing import Farm, open_farm
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Plan, Telemetry, Trace
from evalfarm.runstate import Ended, JudgingQueue, Ledger, beat, note_refusal, open_runs, refusal_of
from evalfarm.settings import load_settings
from scheduler.planner import Axes, Measured, manifest_of, plan_run

Run = Callable[..., Any]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Open:
    """A run of the shipped suite at `direct` and `loop` with nobody to tend it: 20 trials."""

    farm: Farm
    plan: Plan
    ledger: Ledger

    def claim(self, count: int) -> list[int]:
        indices = self.ledger.take(count, 60.0)
        for index in indices:
            assert self.ledger.claim(index, f"token-{index}", 60.0).status == "ok"
        return indices

    def end(self, index: int, verdict: Any, row: bytes = b"{}") -> None:
        final = verdict != "infra_failed"
        self.ledger.end(Ended(index, 1, verdict=verdict, row=row, final=final, backoff_s=60.0, max_attempts=3))

    def store(self, index: int) -> None:
        trace = Trace(
            run=self.plan.run,
            trial=self.plan.trial(index),
            attempt=1,
            outcome="gave_up",
            telemetry=Telemetry(complete=True),
            started_at=1.0,
            duration_s=1.0,
        )
        assert self.farm.store.put_trace(trace)


@pytest.fixture
def opened() -> Iterator[Open]:
    loaded = load_suite("bls")
    axes = Axes(("sim-careful",), ("direct", "loop"), ("plain",), repeats=2)
    cases = [case.id for case in loaded.suite.cases]
    plan = plan_run(loaded.suite, axes, run="night-1", cases=cases, files=file_digests(loaded))
    measured = Measured(versions={}, digests={}, simulated=True)
    manifest = manifest_of(plan, measured, created_at=1.0, label="night", filters={}, queue="nightly")
    with open_farm(load_settings()) as farm:
        farm.scheduler().open_run(plan, manifest, loaded.files)
        yield Open(farm, plan, Ledger(farm.redis, plan.run))


def test_the_status_of_a_run_is_told_arm_by_arm_within_a_hundred_columns(opened: Open, evalfarm: Run) -> None:
    beat(opened.farm.redis, "worker-1", 2, 60.0)
    for index, verdict in zip(opened.claim(4), ("passed", "failed", "infra_failed"), strict=False):
        opened.end(index, verdict, b'{"failure_kind": "model"}')
    ended = evalfarm("status", "night")
    first, head, *arms = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert first.startswith("night-1 (nightly): running, 2 of 20 closed, 1 in flight, 17 waiting, ")
    assert first.endswith(" to go, $0.00 spent")
    assert head.split() == [
        *("model", "harness", "variant", "closed", "passed", "failed", "in", "flight", "waiting", "spent"),
        *("infra", "failures"),
    ]
    assert sorted(line.split()[:2] for line in arms) == [["none", "direct"], ["sim-careful", "loop"]]
    assert sum("model 1" in line for line in arms) == 1
    assert max(map(len, ended.out.splitlines())) <= 100


def test_the_same_as_json(opened: Open, evalfarm: Run) -> None:
    for index in opened.claim(3)[:2]:
        opened.end(index, "passed")
    told = json.loads(evalfarm("status", "night-1", "--json").out)
    arms = told.pop("arms")
    assert told.pop("per_second") > 0
    assert told.pop("to_go_s") > 0
    assert told == {
        "run": "night-1",
        "state": "waiting",
        "queue": "nightly",
        "slots": 0,
        "planned": 20,
        "closed": 2,
        "in_flight": 1,
        "waiting": 17,
        "attempts": {"started": 3, "lost": 0, "returned": 0, "late": 0, "superseded": 0},
        "spent_usd": 0.0,
        "judges_usd": 0.0,
        "budget_usd": None,
        "answers_at_judges": 0,
        "refused": None,
    }
    assert [arm["planned"] for arm in arms] == [10, 10]
    assert [sum(arm[name] for arm in arms) for name in ("closed", "passed", "in_flight", "waiting")] == [2, 2, 1, 17]
    assert json.loads(evalfarm("status", "--json").out)[0]["run"] == "night-1"


def test_without_a_run_every_open_one_is_told_in_a_line(opened: Open, evalfarm: Run) -> None:
    line = "night-1 (nightly): waiting, 0 of 20 closed, 0 in flight, 20 waiting, 0.0/s, $0.00 spent\n"
    assert evalfarm("status").out == line
    opened.ledger.delete()
    assert evalfarm("status").out == "No run is open. `evalfarm runs` lists those that were.\n"
    assert evalfarm("status", "night-1").out == (
        "night-1: not finished, 20 trials\nRedis holds no state of it. Rebuild it and go on: evalfarm resume night-1\n"
    )


def test_what_judges_cost_and_have_before_them_is_told_beside_what_the_trials_cost(opened: Open, evalfarm: Run) -> None:
    queue = JudgingQueue(opened.farm.redis, "night-1")
    queue.open(3)
    (handed,) = queue.take(1, 60.0)
    queue.claim(handed, 60.0)
    queue.end(handed, cost_usd=0.25, again=False)
    told = json.loads(evalfarm("status", "night-1", "--json").out)
    assert (told["spent_usd"], told["judges_usd"], told["answers_at_judges"]) == (0.0, 0.25, 2)
    line = "0.0/s, 2 left for the judges, $0.00 and $0.25 by judges spent\n"
    assert evalfarm("status").out.endswith(line)


def test_that_a_worker_refused_its_trials_is_said_with_the_reason(opened: Open, evalfarm: Run) -> None:
    note_refusal(opened.farm.redis, "night-1", "far: run 'night-1' was begun by evalfarm 2")
    assert (
        "\nA worker refused its trials. far: run 'night-1' was begun by evalfarm 2\n"
        in evalfarm("status", "night-1").out
    )
    note_refusal(opened.farm.redis, "../no run", "of none")
    assert refusal_of(opened.farm.redis, "../no run") is None


def test_watching_nothing_in_particular_is_refused(evalfarm: Run) -> None:
    ended = evalfarm("status", "--watch")
    assert (ended.code, ended.err) == (
        2,
        "Error: there is nothing to watch\n\nhint: name a run: evalfarm status RUN --watch\n",
    )


def test_a_cancelled_run_with_nothing_at_work_is_sealed_at_once(opened: Open, evalfarm: Run) -> None:
    ended = evalfarm("cancel", "night-1")
    assert (ended.code, ended.out) == (
        0,
        "Cancelled run night-1: 0 of 20 trials are decided.\nIts report: evalfarm report night-1\n",
    )
    summary = opened.farm.store.get_summary("night-1")
    assert summary is not None
    assert (summary.finished, summary.not_run) == (False, 20)
    assert evalfarm("status", "night-1").out == (
        "night-1: sealed, 20 trials: 0 passed, 0 failed, 0 inconclusive, 0 infra failed, 20 not run\n"
        "Its report: evalfarm report night-1\n"
    )
    again = evalfarm("cancel", "night-1")
    assert (again.code, again.err) == (
        2,
        "Error: run 'night-1' is finished\n\nhint: its report: evalfarm report night-1\n",
    )


def test_what_is_at_work_when_a_run_is_cancelled_is_waited_for_by_whoever_tends_it(opened: Open, evalfarm: Run) -> None:
    opened.claim(2)
    ended = evalfarm("cancel", "night-1")
    assert ended.out == (
        "Cancelled run night-1: 0 of 20 trials are decided.\n"
        "2 at work are cut short; then whoever tends it seals it: evalfarm resume night-1\n"
    )
    assert not opened.ledger.renew(0, 1, "token-0", 60.0)


def test_a_run_is_rebuilt_from_the_store_and_says_how(opened: Open, evalfarm: Run) -> None:
    for index in opened.claim(2):
        opened.store(index)
    opened.farm.redis.flushall()
    told = (
        "Rebuilt run night-1: 2 of 20 trials are decided (0 from segments, 2 from traces that were in none).\n"
        "Go on with it: evalfarm resume night-1\n"
    )
    assert evalfarm("rebuild", "night-1").out == told
    again = evalfarm("rebuild", "night-1", "--json").out
    assert json.loads(again) == {"run": "night-1", "rebuilt": False, "planned": 20, "closed": 2}
    assert opened.ledger.progress().closed == 2


def test_a_run_that_was_begun_under_other_graders_is_not_gone_on_with(opened: Open, evalfarm: Run) -> None:
    path = next(opened.farm.settings.home.rglob("night-1/manifest.json"))
    manifest = json.loads(path.read_text())
    manifest["digests"]["grader"] = "sha256:of-another"
    path.write_text(json.dumps(manifest))
    ended = evalfarm("resume", "night-1")
    assert (ended.code, ended.err) == (
        2,
        "Error: run 'night-1' was begun by evalfarm 0.1.0, whose graders are others than those of this one, 0.1.0\n\n"
        "hint: go on with it with version 0.1.0, or `evalfarm cancel night-1` and start a new run\n",
    )
    assert evalfarm("cancel", "night-1").code == 0


@pytest.mark.parametrize("command", ["status", "cancel", "rebuild", "resume"])
def test_a_run_that_never_was_is_named(evalfarm: Run, command: str) -> None:
    ended = evalfarm(command, "night-9")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Error: there is no run 'night-9' in file://")
    assert ended.err.endswith("\n\nhint: there are no runs yet\n")


@pytest.mark.parametrize("command", ["status", "cancel", "rebuild", "resume"])
def test_a_run_of_another_version_is_refused_with_what_to_do(opened: Open, evalfarm: Run, command: str) -> None:
    (path,) = opened.farm.settings.home.glob("store/runs/night-1/manifest.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 2}))
    ended = evalfarm(command, "night-1")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"Error: runs/night-1/manifest.json in {opened.farm.store.url} is of schema version 2; "
        "evalfarm 0.1.0 reads 1\n\nhint: use the version of evalfarm that made it, or start a new run\n"
    )
    assert evalfarm("runs").code == 0


def test_resuming_a_sealed_run_adds_nothing_and_shows_its_report(opened: Open, evalfarm: Run) -> None:
    evalfarm("cancel", "night-1")
    before = sorted(path.name for path in opened.farm.settings.home.rglob("store/**/*") if path.is_file())
    ended = evalfarm("resume", "night-1")
    assert ended.code == 4
    assert "night-1" in ended.out
    after = sorted(path.name for path in opened.farm.settings.home.rglob("store/**/*") if path.is_file())
    assert after == before
    assert digest(opened.plan) == opened.farm.store.get_manifest("night-1").digests["plan"]


@dataclass
class Tended:
    """A tender of every run, its clock in the test's hands, and what it said."""

    tender: Tender
    said: list[str]
    now: list[float]

    def look_in_a_minute(self) -> str:
        self.now[0] += 60.0
        return self.tender.look()


@pytest.fixture
def tended(opened: Open) -> Tended:
    said, now = list[str](), [0.0]
    return Tended(Tender(opened.farm, opened.farm.scheduler(said.append), said.append, lambda: now[0]), said, now)


def test_a_run_that_was_tended_and_that_redis_has_lost_is_built_anew(opened: Open, tended: Tended) -> None:
    for index in opened.claim(2):
        opened.store(index)
    assert tended.tender.look() == ""
    opened.farm.redis.flushall()
    assert tended.tender.look() == ""
    assert open_runs(opened.farm.redis) == ["night-1"]
    assert opened.ledger.progress().closed == 2
    assert tended.said == [
        f"Redis holds no state of run night-1: rebuilding it from {opened.farm.store.url}",
        "Rebuilt: 2 trials are decided",
    ]


def test_a_run_that_was_deleted_does_not_rise_again(opened: Open, tended: Tended) -> None:
    tended.tender.look()
    opened.farm.store.delete_run("night-1")
    opened.farm.redis.flushall()
    assert [tended.tender.look(), tended.look_in_a_minute(), tended.look_in_a_minute()] == ["", "", ""]
    assert (open_runs(opened.farm.redis), tended.said) == ([], [])


def test_a_run_that_was_cancelled_and_lost_is_told_of_and_not_begun_again(opened: Open, tended: Tended) -> None:
    opened.claim(1)  # so that it is not sealed at once
    opened.ledger.cancel()
    tended.tender.look()
    opened.farm.redis.flushall()
    assert [tended.tender.look(), tended.tender.look()] == ["", ""]
    assert open_runs(opened.farm.redis) == []
    assert tended.said == [
        "Redis has lost run night-1, which was cancelled; `evalfarm resume night-1` would go on with it"
    ]


def test_a_run_that_nobody_here_ever_tended_is_told_of_once_and_left_alone(opened: Open, tended: Tended) -> None:
    opened.farm.redis.flushall()
    assert [tended.tender.look(), *(tended.look_in_a_minute() for _ in range(3))] == [""] * 4
    assert open_runs(opened.farm.redis) == []
    assert tended.said == [
        f"1 run in {opened.farm.store.url} not finished, and not known to Redis: night-1. "
        "`evalfarm resume RUN` goes on with one; what is decided stays decided."
    ]


def test_a_run_that_is_sealed_elsewhere_is_nobody_s_loss(opened: Open, tended: Tended, evalfarm: Run) -> None:
    tended.tender.look()
    assert evalfarm("cancel", "night-1").code == 0
    assert [tended.tender.look(), *(tended.look_in_a_minute() for _ in range(3))] == [""] * 4
    assert (open_runs(opened.farm.redis), tended.said) == ([], [])
