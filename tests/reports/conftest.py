"""One run with known verdicts: 5 cases × 3 repeats × 6 arms, one trial of every kind of end."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.route import Expectation
from evalfarm.contracts.run import Arm, Manifest, Plan, Trial
from evalfarm.contracts.suite import Case, DirectCall, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import Label, LabelValue, Result, RunSummary, Verdict

CASES = {
    "unemployment-rate": "headline",
    "labor-force-participation": "headline",
    "nonfarm-payroll": "headline",
    "consumer-price-index": "coverage_gap",
    "employment-ambiguous": "ambiguous_concept",
}
WHY = {
    "consumer-price-index": "fetch_bls_data asked for CUUR0000SA0, which is not among the expected series",
    "employment-ambiguous": "fetch_bls_data was called, and this case expects no call of it",
}
RUN = "bls-20260131-080509"


def arm(model: str, harness: str, variant: str) -> Arm:
    return Arm.model_validate({"model": model, "harness": harness, "variant": variant})


ARMS = (
    arm("none", "direct", "plain"),
    arm("none", "direct", "guided"),
    arm("sim-careful", "loop", "plain"),
    arm("sim-careful", "codex", "plain"),
    arm("sim-careful", "codex", "guided"),
    arm("sim-flaky", "codex", "plain"),
)


@pytest.fixture
def plan() -> Plan:
    cases = tuple(
        Case(
            id=name,
            turns=(f"What about {name}?",),
            expect=Expectation(tools=("resolve",), never=("fetch_bls_data",) if name in WHY else ()),
            direct=DirectCall(tool="resolve"),
            tags={"mechanism": mechanism},
        )
        for name, mechanism in CASES.items()
    )
    suite = Suite(
        suite="bls",
        version="1.2.0",
        synthetic=True,
        plugin=Plugin(name="BLS"),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "guided": Variant(description="The server says what to do on gaps")},
        cases=cases,
    )
    return Plan(run=RUN, suite=suite, arms=ARMS, cases=tuple(CASES), repeats=3, seed=7)


@pytest.fixture
def manifest(plan: Plan) -> Manifest:
    return Manifest(
        run=RUN,
        label="nightly",
        created_at=1769846709.0,
        evalfarm="0.1.0",
        suite="bls",
        suite_version="1.2.0",
        simulated=True,
        synthetic=True,
        isolation="cell",
        arms=plan.arms,
        cases=5,
        repeats=3,
        seed=7,
        planned=plan.size,
        filters={"expected_type": "exact"},
        digests={"cases": "sha256:" + "ab" * 32, "plugin": "sha256:" + "cd" * 32},
        versions={"codex": "0.163.0", "python": "3.11.9"},
    )


def verdict_of(trial: Trial) -> Verdict | None:
    """What this run decides about a trial; None: it never ran."""
    flaky: dict[tuple[str, int], Verdict | None] = {
        ("unemployment-rate", 1): "failed",
        ("nonfarm-payroll", 2): "inconclusive",
        ("consumer-price-index", 2): "infra_failed",
        ("employment-ambiguous", 2): None,
    }
    if trial.arm.model == "sim-flaky":
        return flaky.get((trial.case, trial.repeat), "passed")
    plain_codex = trial.arm.harness == "codex" and trial.arm.variant == "plain"
    return "failed" if plain_codex and trial.case in WHY else "passed"


def label(value: LabelValue, *reasons: str) -> Label:
    return Label(grader="tool-route", version="1", value=value, reasons=reasons)


def result_of(trial: Trial, verdict: Verdict) -> Result:
    """A closed trial whose figures follow from its arm and repeat."""
    direct = trial.arm.harness == "direct"
    labels: dict[Verdict, tuple[Label, ...]] = {
        "passed": (label("PASS"),),
        "failed": (label("FAIL", WHY.get(trial.case, "resolve was never called, and this case expects it")),),
        "inconclusive": (label("INCONCLUSIVE", "the harness reports 2 tool calls, the tool gateway saw 1"),),
    }
    return Result(
        trial=trial,
        attempt=3 if verdict == "infra_failed" else 1,
        outcome="infra_failed" if verdict == "infra_failed" else "finished",
        verdict=verdict,
        labels=labels.get(verdict, ()),
        failure="the model's provider answered 503 three times" if verdict == "infra_failed" else None,
        tool_calls=1 if direct else 2 + trial.repeat % 2,
        reasoning_tokens=None if direct else 1500 + trial.repeat,
        latency_s=0.004 if direct else round(0.8 + 0.31 * trial.repeat, 2),
        cost_usd=None if trial.arm.model == "sim-flaky" else 0.0,
    )


@pytest.fixture
def results(plan: Plan) -> list[Result]:
    trials = (plan.trial(index) for index in range(plan.size))
    return [result_of(trial, verdict) for trial in trials if (verdict := verdict_of(trial))]


@pytest.fixture
def summary(manifest: Manifest, plan: Plan, results: list[Result]) -> RunSummary:
    """The whole run, with one trial that never ran."""
    return summarize(manifest, plan, results, attempts=91, finished=False)


@pytest.fixture
def summarized(manifest: Manifest, plan: Plan) -> Callable[[Iterable[Result]], RunSummary]:
    """The summary of this run had it had other results, and ended."""
    return lambda some: summarize(manifest, plan, some, attempts=90, finished=True)


@pytest.fixture
def snapshots() -> Path:
    return Path(__file__).parent / "snapshots"
