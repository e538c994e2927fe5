import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.aggregate import summarize
from evalfarm.analysis.stats import flip_rate, pass_rate
from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.verdict import (
    VERDICTS,
    CaseSummary,
    CellSummary,
    FirstBreak,
    Latency,
    Result,
    RunSummary,
    Verdict,
)

MakePlan = Callable[..., Plan]
MakeManifest = Callable[[Plan], Manifest]
MakeResult = Callable[..., Result]
IndexOf = Callable[[Plan, str, Arm, int], int]


@pytest.fixture
def summary_of(make_manifest: MakeManifest) -> Callable[..., RunSummary]:
    return lambda plan, results: summarize(make_manifest(plan), plan, results, attempts=len(results), finished=True)


def test_a_run_without_results_is_planned_and_not_run(
    make_plan: MakePlan, make_manifest: MakeManifest, loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=2)
    manifest = make_manifest(plan)
    nothing: dict[Verdict, int] = {"passed": 0, "failed": 0, "inconclusive": 0, "infra_failed": 0, "not_run": 2}
    assert summarize(manifest, plan, [], attempts=0, finished=False) == RunSummary(
        run="r1",
        suite="small",
        label=None,
        simulated=False,
        synthetic=False,
        isolation="cell",
        finished=False,
        planned=2,
        attempts=0,
        **nothing,
        cells=(
            CellSummary(
                model="m",
                harness="loop",
                variant="plain",
                planned=2,
                **nothing,
                pass_rate=pass_rate([], []),
                flip_rate=flip_rate([], []),
                tool_calls_per_question=None,
                reasoning_tokens_per_question=None,
                latency_s=Latency(p50=None, p95=None),
                cost_usd=None,
            ),
        ),
        cases=(
            CaseSummary(
                case="case-0",
                model="m",
                harness="loop",
                variant="plain",
                tags={"kind": "k0"},
                labels=nothing,
                trials=(0, 1),
                verdicts=("not_run", "not_run"),
            ),
        ),
        breaks=(FirstBreak(case="case-0", model="m", variant="plain", level=None, passed={"loop": "0/0"}),),
        manifest=manifest,
    )


def test_a_cell_is_summarized_whole(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm, index_of: IndexOf
) -> None:
    plan = make_plan(loop, cases=2, repeats=3)
    seen: list[tuple[str, int, Verdict, dict[str, Any]]] = [
        ("case-0", 0, "passed", {"tool_calls": 1, "reasoning_tokens": 10, "latency_s": 1.0, "cost_usd": 0.5}),
        ("case-0", 1, "failed", {"tool_calls": 4, "latency_s": 3.0, "cost_usd": 0.25}),
        ("case-0", 2, "inconclusive", {"tool_calls": 90, "latency_s": 90.0, "cost_usd": 0.25}),
        ("case-1", 0, "passed", {"latency_s": 2.0, "cost_usd": 0.0}),
        ("case-1", 1, "infra_failed", {"tool_calls": 90, "latency_s": 90.0, "cost_usd": 1.0}),
    ]
    results = [make_result(plan, index_of(plan, case, loop, repeat), end, **kw) for case, repeat, end, kw in seen]
    assert summary_of(plan, results).cells == (
        CellSummary(
            model="m",
            harness="loop",
            variant="plain",
            planned=6,
            passed=2,
            failed=1,
            inconclusive=1,
            infra_failed=1,
            not_run=1,
            pass_rate=pass_rate([1, 1], [2, 1]),
            flip_rate=flip_rate([1, 1], [2, 1]),
            tool_calls_per_question=2.5,
            reasoning_tokens_per_question=10.0,
            latency_s=Latency(p50=2.0, p95=3.0),
            cost_usd=2.0,
        ),
    )


def test_one_unknown_cost_makes_the_cells_cost_unknown(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=2)
    known, unknown = make_result(plan, 0, "passed", cost_usd=0.5), make_result(plan, 1, "infra_failed")
    assert [cell.cost_usd for cell in summary_of(plan, [known]).cells] == [0.5]
    assert [cell.cost_usd for cell in summary_of(plan, [known, unknown]).cells] == [None]


def test_a_second_result_of_one_trial_is_refused(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary]
) -> None:
    plan = make_plan()
    twice = [make_result(plan, 3, "passed"), make_result(plan, 3, "failed")]
    with pytest.raises(ValueError, match=re.escape("trial 3 of run r1 has two results; a trial counts once")):
        summary_of(plan, twice)


def test_a_result_of_another_plan_is_refused(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary]
) -> None:
    plan, other = make_plan(), make_plan(cases=3, repeats=2, seed=1)
    for index in (3, other.size - 1):
        with pytest.raises(
            ValueError, match=f"the result of trial {index} belongs to another plan than that of run r1"
        ):
            summary_of(plan, [make_result(other, index, "passed")])


def test_reasons_come_once_and_the_most_frequent_first(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=4)
    results = [
        make_result(plan, 0, "failed", "rare"),
        make_result(plan, 1, "failed", "common", "common"),
        make_result(plan, 2, "failed", "common"),
        make_result(plan, 3, "passed"),
    ]
    (case,) = summary_of(plan, results).cases
    assert (case.reasons, case.trials) == (("common", "rare"), (0, 1, 2, 3))
    assert case.verdicts == ("failed", "failed", "failed", "passed")


@pytest.mark.parametrize(
    ("ends", "level", "passed", "reason"),
    [
        (("passed", "passed", "passed"), None, {"direct": "1/1", "loop": "1/1", "codex": "1/1"}, None),
        (("failed", "passed", "failed"), "direct", {"direct": "0/1", "loop": "1/1", "codex": "0/1"}, "at direct"),
        (("passed", "failed", "failed"), "loop", {"direct": "1/1", "loop": "0/1", "codex": "0/1"}, "at loop"),
        (("passed", "infra_failed", "failed"), "codex", {"direct": "1/1", "loop": "0/0", "codex": "0/1"}, "at codex"),
        (("passed", "passed", "inconclusive"), None, {"direct": "1/1", "loop": "1/1", "codex": "0/0"}, None),
    ],
)
def test_the_first_level_with_a_failed_trial_is_the_one_that_broke(  # noqa: PLR0917 - four fixtures, four figures
    make_plan: MakePlan,
    make_result: MakeResult,
    summary_of: Callable[..., RunSummary],
    index_of: IndexOf,
    ends: tuple[Verdict, Verdict, Verdict],
    level: str | None,
    passed: dict[str, str],
    reason: str | None,
) -> None:
    plan = make_plan(cases=1, repeats=1)
    results = [
        make_result(plan, index_of(plan, "case-0", arm, 0), end, *([f"at {arm.harness}"] if end != "passed" else []))
        for arm, end in zip(plan.arms, ends, strict=True)
    ]
    assert summary_of(plan, results).breaks == (
        FirstBreak(case="case-0", model="m", variant="plain", level=level, passed=passed, reason=reason),
    )


def test_direct_is_read_for_every_model_of_its_variant(
    make_plan: MakePlan, summary_of: Callable[..., RunSummary], direct: Arm, loop: Arm, codex: Arm
) -> None:
    other = codex.model_copy(update={"model": "other"})
    guided = codex.model_copy(update={"variant": "guided"})
    plan = make_plan(direct, loop, codex, other, guided, cases=1)
    read = [(reading.model, reading.variant, list(reading.passed)) for reading in summary_of(plan, []).breaks]
    assert read == [
        ("m", "plain", ["direct", "loop", "codex"]),
        ("other", "plain", ["direct", "codex"]),
        ("m", "guided", ["codex"]),
    ]


def test_direct_alone_is_read_under_no_model(
    make_plan: MakePlan, summary_of: Callable[..., RunSummary], direct: Arm
) -> None:
    plan = make_plan(direct, cases=1)
    assert summary_of(plan, []).breaks == (
        FirstBreak(case="case-0", model="none", variant="plain", level=None, passed={"direct": "0/0"}),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), cases=st.integers(1, 4), repeats=st.integers(1, 4), seed=st.integers(0, 5))
def test_every_planned_trial_is_counted_once(
    make_plan: MakePlan,
    make_result: MakeResult,
    summary_of: Callable[..., RunSummary],
    data: st.DataObject,
    cases: int,
    repeats: int,
    seed: int,
) -> None:
    plan = make_plan(cases=cases, repeats=repeats, seed=seed)
    ends = st.sampled_from([*VERDICTS, None])
    drawn: list[Verdict | None] = data.draw(st.lists(ends, min_size=plan.size, max_size=plan.size))
    order = data.draw(st.permutations(range(plan.size)))
    summary = summary_of(plan, [make_result(plan, index, end) for index in order if (end := drawn[index]) is not None])
    expected = Counter(end or "not_run" for end in drawn)
    for cell in summary.cells:
        assert cell.planned == sum(getattr(cell, verdict) for verdict in VERDICTS)
    assert summary.planned == sum(cell.planned for cell in summary.cells)
    for verdict in VERDICTS:
        assert getattr(summary, verdict) == expected[verdict]
        assert sum(getattr(cell, verdict) for cell in summary.cells) == expected[verdict]
        assert sum(case.labels[verdict] for case in summary.cases) == expected[verdict]
    told = {index: end for case in summary.cases for index, end in zip(case.trials, case.verdicts, strict=True)}
    assert told == {index: end or "not_run" for index, end in enumerate(drawn)}
    for case in summary.cases:
        for repeat, index in enumerate(case.trials):
            trial = plan.trial(index)
            place = (trial.case, trial.arm.model, trial.arm.harness, trial.arm.variant, trial.repeat)
            assert place == (case.case, case.model, case.harness, case.variant, repeat)
