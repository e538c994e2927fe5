"""A small plan of two cases × two repeats, and results for its trials."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.suite import Case, DirectCall, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import Label, Result, Verdict

DIRECT = Arm(model="none", harness="direct", variant="plain")
LOOP = Arm(model="m", harness="loop", variant="plain")
CODEX = Arm(model="m", harness="codex", variant="plain")


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    def build(
        *arms: Arm,
        cases: int = 2,
        repeats: int = 2,
        seed: int = 0,
        kinds: int | None = None,
        families: Sequence[str | None] = (),
    ) -> Plan:
        asked = tuple(
            Case(
                id=f"case-{n}",
                turns=("?",),
                direct=DirectCall(tool="look"),
                tags={"kind": f"k{n % (kinds or cases)}"},
                family=families[n] if families else None,
            )
            for n in range(cases)
        )
        suite = Suite(
            suite="small",
            version="1",
            plugin=Plugin(name="p"),
            server=Server(python="server.py"),
            variants={"plain": Variant(), "guided": Variant()},
            cases=asked,
        )
        chosen = arms or (DIRECT, LOOP, CODEX)
        return Plan(
            run="r1", suite=suite, arms=chosen, cases=tuple(case.id for case in asked), repeats=repeats, seed=seed
        )

    return build


@pytest.fixture
def make_manifest() -> Callable[[Plan], Manifest]:
    return lambda plan: Manifest(
        run=plan.run,
        created_at=0.0,
        evalfarm="0.1.0",
        suite=plan.suite.suite,
        suite_version=plan.suite.version,
        simulated=False,
        synthetic=False,
        isolation=plan.isolation,
        arms=plan.arms,
        cases=len(plan.cases),
        repeats=plan.repeats,
        seed=plan.seed,
        planned=plan.size,
        digests={},
        versions={},
    )


@pytest.fixture
def make_result() -> Callable[..., Result]:
    def build(plan: Plan, index: int, verdict: Verdict, *reasons: str, **figures: Any) -> Result:
        label = Label(grader="g", version="1", value="PASS" if verdict == "passed" else "FAIL", reasons=reasons)
        ended = "infra_failed" if verdict == "infra_failed" else "finished"
        known = {"attempt": 1, **figures}
        return Result(trial=plan.trial(index), outcome=ended, verdict=verdict, labels=(label,), **known)

    return build


@pytest.fixture
def index_of() -> Callable[[Plan, str, Arm, int], int]:
    """The index of the trial of a case, an arm and a repeat."""

    def find(plan: Plan, case: str, arm: Arm, repeat: int) -> int:
        wanted = (case, arm, repeat)
        trials = (plan.trial(index) for index in range(plan.size))
        return next(trial.index for trial in trials if (trial.case, trial.arm, trial.repeat) == wanted)

    return find


@pytest.fixture
def direct() -> Arm:
    return DIRECT


@pytest.fixture
def loop() -> Arm:
    return LOOP


@pytest.fixture
def codex() -> Arm:
    return CODEX
