import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.of_k import RateOfK, pass_at_k, pass_hat_k
from evalfarm.analysis.statistics.stats import (
    Bounds,
    effective_cases,
    flip_rate,
    pass_rate,
    pass_rate_bounds,
    quantile,
    wilson,
)
from evalfarm.contracts.verdict import FlipRate, Rate
from evalfarm.errors import UsageError

Z = 1.959963984540054


@st.composite
def cases(draw: st.DrawFn, *, most: int = 12) -> tuple[list[int], list[int]]:
    """Passes and decided trials of up to 12 cases, some of them without a decided trial."""
    decided = draw(st.lists(st.integers(0, most), max_size=12))
    return [draw(st.integers(0, r)) for r in decided], decided


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-8, rel=0)


def test_without_a_decided_trial_nothing_is_said() -> None:
    assert pass_rate([], []) == pass_rate([0, 0], [0, 0]) == Rate(value=None, low=None, high=None)
    assert flip_rate([], []) == FlipRate(value=None, low=None, high=None, flipped=0, cases=0, repeats=0)
    assert quantile([], 0.5) is None


def test_one_repeat_cannot_flip() -> None:
    assert flip_rate([1, 0], [1, 1]) == FlipRate(value=None, low=None, high=None, flipped=0, cases=0, repeats=1)


def test_only_repeated_cases_count_for_flips() -> None:
    flips = flip_rate([1, 1, 2, 0], [1, 2, 2, 0])
    assert (flips.flipped, flips.cases, flips.repeats, flips.value) == (1, 2, 2, 0.5)


def test_a_single_case_has_the_width_of_one_case_however_often_it_ran() -> None:
    assert pass_rate([15], [30]) == pass_rate([1], [2])
    assert pass_rate([30], [30]) == pass_rate([1], [1])


def test_cases_that_are_all_alike_are_worth_no_more_than_the_cap() -> None:
    # Three cases of 1/2: no variance, so 3 × 2 / (1 + 1/3) = 4.5 effective cases, and t(.975, 2) = 4.3027.
    rate = pass_rate([1, 1, 1], [2, 2, 2])
    low, high = wilson(0.5, 4.5, 4.3026527297)
    assert (rate.value, rate.low, rate.high) == (0.5, near(low), near(high))


@pytest.mark.parametrize(
    ("passes", "decided", "message"),
    [
        ([1, 2], [3], "2 cases have passes but 1 have decided trials"),
        ([1, 4], [3, 3], "case 1 has 4 passes of 3 decided trials"),
        ([-1], [3], "case 0 has -1 passes of 3 decided trials"),
    ],
)
def test_counts_that_cannot_be_are_refused(passes: list[int], decided: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_rate(passes, decided)
    with pytest.raises(ValueError, match=message):
        flip_rate(passes, decided)


@given(cases())
def test_an_interval_holds_its_value_and_has_a_width(counts: tuple[list[int], list[int]]) -> None:
    for rate in (pass_rate(*counts), flip_rate(*counts)):
        if rate.value is not None:
            assert rate.low is not None
            assert rate.high is not None
            assert 0 <= rate.low <= rate.value <= rate.high <= 1
            assert rate.high - rate.low > 0


@given(cases())
def test_swapping_pass_and_fail_mirrors_the_pass_rate_and_leaves_the_flips(
    counts: tuple[list[int], list[int]],
) -> None:
    passes, decided = counts
    fails = [r - c for c, r in zip(passes, decided, strict=True)]
    rate, mirrored = pass_rate(passes, decided), pass_rate(fails, decided)
    assert flip_rate(fails, decided) == flip_rate(passes, decided)
    if rate.value is None or rate.low is None or rate.high is None:
        assert mirrored == rate
    else:
        assert (mirrored.value, mirrored.low, mirrored.high) == (
            near(1 - rate.value),
            near(1 - rate.high),
            near(1 - rate.low),
        )


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(counts: tuple[list[int], list[int]], shuffle: Any) -> None:
    pairs = list(zip(*counts, strict=True))
    shuffle.shuffle(pairs)
    rate, again = pass_rate(*counts), pass_rate([c for c, _ in pairs], [r for _, r in pairs])
    assert again.model_dump() == pytest.approx(rate.model_dump(), abs=1e-8)


@given(cases(most=1))
def test_with_one_repeat_the_interval_is_plain_wilson(counts: tuple[list[int], list[int]]) -> None:
    rate, n = pass_rate(*counts), sum(counts[1])
    if n:
        assert (rate.low, rate.high) == wilson(sum(counts[0]) / n, n, Z)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_the_smallest_value_with_enough_below_it(values: list[float], q: float) -> None:
    found = quantile(values, q)
    assert found in values
    # Shares of counts are compared as numpy compares them: a rounding error of q × n is no observation.
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9
    assert sum(value < found for value in values) < q * len(values) + 1e-9


def test_149_of_150_trials_can_have_a_higher_lower_limit_than_150_of_150() -> None:
    # At exactly 100 % the limit follows from the number of cases alone; said in the docstring, not mended.
    all_but_one, every = pass_rate([30, 30, 30, 30, 29], [30] * 5), pass_rate([30] * 5, [30] * 5)
    assert every.low == wilson(1, 5, Z)[0]
    assert all_but_one.low is not None
    assert every.low is not None
    assert all_but_one.low > every.low


def test_cases_of_one_family_count_as_one() -> None:
    passes, decided = [3, 3, 0, 0], [3, 3, 3, 3]
    low, high = wilson(0.5, 1, Z)
    assert pass_rate(passes, decided, ["a", "a", "a", "a"]) == Rate(value=0.5, low=low, high=high)
    # Two families of two alike cases: v = 2/1 × (1² + 1²) / 4² = 1/4, so one effective case, raised to none.
    assert effective_cases(np.array([1.0, 1, 0, 0]), np.full(4, 3.0), np.array([0, 0, 1, 1])) == near(1.0)


def test_families_that_all_passed_count_as_so_many_cases() -> None:
    assert pass_rate([2] * 6, [2] * 6, [1, 1, 1, 2, 2, 2]) == pass_rate([1, 1], [1, 1])


def test_a_family_list_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cases have a family but 2 have trials"):
        pass_rate([1, 1], [1, 1], ["a"])


def test_undecided_trials_widen_the_bounds() -> None:
    # 4 of 6 planned trials decided, 3 of them passed: between 3/6 and 5/6, case by case.
    found = pass_rate_bounds([2, 1], [2, 2], [3, 3])
    worst, best = pass_rate([2, 1], [3, 3]), pass_rate([3, 2], [3, 3])
    assert found == Bounds(worst=near(0.5), best=near(5 / 6), low=worst.low, high=best.high)


def test_a_case_without_any_decided_trial_still_widens_the_bounds() -> None:
    assert pass_rate_bounds([1, 0], [1, 0], [1, 1]) == Bounds(0.5, 1.0, wilson(0.5, 2, Z)[0], 1.0)


def test_nothing_planned_has_no_bounds() -> None:
    assert pass_rate_bounds([], [], []) == Bounds(None, None, None, None)


def test_more_decided_than_planned_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="case 1 has 3 decided of 2 planned trials"):
        pass_rate_bounds([1, 1], [1, 3], [2, 2])


def test_pass_hat_k_counts_the_cases_that_it_drops() -> None:
    assert pass_hat_k([2, 1, 0], [2, 1, 0], 2) == RateOfK(k=2, rate=pass_rate([1], [1]), cases=1, dropped=1)


@pytest.mark.parametrize(("k", "function", "name"), [(4, pass_at_k, "pass@k"), (0, pass_hat_k, r"pass\^k")])
def test_a_k_beyond_the_repeats_is_refused(k: int, function: Any, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        function([3, 1], [3, 2], k)
    name = name.replace("\\", "")
    assert str(caught.value) == (
        f"{name} with k = {k} cannot be estimated: no case has more than 3 decided trials\n\n"
        "hint: ask for a k from 1 to 3, or run with more repeats"
    )


def test_of_nothing_no_k_can_be_told() -> None:
    nothing = Rate(value=None, low=None, high=None)
    assert pass_at_k([0], [0], 2) == RateOfK(k=2, rate=nothing, cases=0, dropped=0)


@given(st.integers(1, 12), st.data())
def test_of_k_trials_all_pass_no_oftener_than_one_and_one_no_oftener_than_any(
    repeats: int, data: st.DataObject
) -> None:
    passes = data.draw(st.lists(st.integers(0, repeats), min_size=1, max_size=8))
    k = data.draw(st.integers(1, repeats))
    decided = [repeats] * len(passes)
    every, one, some = pass_hat_k(passes, decided, k), pass_rate(passes, decided), pass_at_k(passes, decided, k)
    fails = [repeats - c for c in passes]
    assert every.rate.value is not None
    assert one.value is not None
    assert some.rate.value is not None
    assert every.rate.value - 1e-12 <= one.value <= some.rate.value + 1e-12
    all_fail = pass_hat_k(fails, decided, k).rate.value
    assert some.rate.value == near(1 - all_fail) if all_fail is not None else False
    brute = [math.comb(c, k) / math.comb(repeats, k) for c in passes]
    assert every.rate.value == near(sum(brute) / len(brute))


@given(cases())
def test_a_family_of_its_own_for_every_case_changes_nothing(counts: tuple[list[int], list[int]]) -> None:
    assert pass_rate(*counts, list(range(len(counts[0])))) == pass_rate(*counts)


@given(cases(), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_bounds_hold_the_decided_rate_of_equally_planned_cases(
    counts: tuple[list[int], list[int]], lost: list[int]
) -> None:
    passes, decided = counts
    planned = [r + more for r, more in zip(decided, lost, strict=False)]
    found = pass_rate_bounds(passes, decided, planned)
    if found.worst is not None:
        assert found.best is not None
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.worst <= found.best <= found.high <= 1


@given(cases(most=6), st.data())
def test_one_more_pass_never_lowers_the_rate(counts: tuple[list[int], list[int]], data: st.DataObject) -> None:
    passes, decided = counts
    room = [at for at, (c, r) in enumerate(zip(passes, decided, strict=True)) if c < r]
    if room:
        at = data.draw(st.sampled_from(room))
        better = [c + (place == at) for place, c in enumerate(passes)]
        before, after = pass_rate(passes, decided).value, pass_rate(better, decided).value
        assert before is not None
        assert after is not None
        assert after > before
