"""A real Valkey, a real queue, a store in memory, and a plan small enough to be seen whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import redis

from evalfarm.broker import App, make_app
from evalfarm.contracts.run import Arm, Manifest, Outcome, Plan, Telemetry, Trace, Trial
from evalfarm.contracts.suite import Case, DirectCall, Expectation, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import Label, Result, Verdict
from evalfarm.runstate import BACKOFF_S, MAX_ATTEMPTS, Ended, Ledger
from evalfarm.store import Store
from scheduler.planner import Measured, manifest_of
from scheduler.runs import Scheduler

DISPATCH_S = 60.0
LEASE_S = 60.0


@pytest.fixture
def app(redis_url: str, client: redis.Redis) -> App:
    return make_app(redis_url)


@pytest.fixture
def suite() -> Suite:
    return Suite(
        suite="shop",
        version="1",
        plugin=Plugin(name="Shop"),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "guided": Variant(env={"HINTS": "1"})},
        cases=(
            Case(id="refund", turns=("Refund it.",), direct=DirectCall(tool="refund")),
            Case(
                id="order", turns=("Order it.",), direct=DirectCall(tool="order"), expect=Expectation(tools=("order",))
            ),
            Case(id="stock", turns=("Is it there?",), direct=DirectCall(tool="stock")),
        ),
    )


@pytest.fixture
def plan(suite: Suite) -> Plan:
    """3 cases × 2 repeats at `loop` and `codex`: 12 trials."""
    arms = (
        Arm(model="sim-careful", harness="loop", variant="plain"),
        Arm(model="sim-careful", harness="codex", variant="plain"),
    )
    return Plan(run="shop-1", suite=suite, arms=arms, cases=("refund", "order", "stock"), repeats=2, seed=5)


@pytest.fixture
def manifest(plan: Plan) -> Manifest:
    measured = Measured(versions={"python": "3"}, digests={"grader": "g"}, simulated=True)
    return manifest_of(plan, measured, created_at=1.0, label=None, filters={})


def result(trial: Trial, verdict: Verdict, attempt: int = 1) -> Result:
    """What a worker would commit for a trial."""
    infra = verdict == "infra_failed"
    value = {"passed": "PASS", "failed": "FAIL", "inconclusive": "INCONCLUSIVE"}.get(verdict)
    labels = () if value is None else (Label.model_validate({"grader": "tool_route", "version": "1", "value": value}),)
    return Result(
        trial=trial,
        attempt=attempt,
        outcome="infra_failed" if infra else "finished",
        verdict=verdict,
        labels=labels,
        failure="the provider was down" if infra else None,
    )


def judged(plan: Plan, trace: Trace) -> Result:
    """A stored trace's result: that it passed, unless infrastructure ended it."""
    verdict: Verdict = "infra_failed" if trace.outcome == "infra_failed" else "passed"
    return result(trace.trial, verdict, trace.attempt).model_copy(update={"cost_usd": trace.cost_usd})


@dataclass
class Worker:
    """Takes trials through the ledger as a worker does, with a verdict of the test's choosing."""

    ledger: Ledger
    plan: Plan
    traces: Store
    done: list[Result] = field(default_factory=list)

    def claim(self, index: int, *, lease_s: float = LEASE_S) -> int:
        """Claims a trial that was handed out; the attempt's number."""
        claim = self.ledger.claim(index, f"token-{index}", lease_s)
        assert claim.status == "ok"
        return claim.attempt

    def store(self, index: int, attempt: int, *, outcome: Outcome = "finished", cost_usd: float = 0.5) -> None:
        """Stores an attempt's trace, and does not commit it."""
        trace = Trace(
            run=self.plan.run,
            trial=self.plan.trial(index),
            attempt=attempt,
            outcome=outcome,
            telemetry=Telemetry(complete=True),
            started_at=float(index),
            duration_s=1.0,
            cost_usd=cost_usd,
        )
        assert self.traces.put_trace(trace)

    def decided(self, index: int, verdict: Verdict, attempt: int = 1) -> Result:
        """The result of a trial, committed nowhere."""
        return result(self.plan.trial(index), verdict, attempt)

    def decide(self, indices: Sequence[int], verdict: Verdict) -> None:
        """Claims trials that were handed out, and commits them all with one verdict."""
        for index in indices:
            ended = self.decided(index, verdict, self.claim(index))
            self.ledger.end(
                Ended(
                    index,
                    ended.attempt,
                    verdict=verdict,
                    row=ended.model_dump_json().encode(),
                    final=True,
                    backoff_s=BACKOFF_S,
                    max_attempts=MAX_ATTEMPTS,
                )
            )
            self.done.append(ended)


@dataclass(frozen=True)
class Opened:
    """A run that was opened: everything that tends it."""

    scheduler: Scheduler
    plan: Plan
    ledger: Ledger
    store: Store
    worker: Worker

    def hand_out(self, count: int) -> list[int]:
        """The next trials, as the feeder takes them."""
        return self.ledger.take(count, DISPATCH_S)


@pytest.fixture
def opened(client: redis.Redis, app: App, plan: Plan, manifest: Manifest) -> Opened:
    store = Store("memory://")
    scheduler = Scheduler(store, client, app, judged, lease_s=LEASE_S)
    scheduler.open_run(plan, manifest, {"server.py": b"# the server"})
    ledger = Ledger(client, plan.run)
    return Opened(scheduler, plan, ledger, store, Worker(ledger, plan, store))
