from dataclasses import replace

import numpy as np
import pytest
from pydantic import TypeAdapter

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.comparability import Mismatch
from evalfarm.analysis.judgement.notes import ArmNote, CaseChange, CaseSets, RunNote, Source
from evalfarm.analysis.judgement.record import run_record
from evalfarm.analysis.judgement.verdicts import ArmPair, Question, Verdicts, compare_arms, compare_runs
from evalfarm.analysis.statistics.comparisons import compare
from evalfarm.analysis.statistics.figures import FigureChange
from evalfarm.analysis.statistics.paired import case_counts
from evalfarm.analysis.statistics.stats import Estimate
from evalfarm.errors import UsageError
from tests.made_runs import CODEX, DIGESTS, GUIDED, LOOP, OTHER, OTHER_CODEX, made_case, made_run, made_source

A = [3, 3, 2, 3, 1]
B = [2, 0, 1, 3, 1]
NOTHING = FigureChange(Estimate(None, None, None), None, None, None, 0)
FIGURES = {"latency_s": NOTHING, "tool_calls": NOTHING, "reasoning_tokens": NOTHING}
ELSE = "sha256:" + "e" * 64


def note(run: str, arm: ArmName) -> ArmNote:
    return ArmNote(run, *arm, name=str(arm))


def test_two_runs_of_one_arm_make_this_document() -> None:
    three = [3] * 5
    made = compare(case_counts(A, three), case_counts(B, three))
    assert compare_runs(made_source("a", {LOOP: A}), made_source("b", {LOOP: B}), Question()) == Verdicts(
        runs=(
            RunNote(
                "a",
                None,
                "small",
                "1",
                simulated=False,
                synthetic=False,
                isolation="cell",
                record=run_record(made_source("a", {LOOP: A}).summary),
            ),
            RunNote(
                "b",
                None,
                "small",
                "1",
                simulated=False,
                synthetic=False,
                isolation="cell",
                record=run_record(made_source("b", {LOOP: B}).summary),
            ),
        ),
        margin=0.03,
        pairs=(
            ArmPair(
                baseline=note("a", LOOP),
                candidate=note("b", LOOP),
                axes=(),
                cases=CaseSets(5, (), ()),
                new_cases="too little evidence",
                same_cases="too little evidence",
                new_cases_p=made.new_cases.p,
                same_cases_p=pytest.approx(2 * 0.027625, abs=1e-8),
                comparison=made,
                changes=(
                    CaseChange("case-2", "3/3", "0/3", -1.0),
                    CaseChange("case-1", "3/3", "2/3", 2 / 3 - 1),
                    CaseChange("case-3", "2/3", "1/3", 1 / 3 - 2 / 3),
                ),
                figures=FIGURES,
                differing=(),
            ),
        ),
        ranking=(),
        squares=(),
        not_compared=(),
    )


def test_the_golden_pair_s_figures_stand_in_the_document() -> None:
    made = compare_runs(made_source("a", {LOOP: A}), made_source("b", {LOOP: B}), Question()).pairs[0].comparison
    estimate, rerun = made.new_cases.estimate, made.same_cases
    found = (estimate.value, estimate.low, estimate.high, rerun.low, rerun.high)
    expected = (-1 / 3, -0.891543688498, 0.335988132942, -0.637437861747, -0.0292288049193)
    assert found == pytest.approx(expected, abs=1e-8)


def test_the_document_is_json_and_reads_back() -> None:
    arms = {LOOP: A, OTHER: B, CODEX: A, OTHER_CODEX: B}
    found = compare_arms(made_source("a", arms), Question())
    adapter = TypeAdapter(Verdicts)
    assert adapter.validate_json(adapter.dump_json(found)) == found


def test_the_published_study_against_itself_is_no_difference() -> None:
    study = [3] * 83 + [2] * 12 + [1] * 11 + [0] * 2
    pair = compare_runs(made_source("a", {LOOP: study}), made_source("b", {LOOP: study}), Question()).pairs[0]
    assert (pair.new_cases, pair.same_cases, pair.changes) == ("equivalent", "too little evidence", ())
    assert pair.comparison.baseline.value == pytest.approx(0.876543209877, abs=1e-8)


def test_several_pairs_are_corrected_for_their_number() -> None:
    base, better = [1] * 30, [1] * 20 + [3] * 10
    alone = compare_arms(made_source("r", {LOOP: base, GUIDED: better}), Question()).pairs[0]
    thrice = compare_arms(made_source("r", {LOOP: base, GUIDED: better, CODEX: base, OTHER: base}), Question())
    first = thrice.pairs[0]
    assert [pair.axes for pair in thrice.pairs] == [("variant",), ("harness",), ("model",)]
    assert first.comparison == alone.comparison
    assert (alone.same_cases, alone.same_cases_p) == ("better", alone.comparison.same_cases_test.two_sided_mid)
    assert first.same_cases_p == pytest.approx(3 * alone.same_cases_p)
    assert first.new_cases_p == pytest.approx(3 * (alone.new_cases_p or 0))


def test_a_finding_that_does_not_survive_the_correction_is_too_little_evidence() -> None:
    base, better = [10] * 20, [10] * 13 + [15] * 7
    alone = compare_arms(made_source("r", {LOOP: base, GUIDED: better}, 20), Question()).pairs[0]
    many = {LOOP: base, GUIDED: better} | {ArmName(f"m{n}", "loop", "plain"): base for n in range(20)}
    corrected = compare_arms(made_source("r", many, 20), Question()).pairs[0]
    assert (alone.same_cases, corrected.same_cases) == ("better", "too little evidence")


def test_arms_are_ranked_from_three_on_and_ties_by_their_names() -> None:
    arms = {OTHER: [3] * 40, LOOP: [3] * 40, GUIDED: [0] * 40}
    found = compare_arms(made_source("r", arms), Question())
    assert [(arm.name, arm.best, arm.worst) for arm in found.ranking] == [
        ("m · loop · plain", 1, 2),
        ("n · loop · plain", 1, 2),
        ("m · loop · guided", 3, 3),
    ]
    assert compare_arms(made_source("r", {OTHER: A, LOOP: A}), Question()).ranking == ()


def test_two_models_under_two_harnesses_are_shown_with_all_four_cells() -> None:
    arms = {LOOP: [3, 3, 3, 2, 3], OTHER: [3, 3, 2, 3, 3], CODEX: [3, 2, 1, 3, 2], OTHER_CODEX: [1, 2, 0, 3, 0]}
    (square,) = compare_arms(made_source("r", arms), Question()).squares
    estimate = square.interaction.difference.estimate
    assert [arm.name for arm in square.arms] == [str(arm) for arm in (LOOP, OTHER, CODEX, OTHER_CODEX)]
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
        (-0.333333333333, -0.851471380509, 0.295915824954), abs=1e-8
    )


def test_runs_of_unequal_cases_are_compared_on_those_that_both_have() -> None:
    first = made_source("a", {LOOP: [3, 3, 3]})
    extra = made_case("new", LOOP, 3, 3)
    summary = first.summary.model_copy(update={"run": "b", "cases": (*first.summary.cases[1:], extra)})
    found = compare_runs(first, Source(summary, {}), Question()).pairs[0]
    assert (found.cases, found.comparison.new_cases.cases) == (CaseSets(2, ("case-1",), ("new",)), 2)


def test_families_of_cases_are_the_unit_where_they_are_known() -> None:
    def run(name: str, passes: list[int], family: str | None) -> Source:
        cases = [made_case(f"c{at}", LOOP, passed, 3, family=family) for at, passed in enumerate(passes)]
        return Source(made_run(name, *cases), {})

    alone = compare_runs(run("a", A, None), run("b", B, None), Question()).pairs[0].comparison.new_cases
    kin = compare_runs(run("a", A, "one"), run("b", B, "one"), Question()).pairs[0].comparison.new_cases
    assert (alone.estimate.value, alone.p is None, kin.p) == (kin.estimate.value, False, None)


def test_a_figure_s_change_is_over_the_cases_that_report_it_in_both_arms() -> None:
    def run(name: str, seconds: float) -> Source:
        cases = [made_case(f"c{at}", LOOP, 1, 1, latency_s=seconds * (at + 1)) for at in range(3)]
        return Source(made_run(name, *cases, made_case("d", LOOP, 1, 1)), {})

    change = compare_runs(run("a", 1.0), run("b", 2.0), Question()).pairs[0].figures["latency_s"]
    assert (change.factor.value, change.cases) == (pytest.approx(2.0), 3)


def test_what_differs_refuses_and_what_was_allowed_is_kept_in_the_document() -> None:
    first = made_source("a", {LOOP: A})
    second = made_source("b", {LOOP: A}, digests=DIGESTS | {"grader": ELSE})
    with pytest.raises(UsageError) as caught:
        compare_runs(first, second, Question())
    assert caught.value.message == (
        "m · loop · plain of run 'a' and m · loop · plain of run 'b' cannot be compared: "
        "they differ in what was not meant to differ\n  grader: sha256:999999999999 against sha256:eeeeeeeeeeee"
    )
    allowed = compare_runs(first, second, Question(allowed={"grader"})).pairs[0]
    assert allowed.differing == (Mismatch("grader", "sha256:999999999999", "sha256:eeeeeeeeeeee"),)


def test_a_case_that_asks_something_else_now_refuses() -> None:
    first, second = made_source("a", {LOOP: A}), made_source("b", {LOOP: A})
    changed = replace(second, cases={**second.cases, "case-2": ELSE})
    with pytest.raises(UsageError, match="cases/case-2"):
        compare_runs(first, changed, Question())


def test_arms_without_a_partner_are_named() -> None:
    found = compare_runs(made_source("a", {LOOP: A, GUIDED: A}), made_source("b", {LOOP: A}), Question())
    assert found.not_compared == (note("a", GUIDED),)


@pytest.mark.parametrize("margin", [0.0, 1.0, 3.0, -0.03, float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin: float) -> None:
    with pytest.raises(UsageError) as caught:
        compare_runs(made_source("a", {LOOP: A}), made_source("b", {LOOP: A}), Question(margin))
    assert str(caught.value) == (
        f"a margin of {margin:g} is not between 0 and 1\n\nhint: give it as a share: 0.03 for three percentage points"
    )


def test_a_run_is_not_compared_with_itself() -> None:
    with pytest.raises(UsageError) as caught:
        compare_runs(made_source("a", {LOOP: A}), made_source("a", {LOOP: A}), Question())
    assert str(caught.value) == "both runs are 'a'\n\nhint: to try a run against itself: evalfarm aa a"


def test_a_run_of_one_arm_has_nothing_to_compare() -> None:
    with pytest.raises(UsageError) as caught:
        compare_arms(made_source("a", {LOOP: A, CODEX: A}), Question(wanted={"harness": ("loop",)}))
    assert str(caught.value) == (
        "run 'a' has fewer than two arms to compare: m · loop · plain\n\n"
        "hint: name a second run: evalfarm compare a OTHER"
    )


def test_runs_whose_arms_cannot_be_paired_are_told_with_their_arms() -> None:
    two = {LOOP: A, ArmName("o", "loop", "plain"): A}
    with pytest.raises(UsageError) as caught:
        compare_runs(made_source("a", two), made_source("b", {OTHER: A}), Question())
    assert str(caught.value) == (
        "no arm of run 'b' can be paired with one of run 'a'\n"
        "  a: m · loop · plain, o · loop · plain\n"
        "  b: n · loop · plain\n\n"
        "hint: choose with --model, --harness and --variant, so that one arm of each is left"
    )


def test_runs_without_a_common_case_are_refused() -> None:
    first = made_source("a", {LOOP: [3]})
    second = Source(made_run("b", made_case("new", LOOP, 3, 3)), {})
    with pytest.raises(UsageError) as caught:
        compare_runs(first, second, Question())
    assert str(caught.value) == (
        "m · loop · plain of run 'a' and m · loop · plain of run 'b' have no case in common\n\n"
        "hint: compare runs of one suite whose filters overlap"
    )


def test_a_simulated_model_is_not_ranked_with_a_real_one() -> None:
    arms = {LOOP: A, ArmName("sim-flaky", "loop", "plain"): B}
    with pytest.raises(UsageError, match="simulated: no against yes"):
        compare_arms(made_source("r", arms), Question())
    assert len(compare_arms(made_source("r", arms), Question(allowed={"simulated"})).pairs) == 1


def test_two_runs_of_one_plugin_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(7)
    found = []
    for _ in range(200):
        rates = rng.beta(4, 1, size=20)
        first, second = (rng.binomial(3, rates).tolist() for _ in range(2))
        found.append(
            compare_runs(made_source("a", {LOOP: first}), made_source("b", {LOOP: second}), Question()).pairs[0]
        )
    # 5 % of 200, and three standard errors: what the level allows.
    for findings in ([pair.new_cases for pair in found], [pair.same_cases for pair in found]):
        assert sum(finding in ("better", "worse") for finding in findings) <= 19
