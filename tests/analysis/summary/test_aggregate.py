import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.statistics.stats import flip_rate, pass_rate, pass_rate_bounds
from evalfarm.analysis.statistics.steadiness import disagreement, sd_of_one_run
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.contracts.figures import Bounds, Cost, Latency, LatencyMeasures, Measure, PerQuestion, RepeatSpread
from evalfarm.contracts.run import Arm, Manifest, Plan
from evalfarm.contracts.suite import Variant
from evalfarm.contracts.verdict import (
    SHOWN_REPEATS,
    VERDICTS,
    Asked,
    AttemptRate,
    CaseSummary,
    CellSummary,
    FirstBreak,
    Rate,
    RateOfK,
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


NOTHING = Measure(value=None, low=None, high=None)
NO_RATE = Rate(value=None, low=None, high=None)
UNREPORTED = PerQuestion(
    mean=NOTHING,
    median=NOTHING,
    lowest=None,
    highest=None,
    sd=None,
    cases=0,
    missing=0,
    widest=None,
    widest_low=None,
    widest_high=None,
)


def figure(value: float | None) -> Measure:
    return Measure(value=value, low=None, high=None)


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
                pass_rate=NO_RATE,
                pass_rate_bounds=Bounds(**asdict(pass_rate_bounds([0], [0], [2]))),
                families=None,
                flip_rate=flip_rate([], []),
                disagreement=NO_RATE,
                rarefied_flips=(),
                pass_hat_k=(),
                pass_at_k=(),
                repeat_spread=RepeatSpread(
                    cases=0,
                    repeats=0,
                    lowest=None,
                    highest=None,
                    sd_observed=None,
                    sd_one_run=NOTHING,
                    q=None,
                    p=None,
                    more_than_noise=None,
                ),
                tool_calls_per_question=None,
                reasoning_tokens_per_question=None,
                tool_calls=UNREPORTED,
                reasoning_tokens=UNREPORTED,
                latency_s=Latency(p50=None, p95=None),
                latency_measures_s=LatencyMeasures(p50=NOTHING, p95=NOTHING, deciles=(), trials=0, timeouts=0),
                request_latency_s=Latency(p50=None, p95=None),
                cost_usd=None,
                cost=Cost(total_usd=None, per_question_usd=None, per_pass_usd=None, uncounted_attempts=0),
                pass_rate_by_attempt=(),
            ),
        ),
        slices=(),
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
        asked=(Asked(case="case-0", turns=("?",), call="look()"),),
        manifest=manifest,
    )


SEEN: list[tuple[str, int, Verdict, dict[str, Any]]] = [
    ("case-0", 0, "passed", {"tool_calls": 1, "reasoning_tokens": 10, "latency_s": 1.0, "cost_usd": 0.5}),
    ("case-0", 1, "failed", {"tool_calls": 4, "latency_s": 3.0, "cost_usd": 0.25, "request_latency_s": (0.5, 2.0)}),
    ("case-0", 2, "inconclusive", {"tool_calls": 90, "latency_s": 90.0, "cost_usd": 0.25}),
    ("case-1", 0, "passed", {"latency_s": 2.0, "cost_usd": 0.0, "attempt": 2, "request_latency_s": (1.0,)}),
    ("case-1", 1, "infra_failed", {"tool_calls": 90, "latency_s": 90.0, "cost_usd": 1.0, "attempt": 3}),
]


@pytest.fixture
def seen_plan(make_plan: MakePlan, loop: Arm) -> Plan:
    return make_plan(loop, cases=2, repeats=3)


@pytest.fixture
def seen(seen_plan: Plan, make_result: MakeResult, loop: Arm, index_of: IndexOf) -> list[Result]:
    return [
        make_result(seen_plan, index_of(seen_plan, case, loop, repeat), end, **kw) for case, repeat, end, kw in SEEN
    ]


def test_a_cell_is_summarized_whole(seen_plan: Plan, seen: list[Result], summary_of: Callable[..., RunSummary]) -> None:
    passes, decided, planned = [1, 1], [2, 1], [3, 3]
    once = pass_rate([0, 1], [0, 1])
    assert summary_of(seen_plan, seen).cells == (
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
            pass_rate=pass_rate(passes, decided),
            pass_rate_bounds=Bounds(**asdict(pass_rate_bounds(passes, decided, planned))),
            families=None,
            flip_rate=flip_rate(passes, decided),
            disagreement=disagreement(passes, decided),
            rarefied_flips=(RateOfK(k=2, rate=pass_rate([1], [1]), cases=1, dropped=1),),
            pass_hat_k=(
                RateOfK(k=1, rate=pass_rate(passes, decided), cases=2, dropped=0),
                RateOfK(k=2, rate=pass_rate([0], [1]), cases=1, dropped=1),
            ),
            pass_at_k=(
                RateOfK(k=1, rate=pass_rate(passes, decided), cases=2, dropped=0),
                RateOfK(k=2, rate=pass_rate([1], [1]), cases=1, dropped=1),
            ),
            repeat_spread=RepeatSpread(
                cases=1,
                repeats=2,
                lowest=0.0,
                highest=1.0,
                sd_observed=0.5**0.5,
                sd_one_run=Measure(**asdict(sd_of_one_run(disagreement([1], [2]), 1))),
                q=1.0,
                p=0.31731050786291115,
                more_than_noise=False,
            ),
            tool_calls_per_question=2.5,
            reasoning_tokens_per_question=10.0,
            tool_calls=PerQuestion(
                mean=figure(2.5),
                median=figure(2.5),
                lowest=2.5,
                highest=2.5,
                sd=None,
                cases=1,
                missing=1,
                widest="case-0",
                widest_low=1.0,
                widest_high=4.0,
            ),
            reasoning_tokens=UNREPORTED.model_copy(
                update={
                    "mean": figure(10.0),
                    "median": figure(10.0),
                    "lowest": 10.0,
                    "highest": 10.0,
                    "cases": 1,
                    "missing": 2,
                }
            ),
            latency_s=Latency(p50=2.0, p95=3.0),
            latency_measures_s=LatencyMeasures(
                p50=figure(2.0),
                p95=Measure(value=3.0, low=2.0, high=None),
                deciles=(1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0),
                trials=3,
                timeouts=0,
            ),
            request_latency_s=Latency(p50=1.0, p95=2.0),
            cost_usd=2.0,
            cost=Cost(total_usd=2.0, per_question_usd=0.4, per_pass_usd=1.0, uncounted_attempts=3),
            pass_rate_by_attempt=(
                AttemptRate(attempt=1, trials=2, rate=pass_rate([1], [2])),
                AttemptRate(attempt=2, trials=1, rate=once),
            ),
        ),
    )


def test_a_case_has_the_means_of_its_decided_trials(
    seen_plan: Plan, seen: list[Result], summary_of: Callable[..., RunSummary]
) -> None:
    told = [(case.latency_s, case.tool_calls, case.reasoning_tokens) for case in summary_of(seen_plan, seen).cases]
    assert told == [(2.0, 2.5, 10.0), (2.0, None, None)]


def test_a_trial_that_timed_out_is_longer_than_every_other(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=3)
    cut_off = make_result(plan, 2, "failed", latency_s=5.0).model_copy(update={"outcome": "timed_out"})
    (cell,) = summary_of(plan, [*(make_result(plan, at, "passed", latency_s=9.0) for at in (0, 1)), cut_off]).cells
    assert cell.latency_s == Latency(p50=9.0, p95=None)
    assert (cell.latency_measures_s.deciles[5:7], cell.latency_measures_s.timeouts) == ((9.0, None), 1)


def test_a_slice_says_of_some_cases_what_a_cell_says_of_all(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm, index_of: IndexOf
) -> None:
    plan = make_plan(loop, cases=4, repeats=2, kinds=2)
    ends: dict[int, Verdict] = {at: "failed" if at % 3 == 0 else "passed" for at in range(plan.size)}
    summary = summary_of(plan, [make_result(plan, at, end) for at, end in ends.items()])
    parts = [(part.tag, part.tag_value, part.planned, part.pass_rate) for part in summary.slices]
    of_kind = {kind: [case for case in summary.cases if case.tags["kind"] == kind] for kind in ("k0", "k1")}
    assert parts == [
        ("kind", kind, 4, pass_rate([case.labels["passed"] for case in cases], [2, 2]))
        for kind, cases in of_kind.items()
    ]


def test_a_tag_of_every_case_or_of_one_alone_is_no_slice(
    make_plan: MakePlan, summary_of: Callable[..., RunSummary]
) -> None:
    assert summary_of(make_plan(cases=2), []).slices == ()
    assert summary_of(make_plan(cases=3, kinds=1), []).slices == ()


def test_families_are_the_unit_where_cases_have_them(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=4, repeats=1, families=("f", "f", None, "case-2"))
    verdicts: list[Verdict] = ["passed", "passed", "passed", "failed"]
    results = [make_result(plan, at, verdicts[plan.cases.index(plan.trial(at).case)]) for at in range(4)]
    (cell,) = summary_of(plan, results).cells
    assert (cell.families, cell.pass_rate) == (3, pass_rate([1, 1, 1, 0], [1] * 4, ["f", "f", "c", "case-2"]))


def test_of_many_repeats_the_first_are_listed_and_all_are_counted(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=SHOWN_REPEATS + 5)
    (case,) = summary_of(plan, [make_result(plan, at, "passed") for at in range(plan.size)]).cases
    assert (case.trials, case.labels["passed"]) == (tuple(range(SHOWN_REPEATS)), plan.size)


def test_one_unknown_cost_makes_the_cells_cost_unknown(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=2)
    known, unknown = make_result(plan, 0, "passed", cost_usd=0.5), make_result(plan, 1, "infra_failed")
    assert [cell.cost_usd for cell in summary_of(plan, [known]).cells] == [0.5]
    assert [cell.cost_usd for cell in summary_of(plan, [known, unknown]).cells] == [None]


def test_the_cost_of_all_attempts_is_told_where_every_trial_s_is_known(
    make_plan: MakePlan, make_result: MakeResult, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop, cases=1, repeats=3)
    first = make_result(plan, 0, "passed", cost_usd=0.5)
    told = make_result(plan, 1, "passed", cost_usd=0.5, attempt=3, all_attempts_usd=1.25)
    not_told = make_result(plan, 2, "failed", cost_usd=0.5, attempt=2)
    costs = [summary_of(plan, found).cells[0].cost for found in ([first, told], [first, told, not_told])]
    assert costs == [
        Cost(total_usd=1.0, per_question_usd=0.5, per_pass_usd=0.5, uncounted_attempts=2, all_attempts_usd=1.75),
        Cost(total_usd=1.5, per_question_usd=0.5, per_pass_usd=0.75, uncounted_attempts=3),
    ]


def test_the_variants_of_a_run_are_described_as_its_suite_has_them(
    make_plan: MakePlan, summary_of: Callable[..., RunSummary], loop: Arm
) -> None:
    plan = make_plan(loop)
    variants = {"plain": Variant(description="As shipped"), "guided": Variant(description="Not run")}
    described = plan.model_copy(update={"suite": plan.suite.model_copy(update={"variants": variants})})
    assert [summary_of(one, []).variants for one in (plan, described)] == [{}, {"plain": "As shipped"}]


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
        (("passed", "infra_failed", "failed"), None, {"direct": "1/1", "loop": "0/0", "codex": "0/1"}, None),
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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
