import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from evalfarm.analysis.statistics.paired import (
    CaseCounts,
    Difference,
    ExactTest,
    benjamini_hochberg,
    case_counts,
    holm,
    paired_difference,
    rerun_difference,
    rerun_test,
)
from evalfarm.analysis.statistics.single_runs import newcombe, p_range_of_totals, tango
from evalfarm.analysis.statistics.stats import Estimate

NOTHING = Estimate(None, None, None)
shares = st.lists(st.floats(-1, 1), min_size=2, max_size=12)
probabilities = st.lists(st.floats(0, 1), max_size=12)


@st.composite
def two_arms(draw: st.DrawFn, *, least: int = 0, most: int = 5) -> tuple[CaseCounts, CaseCounts]:
    n = draw(st.integers(1, 6))
    decided = [draw(st.lists(st.integers(least, most), min_size=n, max_size=n)) for _ in range(2)]
    arms = [case_counts([draw(st.integers(0, r)) for r in one], one) for one in decided]
    return arms[0], arms[1]


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, abs=1e-9, rel=1e-9)


def opposite(arm: CaseCounts) -> CaseCounts:
    return case_counts(arm.decided - arm.passed, arm.decided)


def with_case(arm: CaseCounts, passed: int, decided: int) -> CaseCounts:
    return case_counts([*arm.passed, passed], [*arm.decided, decided])


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="case 0 has 2 passes of 1 decided trials"):
        case_counts([2], [1])
    with pytest.raises(ValueError, match="case 0 has 2 decided of 1 planned trials"):
        case_counts([2], [2], [1])
    with pytest.raises(ValueError, match="the baseline has 1 cases but the candidate 2"):
        rerun_test(case_counts([1], [1]), case_counts([1, 1], [1, 1]))


def test_no_case_and_one_case_have_no_paired_interval() -> None:
    assert paired_difference([]) == Difference(NOTHING, None, 0)
    assert paired_difference([0.5]) == Difference(Estimate(0.5, None, None), None, 1)
    assert paired_difference([0.5, 0.5], ["a", "a"]) == Difference(Estimate(0.5, None, None), None, 2)


def test_alike_families_of_equal_size_count_as_one_case_each() -> None:
    one_each, three_each = (
        paired_difference([0.5, -0.25, 0.0]),
        paired_difference(np.repeat([0.5, -0.25, 0.0], 3), np.repeat([1, 2, 3], 3)),
    )
    assert three_each.p == near(one_each.p)
    assert (three_each.estimate.low, three_each.estimate.high) == (
        near(one_each.estimate.low),
        near(one_each.estimate.high),
    )


def test_without_repeats_the_rerun_noise_is_not_known() -> None:
    once, thrice = case_counts([1, 0], [1, 1]), case_counts([3, 1], [3, 3])
    assert rerun_difference(once, thrice) == (Estimate(near(2 / 3 - 0.5), None, None), None)
    assert rerun_difference(case_counts([0], [0]), case_counts([1], [1])) == (NOTHING, None)


def test_arms_that_never_flip_still_have_a_width() -> None:
    found, error = rerun_difference(case_counts([3, 3], [3, 3]), case_counts([3, 3], [3, 3]))
    assert error == near(math.sqrt(2 * (0.5 / 3) / (2 * 2 * 3)))
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


@pytest.mark.parametrize("passed", [0, 3])
def test_where_all_trials_end_alike_the_test_says_nothing(passed: int) -> None:
    arm = case_counts([passed] * 4, [3] * 4)
    assert rerun_test(arm, arm) == ExactTest(lower=1.0, lower_mid=0.5, upper=1.0, upper_mid=0.5, varied=0)
    assert rerun_test(arm, arm).two_sided_mid == 1.0


def test_one_broken_case_of_one_night_cannot_be_flagged_among_108() -> None:
    found = rerun_test(case_counts([15], [15]), case_counts([0], [3]))
    assert found.lower == near(1 / math.comb(18, 3))
    assert found.lower > 0.10 / 108
    assert rerun_test(case_counts([15], [15]), case_counts([0], [9])).lower < 0.10 / 108


def test_the_largest_suites_are_tested_too() -> None:
    rng, cases = np.random.default_rng(5), 20_000
    decided, rate = np.full(cases, 10), rng.beta(8, 1, cases)
    baseline = case_counts(rng.binomial(10, rate), decided)
    same = rerun_test(baseline, case_counts(rng.binomial(10, rate), decided))
    assert 0.001 < same.two_sided_mid <= 1
    worse = rerun_test(baseline, case_counts(rng.binomial(10, rate * 0.9), decided))
    assert (worse.lower, worse.upper) == (1e-60, near(1.0))


def test_a_long_distribution_has_the_normal_tail() -> None:
    baseline, candidate = case_counts([5] * 600, [10] * 600), case_counts([5] * 570 + [4] * 30, [10] * 600)
    per_case = 10 * 10 * 10 * 10 / (20 * 20 * 19)  # variance of hypergeometric(20, 10, 10); of (20, 9, 10) all but it
    expected = stats.norm.cdf(-15 / math.sqrt(570 * per_case + 30 * 10 * 10 * 9 * 11 / (20 * 20 * 19)))
    assert rerun_test(baseline, candidate).lower_mid == pytest.approx(expected, rel=0.01)


def test_the_exact_test_is_the_enumeration_of_all_relabellings() -> None:
    baseline, candidate = case_counts([2, 1, 2], [2, 2, 3]), case_counts([0, 1, 1], [1, 2, 2])
    sums: dict[int, float] = {}
    per_case = []
    for passed_a, decided_a, passed_b, decided_b in ((2, 2, 0, 1), (1, 2, 1, 2), (2, 3, 1, 2)):
        pool = [1] * (passed_a + passed_b) + [0] * (decided_a + decided_b - passed_a - passed_b)
        per_case.append([sum(chosen) for chosen in itertools.combinations(pool, decided_b)])
    for drawn in itertools.product(*per_case):
        sums[sum(drawn)] = sums.get(sum(drawn), 0) + 1
    total = sum(sums.values())
    found = rerun_test(baseline, candidate)
    assert found.lower == near(sum(ways for passes, ways in sums.items() if passes <= 2) / total)
    assert found.upper == near(sum(ways for passes, ways in sums.items() if passes >= 2) / total)


def test_with_one_repeat_the_test_is_mcnemars() -> None:
    for only_a, only_b in ((0, 1), (3, 9), (5, 5)):
        found = rerun_test(
            case_counts([1] * only_a + [0] * only_b, [1] * (only_a + only_b)),
            case_counts([0] * only_a + [1] * only_b, [1] * (only_a + only_b)),
        )
        assert found.two_sided == near(stats.binomtest(only_a, only_a + only_b).pvalue)


def test_two_totals_need_not_tell_anything() -> None:
    assert p_range_of_totals(102, 101, 108) == (near(1.0), near(1.0))
    assert p_range_of_totals(50, 50, 108) == (1.0, 1.0)
    assert p_range_of_totals(69, 80, 108) == p_range_of_totals(80, 69, 108)


def test_no_p_value_needs_no_correction() -> None:
    assert holm([]) == benjamini_hochberg([]) == ()


def test_intervals_of_no_single_run_are_open() -> None:
    assert newcombe(0, 0, 0, 0) == tango(0, 0, 0) == NOTHING


@given(shares)
def test_swapping_the_arms_mirrors_the_paired_difference(d: list[float]) -> None:
    there, back = paired_difference(d), paired_difference([-value for value in d])
    assert back.p == near(there.p)
    assert (back.estimate.low, back.estimate.high) == (
        near(-(there.estimate.high or 0.0)),
        near(-(there.estimate.low or 0.0)),
    )


@given(shares, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_paired_interval_holds_its_value_has_a_width_and_stays_inside(d: list[float], confidence: float) -> None:
    found = paired_difference(d, confidence=confidence).estimate
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low


@given(shares, st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter_to_the_paired_difference(d: list[float], shuffle: Any) -> None:
    found = paired_difference(d)
    shuffled = list(d)
    shuffle.shuffle(shuffled)
    again = paired_difference(shuffled)
    assert (again.p, again.estimate.low, again.estimate.high) == (
        near(found.p),
        near(found.estimate.low),
        near(found.estimate.high),
    )
    alone = paired_difference(d, list(range(len(d))))
    assert alone.p == near(found.p)


@given(two_arms(), st.integers(0, 3))
def test_a_case_that_always_ends_alike_changes_nothing_in_the_test(
    arms: tuple[CaseCounts, CaseCounts], repeats: int
) -> None:
    found = rerun_test(*arms)
    for passed in (0, repeats):
        again = rerun_test(with_case(arms[0], passed, repeats), with_case(arms[1], passed, repeats))
        assert (again.lower, again.upper) == (near(found.lower), near(found.upper))


@given(two_arms())
def test_swapping_labels_or_arms_swaps_the_tails(arms: tuple[CaseCounts, CaseCounts]) -> None:
    found = rerun_test(*arms)
    labels, swapped = rerun_test(opposite(arms[0]), opposite(arms[1])), rerun_test(arms[1], arms[0])
    for other in (labels, swapped):
        assert (other.lower, other.lower_mid, other.upper, other.upper_mid) == (
            near(found.upper),
            near(found.upper_mid),
            near(found.lower),
            near(found.lower_mid),
        )


@given(two_arms())
def test_the_tails_overlap_in_what_was_seen(arms: tuple[CaseCounts, CaseCounts]) -> None:
    found = rerun_test(*arms)
    assert found.lower_mid + found.upper_mid == near(1.0)
    assert 0 < found.lower_mid <= found.lower <= 1
    assert 0 < found.upper_mid <= found.upper <= 1


@given(two_arms(least=1), st.data())
def test_one_more_pass_of_the_candidate_never_makes_it_look_worse(
    arms: tuple[CaseCounts, CaseCounts], data: st.DataObject
) -> None:
    baseline, candidate = arms
    room = np.flatnonzero(candidate.passed < candidate.decided)
    assume(len(room))
    at = data.draw(st.sampled_from(list(room)))
    more = candidate.passed.copy()
    more[at] += 1
    before, after = rerun_test(baseline, candidate), rerun_test(baseline, case_counts(more, candidate.decided))
    assert after.lower >= before.lower - 1e-12
    assert after.upper <= before.upper + 1e-12


@given(two_arms(least=2))
def test_swapping_the_arms_mirrors_the_rerun_interval_which_holds_its_value(
    arms: tuple[CaseCounts, CaseCounts],
) -> None:
    (there, error), (back, error_back) = rerun_difference(*arms), rerun_difference(arms[1], arms[0])
    assert there.value is not None
    assert there.low is not None
    assert there.high is not None
    assert there.low <= there.value <= there.high
    assert (back.value, back.low, back.high) == (near(-there.value), near(-there.high), near(-there.low))
    assert error == near(error_back)


@given(*[st.integers(0, 30)] * 4)
def test_single_run_intervals_hold_their_value_and_mirror(both: int, only_a: int, only_b: int, neither: int) -> None:
    n = both + only_a + only_b + neither
    assume(n > 0)
    for there, back in (
        (newcombe(both, only_a, only_b, neither), newcombe(both, only_b, only_a, neither)),
        (tango(only_a, only_b, n), tango(only_b, only_a, n)),
    ):
        assert there.value == near((only_a - only_b) / n)
        assert there.value is not None
        assert there.low is not None
        assert there.high is not None
        assert -1 - 1e-9 <= there.low <= there.value <= there.high <= 1 + 1e-9
        assert [back.low, back.high] == pytest.approx([-there.high, -there.low], abs=1e-6)


@given(probabilities, st.randoms(use_true_random=False))
def test_corrected_p_values_follow_their_p_values_are_no_smaller_and_at_most_one(p: list[float], shuffle: Any) -> None:
    order = list(range(len(p)))
    shuffle.shuffle(order)
    for correct in (holm, benjamini_hochberg):
        found = correct(p)
        assert all(before - 1e-12 <= after <= 1 for before, after in zip(p, found, strict=True))
        assert correct([p[at] for at in order]) == pytest.approx([found[at] for at in order])
        ranked = sorted(zip(p, found, strict=True))
        assert all(low[1] <= high[1] + 1e-12 for low, high in itertools.pairwise(ranked))
    assert all(fdr <= fwer + 1e-12 for fdr, fwer in zip(benjamini_hochberg(p), holm(p), strict=True))
