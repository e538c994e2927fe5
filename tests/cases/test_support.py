"""The support suite by real attempts: what each simulated agent does, and on which side of it the fault is found."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cases.answer_functions import load_functions
from cases.loader import LoadedSuite, file_digests, load_suite
from evalfarm.contracts.run import Trace
from evalfarm.contracts.verdict import Label
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.grade import grade_trace
from scheduler.planner import Axes, Measured, manifest_of, plan_run
from worker.attempt import observe
from worker.station import Station

FAULTS: dict[str, tuple[str, set[str]]] = {
    "sim-ignores-final-sale": (
        "answer",
        {
            "approve-excluded-return",
            "claims-no-final-sale",
            "final-sale-12-days",
            "final-sale-on-day-0",
            "german-final-sale",
            "opened-and-final-sale",
        },
    ),
    "sim-repeats-lookup": ("tool_route", {"turns-to-another-order"}),
    "sim-guesses-id": ("tool_route", {"id-comes-later", "no-order-id", "no-order-id-demand"}),
    "sim-claims-refund": ("answer", {"approve-excluded-return", "hidden-approval", "process-refund-now"}),
    "sim-invents-facts": ("answer", {"order-does-not-exist", "order-unavailable", "policy-does-not-exist"}),
}


@pytest.fixture(scope="module")
def loaded() -> LoadedSuite:
    return load_suite("support")


@pytest.fixture(scope="module")
def labelled(
    loaded: LoadedSuite, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., dict[str, dict[str, Label]]]:
    """case -> grader -> label of real attempts of a model at a level."""

    def run(model: str, harness: str, cases: Sequence[str] = ()) -> dict[str, dict[str, Label]]:
        home = tmp_path_factory.mktemp("home")
        traces = asyncio.run(observed(loaded, model, harness, cases, home))
        functions = load_functions(loaded.suite, loaded.folder)
        return {
            trace.trial.case: {label.grader: label for label in grade_trace(loaded.suite, trace, functions)}
            for trace in traces
        }

    return run


async def observed(loaded: LoadedSuite, model: str, harness: str, cases: Sequence[str], home: Path) -> list[Trace]:
    chosen = cases or [case.id for case in loaded.suite.cases]
    axes = Axes(models=() if harness == "direct" else (model,), harnesses=(harness,))
    plan = plan_run(loaded.suite, axes, run="r1", cases=chosen, files=file_digests(loaded))
    store = Store("memory:///")
    for data in loaded.files.values():
        store.put_blob(data)
    store.put_plan(plan)
    measured = Measured(versions={}, digests={}, simulated=True)
    store.put_manifest(manifest_of(plan, measured, created_at=0, label=None, filters={}))
    station = await Station(load_settings({"EVALFARM_HOME": str(home)}), store, {}).open()
    try:
        prepared = await station.prepare(plan.run)
        return [await observe(station, prepared, plan.trial(index), 1) for index in range(plan.size)]
    finally:
        await station.close()


def not_passed(found: dict[str, dict[str, Label]]) -> dict[str, Any]:
    return {
        case: {grader: (label.value, label.reasons) for grader, label in labels.items() if label.value != "PASS"}
        for case, labels in found.items()
        if any(label.value != "PASS" for label in labels.values())
    }


def test_the_suite_covers_its_categories_with_enough_cases(loaded: LoadedSuite) -> None:
    used = {case.category for case in loaded.suite.cases}
    assert len(loaded.suite.cases) >= 24
    # Reports say that nothing covers the last one.
    assert {*loaded.suite.categories} - used == {"other-products"}


def test_a_careful_agent_passes_every_case_on_route_and_answer(labelled: Any) -> None:
    found = labelled("sim-careful", "loop")
    assert not_passed(found) == {}
    assert {tuple(labels) for labels in found.values()} == {("tool_route", "answer")}


def test_the_tools_alone_are_judged_by_the_route(labelled: Any) -> None:
    found = labelled("none", "direct")
    assert not_passed(found) == {}
    assert {tuple(labels) for labels in found.values()} == {("tool_route",)}


@pytest.mark.parametrize("model", FAULTS)
def test_a_fault_is_found_where_it_is_and_nowhere_else(labelled: Any, model: str) -> None:
    grader, cases = FAULTS[model]
    found = not_passed(labelled(model, "loop"))
    assert {case: {name: value for name, (value, _) in labels.items()} for case, labels in found.items()} == {
        case: {grader: "FAIL"} for case in cases
    }


@pytest.mark.slow
# The SDK leaves its pipes to the app server for the garbage collector to close.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.parametrize("model", ["sim-careful", *FAULTS])
def test_the_product_itself_is_judged_alike(labelled: Any, model: str) -> None:
    grader, failing = FAULTS.get(model, ("", {"final-sale-12-days", "german-eligible", "no-order-id"}))
    found = not_passed(labelled(model, "codex", sorted(failing)))
    assert {case: {name: value for name, (value, _) in labels.items()} for case, labels in found.items()} == {
        case: {grader: "FAIL"} for case in failing if grader
    }
