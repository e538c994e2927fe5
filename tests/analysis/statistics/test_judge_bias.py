import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalfarm.analysis.statistics.judge_bias import at_most, even_odds, rank_shift


def test_fifty_nine_without_a_miss_show_five_percent_and_fifty_eight_do_not() -> None:
    assert at_most(0, 58) == pytest.approx(1 - 0.05 ** (1 / 58))
    assert (at_most(0, 58) or 1) > 0.05 >= (at_most(0, 59) or 1)


@given(st.integers(1, 200), st.data())
def test_the_upper_limit_is_the_rate_at_which_so_few_hits_are_a_one_in_twenty_chance(
    of: int, data: st.DataObject
) -> None:
    hits = data.draw(st.integers(0, of - 1))
    limit = at_most(hits, of)
    assert limit is not None
    assert stats.binom.cdf(hits, of, limit) == pytest.approx(0.05, rel=1e-6)


def test_the_limit_of_all_is_one_and_of_nothing_is_not_known() -> None:
    assert (at_most(3, 3), at_most(0, 0)) == (1.0, None)


@given(st.integers(1, 60), st.data())
def test_even_odds_is_the_exact_two_sided_test_of_a_fair_coin(of: int, data: st.DataObject) -> None:
    wins = data.draw(st.integers(0, of))
    assert even_odds(wins, of) == pytest.approx(stats.binomtest(wins, of).pvalue)


def test_nothing_thrown_says_nothing() -> None:
    assert even_odds(0, 0) is None


def test_with_one_stratum_it_is_the_rank_sum_test() -> None:
    values, marked = [5, 9, 12, 15, 20, 22, 30], [False, False, True, False, True, True, True]
    chance, p = rank_shift(values, marked, ["x"] * 7)
    chosen = [v for v, m in zip(values, marked, strict=True) if m]
    others = [v for v, m in zip(values, marked, strict=True) if not m]
    reference = stats.mannwhitneyu(chosen, others, alternative="greater", method="asymptotic", use_continuity=False)
    assert chance == pytest.approx(reference.statistic / (len(chosen) * len(others)))
    assert p == pytest.approx(reference.pvalue)


def test_a_stratum_that_was_judged_alike_says_nothing() -> None:
    assert rank_shift([1, 2, 3], [True, True, True], ["a"] * 3) == (None, None)
    mixed = rank_shift([1, 2, 3, 50, 60], [False, True, True, True, True], ["a", "a", "a", "b", "b"])
    assert mixed == rank_shift([1, 2, 3], [False, True, True], ["a"] * 3)


def test_values_that_are_all_equal_have_no_p() -> None:
    assert rank_shift([4, 4, 4], [True, False, True], ["a"] * 3) == (0.5, None)


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans(), st.sampled_from("ab")), max_size=30))
def test_the_other_direction_has_the_other_tail(rows: list[tuple[int, bool, str]]) -> None:
    values, marked, strata = ([row[at] for row in rows] for at in range(3))
    chance, p = rank_shift(values, marked, strata)
    other_chance, other_p = rank_shift(values, [not one for one in marked], strata)
    if chance is None or p is None:
        assert (other_chance is None) == (chance is None)
        return
    assert (other_chance, other_p) == (pytest.approx(1 - chance), pytest.approx(1 - p))
    assert math.isfinite(p)
