import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from evalfarm.analysis.statistics.comparisons import (
    Comparison,
    Completeness,
    Needed,
    compare,
    difference_in_differences,
    losses_alike,
)
from evalfarm.analysis.statistics.paired import CaseCounts, Difference, case_counts, rerun_test
from evalfarm.analysis.statistics.ranking import Ranked, rank
from evalfarm.analysis.statistics.single_runs import newcombe
from evalfarm.analysis.statistics.stats import Estimate, pass_rate
from evalfarm.contracts.verdict import Rate

NOTHING = Estimate(None, None, None)


def arm(passed: list[int], repeats: int) -> CaseCounts:
    return case_counts(passed, [repeats] * len(passed))


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-9)


def halves(of: int, good: int, repeats: int) -> CaseCounts:
    """`good` cases that always pass, the others never."""
    return arm([repeats] * good + [0] * (of - good), repeats)


@st.composite
def two_arms(draw: st.DrawFn) -> tuple[CaseCounts, CaseCounts]:
    n = draw(st.integers(1, 8))
    planned = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    arms = []
    for _ in range(2):
        decided = [draw(st.integers(0, p)) for p in planned]
        arms.append(case_counts([draw(st.integers(0, r)) for r in decided], decided, planned))
    return arms[0], arms[1]


def test_a_clear_gain_is_better_on_new_and_on_the_same_cases() -> None:
    found = compare(halves(40, 10, 3), halves(40, 30, 3))
    assert (found.new_cases_finding, found.same_cases_finding) == ("better", "better")
    assert (found.new_cases.estimate.value, found.candidate) == (0.5, pass_rate([3] * 30 + [0] * 10, [3] * 40))
    assert compare(halves(40, 30, 3), halves(40, 10, 3)).new_cases_finding == "worse"


def test_the_same_answers_on_many_cases_are_equivalent_and_on_few_too_little_evidence() -> None:
    assert compare(halves(108, 80, 3), halves(108, 80, 3)).new_cases_finding == "equivalent"
    few = compare(halves(5, 4, 3), halves(5, 4, 3))
    assert (few.new_cases_finding, few.same_cases_finding) == ("too little evidence", "too little evidence")
    assert few.needed.cases is None
    assert few.needed.cases_for_equivalence is not None


def test_two_questions_can_have_two_answers() -> None:
    # Two of eight cases broke for good: a rerun of these would differ, other cases need not.
    found = compare(arm([6] * 8, 6), arm([6] * 6 + [0] * 2, 6))
    assert (found.new_cases_finding, found.same_cases_finding) == ("too little evidence", "worse")


def test_what_would_decide_is_said() -> None:
    found = compare(arm([3, 3, 2, 3, 1], 3), arm([2, 0, 1, 3, 1], 3))
    # s² = (Σ d² + 1) / 6 - (Σ d / 6)² = .2932 and (1.96 + .8416)² s² / (1/3)² = 20.7; .1728 of s² lies between the
    # cases, more than the .0708 that five cases may have.
    assert found.needed == Needed(cases=21, repeats=None, cases_for_equivalence=None)


def test_repeats_decide_where_the_cases_hardly_differ() -> None:
    found = compare(arm([1, 2, 1, 2] * 10, 3), arm([2, 2, 2, 2] * 10, 3))
    assert found.needed.repeats is not None
    assert found.needed.repeats >= 1


def test_single_runs_come_with_newcombes_interval() -> None:
    first, second = arm([1, 1, 0, 0, 1], 1), arm([1, 0, 1, 0, 1], 1)
    found = compare(first, second)
    assert found.single_runs == newcombe(2, 1, 1, 1)
    assert (found.same_cases.low, found.same_cases_test) == (None, rerun_test(first, second))
    assert compare(arm([2], 2), arm([2], 2)).single_runs is None


def test_arms_without_a_common_case_are_not_compared() -> None:
    nothing = Rate(value=None, low=None, high=None)
    first, second = case_counts([1, 0], [1, 0], [1, 0]), case_counts([0, 1], [0, 1], [0, 1])
    test = rerun_test(first, second)
    assert compare(first, second) == Comparison(
        baseline=nothing,
        candidate=nothing,
        new_cases=Difference(NOTHING, None, 0),
        new_cases_finding="too little evidence",
        same_cases=NOTHING,
        same_cases_test=test,
        same_cases_finding="too little evidence",
        single_runs=None,
        completeness=Completeness(0.0, 0.0, 1.0, sign_survives=False),
        needed=Needed(cases=None, repeats=None, cases_for_equivalence=None),
        margin=0.03,
    )


def test_many_undecided_trials_leave_a_finding_open_unless_they_cannot_turn_it() -> None:
    lost = case_counts([3] * 20 + [0] * 6, [3] * 26, [3] * 20 + [12] * 6)
    found = compare(arm([2] * 26, 3), lost)
    assert found.completeness.undecided_candidate == near(54 / 132)
    assert (found.completeness.sign_survives, found.new_cases_finding) == (False, "too little evidence")
    clear = compare(case_counts([0] * 40, [3] * 40), case_counts([9] * 40, [9] * 40, [10] * 40))
    assert (clear.completeness.sign_survives, clear.completeness.harmless) == (True, True)
    assert clear.new_cases_finding == "better"


def test_losses_that_differ_between_the_arms_leave_a_finding_open() -> None:
    # Four per cent lost is few, but the other arm lost none.
    lossy = case_counts([24] * 40, [24] * 40, [25] * 40)
    found = compare(case_counts([24] * 40, [25] * 40), lossy)
    assert found.completeness.p_alike < 0.01
    assert not found.completeness.harmless
    assert found.new_cases_finding == "too little evidence"


def test_arms_that_cannot_be_told_apart_share_their_places_in_the_order_of_names() -> None:
    found = rank({"b": halves(60, 50, 3), "worst": halves(60, 5, 3), "a": halves(60, 49, 3)})
    assert found == (
        Ranked("a", pass_rate([3] * 49 + [0] * 11, [3] * 60), best=1, worst=2),
        Ranked("b", pass_rate([3] * 50 + [0] * 10, [3] * 60), best=1, worst=2),
        Ranked("worst", pass_rate([3] * 5 + [0] * 55, [3] * 60), best=3, worst=3),
    )


def test_one_arm_and_arms_without_a_common_case_rank_without_a_test() -> None:
    assert [(one.best, one.worst) for one in rank({"a": arm([1], 1)})] == [(1, 1)]
    apart = rank({"a": case_counts([1, 0], [1, 0]), "b": case_counts([0, 0], [0, 1])})
    assert [(one.name, one.best, one.worst) for one in apart] == [("a", 1, 2), ("b", 1, 2)]
    assert rank({}) == ()


def test_a_difference_of_gaps_shows_all_four_cells() -> None:
    full, most, half, third = halves(12, 12, 2), halves(12, 11, 2), halves(12, 6, 2), halves(12, 4, 2)
    found = difference_in_differences((full, most), (half, third))
    assert [cell.value for cell in found.cells] == [near(share) for share in (1, 11 / 12, 1 / 2, 1 / 3)]
    assert found.first_gap.estimate.value == near(1 / 12)
    assert found.second_gap.estimate.value == near(1 / 6)
    assert found.difference.estimate.value == near(1 / 12 - 1 / 6)


def test_rerun_noise_of_a_difference_of_gaps_needs_repeats_in_every_cell() -> None:
    once, twice = arm([1, 0], 1), arm([2, 1], 2)
    assert difference_in_differences((once, twice), (twice, twice)).rerun_sd is None
    assert difference_in_differences((twice, twice), (twice, twice)).rerun_sd == near((4 * 0.5 / 2 / 2 / 2) ** 0.5)
    empty = difference_in_differences((case_counts([0], [0]),) * 2, (case_counts([0], [0]),) * 2)
    assert (empty.difference, empty.rerun_sd) == (Difference(NOTHING, None, 0), None)


@given(two_arms())
def test_swapping_the_arms_turns_the_findings_around(arms: tuple[CaseCounts, CaseCounts]) -> None:
    turned = {"better": "worse", "worse": "better"}
    there, back = compare(*arms), compare(arms[1], arms[0])
    assert back.new_cases_finding == turned.get(there.new_cases_finding, there.new_cases_finding)
    assert back.same_cases_finding == turned.get(there.same_cases_finding, there.same_cases_finding)
    assert (back.baseline, back.candidate) == (there.candidate, there.baseline)
    assert dataclasses.astuple(back.needed) == dataclasses.astuple(there.needed)
    assert back.completeness.sign_survives == there.completeness.sign_survives


@given(two_arms())
def test_a_case_that_only_one_arm_has_changes_no_figure(arms: tuple[CaseCounts, CaseCounts]) -> None:
    there = compare(*arms)
    more = compare(
        case_counts([*arms[0].passed, 2], [*arms[0].decided, 3], [*arms[0].planned, 3]),
        case_counts([*arms[1].passed, 0], [*arms[1].decided, 0], [*arms[1].planned, 0]),
    )
    for name in ("baseline", "candidate", "new_cases", "same_cases", "same_cases_test", "needed"):
        assert getattr(more, name) == getattr(there, name)


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_places_are_ranges_that_every_arm_can_take_and_somebody_can_be_first(passes: list[list[int]]) -> None:
    found = rank({f"arm-{at}": arm(one, 3) for at, one in enumerate(passes)})
    assert all(1 <= one.best <= one.worst <= len(passes) for one in found)
    assert min(one.best for one in found) == 1
    assert max(one.worst for one in found) == len(passes)
    assert np.mean([(one.best + one.worst) / 2 for one in found]) == near((len(passes) + 1) / 2)


#: Of an arm: trials decided, and trials that were lost.
ARM = st.tuples(st.integers(0, 3_000), st.integers(0, 300))


@given(ARM, ARM)
def test_losses_are_alike_by_fisher_s_exact_test(one: tuple[int, int], other: tuple[int, int]) -> None:
    arms = [case_counts([0], [decided], [decided + lost]) for decided, lost in (one, other)]
    assert losses_alike(*arms) == pytest.approx(fisher_exact([one, other])[1], rel=1e-7, abs=1e-300)
