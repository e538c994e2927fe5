"""A farm made up from facts: nights that ran, verdicts on them, a ledger that knows of one more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.gate import ArmVerdict, GateRecord
from evalfarm.contracts.run import Manifest, Plan, Trial
from evalfarm.contracts.suite import Case, Plugin, Server, Suite, Variant
from evalfarm.contracts.tally import ArmTally, AttemptCounts, RunTally, TokenCounts
from evalfarm.contracts.verdict import Result, RunSummary, Verdict
from evalfarm.exporter.page import page, samples
from evalfarm.exporter.reading import Reader
from evalfarm.exporter.seen import NightOf, Seen, Took
from evalfarm.outcomes import Outcomes
from evalfarm.runstate import Limits
from evalfarm.store import Store
from tests.made_runs import LOOP, made_manifest
from tests.prometheus_tools import program

ATTEMPTS = AttemptCounts(started=14, lost=2, returned=1, late=1, superseded=2, redispatched=3)
SUITE = Suite(
    suite="small",
    version="1",
    plugin=Plugin(name="p"),
    server=Server(python="server.py"),
    variants={"plain": Variant()},
    cases=(Case(id="a", turns=("A?",)), Case(id="b", turns=("B?",))),
)
TOKENS = TokenCounts(input=1000, cached=200, output=300, reasoning=40)
#: The labels of the arm that everything here is about, in a metric's notation.
ARM_TEXT = 'suite="small",queue="nightly",model="m",harness="loop",variant="plain"'


def a_tally(run: str, **changes: Any) -> RunTally:
    """A tally of one arm: nine trials closed in fourteen attempts."""
    told: dict[str, Any] = {
        **LOOP._asdict(),
        "closed": {"passed": 6, "failed": 2, "infra_failed": 1},
        "failures": {"model": 3, "lost": 2},
        "known_usd": 1.25,
        "tokens": TOKENS,
    }
    return RunTally(run=run, attempts=ATTEMPTS, arms=(ArmTally(**told | changes),))


def a_gate(run: str, at: float, **changes: Any) -> GateRecord:
    """A verdict on one arm."""
    told: dict[str, Any] = {**LOOP._asdict(), "verdict": "held", "reasons": ("no change",)}
    arm = ArmVerdict.model_validate(told | changes)
    return GateRecord(run=run, at=at, verdict=arm.verdict, baselines=("night-1",), arms=(arm,))


def result_of(trial: Trial, passed: int) -> Result:
    """Case `b` passes always, case `a` in its first repeats; the n-th repeat takes n seconds and n cents."""
    verdict: Verdict = "passed" if trial.case == "b" or trial.repeat < passed else "failed"
    took = trial.repeat + 1
    return Result(
        trial=trial, attempt=1, outcome="finished", verdict=verdict, latency_s=float(took), cost_usd=took / 100
    )


@dataclass
class Clock:
    """What the exporter takes for the time."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Farm:
    """A store, a ledger, and an exporter that looks at both."""

    store: Store
    client: redis.Redis
    clock: Clock = field(default_factory=Clock)
    limits: Limits = field(default_factory=Limits)

    @property
    def outcomes(self) -> Outcomes:
        return Outcomes(self.store.objects)

    def reader(self) -> Reader:
        return Reader(self.store, self.client, self.limits, self.clock)

    def begin(self, run: str, **changes: Any) -> Manifest:
        """A run that has a manifest, and no more."""
        manifest = made_manifest(run, [LOOP], **{"queue": "nightly", "created_at": 900.0} | changes)
        self.store.put_manifest(manifest)
        return manifest

    def seal(self, run: str, passed: int = 2, **changes: Any) -> RunSummary:
        """A run that is over, its summary and its tally stored: three repeats of two cases, of one `passed` passed."""
        manifest = self.begin(run, **changes)
        plan = Plan(run=run, suite=SUITE, arms=manifest.arms, cases=("a", "b"), repeats=3)
        results = [result_of(plan.trial(index), passed) for index in range(plan.size)]
        summary = summarize(manifest, plan, results, attempts=7, finished=True)
        self.outcomes.put_tally(a_tally(run))
        self.store.put_summary(summary)
        return summary


@pytest.fixture
def farm(client: redis.Redis) -> Farm:
    return Farm(Store("memory://"), client)


@pytest.fixture
def tally() -> Callable[..., RunTally]:
    return a_tally


@pytest.fixture
def gate() -> Callable[..., GateRecord]:
    return a_gate


@pytest.fixture
def arm_text() -> str:
    return ARM_TEXT


@pytest.fixture
def told() -> Callable[..., dict[str, float]]:
    """A page's samples, `name{labels}` -> value; of the metrics that begin with one of these words, or of all."""

    def read(seen: Seen, *words: str) -> dict[str, float]:
        lines = (line.rpartition(" ") for line in page(seen).splitlines() if not line.startswith("#"))
        found = {name.removeprefix("evalfarm_"): float(value) for name, _, value in lines}
        return {name: value for name, value in found.items() if not words or name.startswith(words)}

    return read


@pytest.fixture
def seen_of() -> Callable[..., Seen]:
    """A look that found these facts, and nothing else."""

    def make(**facts: Any) -> Seen:
        empty: dict[str, Any] = {
            "nights": (),
            "owed": (),
            "judges": (),
            "took": (),
            "farm": None,
            "manifests": {},
            "untended": 0,
        }
        return Seen(**empty | {"limits": Limits(), "read_at": {}, "failed": {}} | facts)

    return make


@pytest.fixture
def took() -> Callable[..., Took]:
    return lambda run, suite="small", **changes: Took(NightOf(suite, "nightly"), a_tally(run, **changes))


@pytest.fixture
def sampled() -> Callable[..., Any]:
    return samples


@pytest.fixture
def promtool() -> str:
    return program("promtool")
