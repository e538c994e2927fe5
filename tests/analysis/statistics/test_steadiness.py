import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.of_k import RateOfK
from evalfarm.analysis.statistics.stats import Estimate, flip_rate, pass_rate
from evalfarm.analysis.statistics.steadiness import (
    RepeatSpread,
    disagreement,
    intraclass_correlation,
    label_disagreement,
    rarefied_flip_rate,
    repeat_spread,
)
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import UsageError

NOTHING = Rate(value=None, low=None, high=None)


@st.composite
def cases(draw: st.DrawFn, *, least: int = 0, most: int = 9) -> tuple[list[int], list[int]]:
    decided = draw(st.lists(st.integers(least, most), min_size=1, max_size=10))
    return [draw(st.integers(0, r)) for r in decided], decided


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-9, rel=0)


def published_labels() -> np.ndarray[Any, np.dtype[np.float64]]:
    """108 cases × 3 repeats: 83 always passed, 2 never, 23 flipped; 95, 96 and 93 passes in the repeats."""
    missed_once = [0] * 5 + [1] * 3 + [2] * 4
    passed_once = [0] * 5 + [1] * 4 + [2] * 2
    flipping = [[float(run != at) for run in range(3)] for at in missed_once]
    flipping += [[float(run == at) for run in range(3)] for at in passed_once]
    return np.array([[1.0] * 3] * 83 + flipping + [[0.0] * 3] * 2)


def test_the_published_study_is_rerun_noise_and_no_more() -> None:
    labels = published_labels()
    passes, decided = labels.sum(axis=1), np.full(108, 3)
    flips, d, spread = flip_rate(passes, decided), disagreement(passes, decided), repeat_spread(labels)
    assert flips.value is not None
    assert d.value is not None
    assert d.low is not None
    assert d.high is not None
    assert [f"{rate:.2f}" for rate in spread.rates] == ["0.88", "0.89", "0.86"]
    assert (f"{flips.value:.1%}", flips.flipped, flips.cases, flips.repeats) == ("21.3%", 23, 108, 3)
    assert [f"{end:.1%}" for end in (d.value, d.low, d.high)] == ["14.2%", "9.8%", "20.2%"]
    assert spread.more_than_noise is False


def test_what_was_published_fixes_the_disagreement_whatever_the_split_of_the_flips() -> None:
    for twice in range(24):
        passes = [3] * 83 + [2] * twice + [1] * (23 - twice) + [0] * 2
        assert disagreement(passes, [3] * 108).model_dump() == near_rate(
            disagreement(published_labels().sum(axis=1), [3] * 108)
        )


def near_rate(rate: Rate) -> Any:
    return pytest.approx(rate.model_dump(), abs=1e-12)


def test_an_outage_in_one_repeat_is_more_than_noise() -> None:
    labels = np.ones((40, 3))
    labels[:12, 1] = 0
    spread = repeat_spread(labels)
    assert (spread.q, spread.more_than_noise) == (near(24.0), True)
    assert (spread.lowest, spread.highest, spread.cases) == (0.7, 1.0, 40)


def test_repeats_that_never_differ_are_alike() -> None:
    spread = repeat_spread([[1, 1], [0, 0]])
    assert (spread.q, spread.p, spread.more_than_noise, spread.sd_observed) == (0.0, 1.0, False, 0.0)


def test_only_cases_decided_in_every_repeat_enter_the_spread() -> None:
    assert repeat_spread(np.array([[1, 0], [np.nan, 1], [1, 1]])) == repeat_spread([[1, 0], [1, 1]])


@pytest.mark.parametrize(("labels", "rates"), [([[1], [0]], (0.5,)), ([[np.nan, 1.0]], ())])
def test_one_repeat_and_no_whole_case_have_no_spread(labels: list[list[float]], rates: tuple[float, ...]) -> None:
    assert repeat_spread(labels) == RepeatSpread(
        rates=rates,
        cases=len(labels) if rates else 0,
        lowest=min(rates, default=None),
        highest=max(rates, default=None),
        sd_observed=None,
        sd_one_run=Estimate(None, None, None),
        q=None,
        p=None,
    )
    assert repeat_spread(labels).more_than_noise is None


def test_without_repeats_nothing_is_known_of_disagreement() -> None:
    assert disagreement([1, 0], [1, 1]) == disagreement([], []) == label_disagreement(np.zeros((2, 3))) == NOTHING
    assert intraclass_correlation([1, 0], [1, 1]) is None
    assert intraclass_correlation([2, 2], [2, 2]) is None
    assert intraclass_correlation([1], [2]) is None


def test_cases_that_always_end_alike_are_perfectly_correlated() -> None:
    assert intraclass_correlation([3, 0, 3, 0], [3, 3, 3, 3]) == near(1.0)


def test_inconclusive_labels_disagree_with_decided_ones() -> None:
    assert label_disagreement([[1, 0, 1]]).value == 1.0


def test_a_case_of_fewer_repeats_is_dropped_from_the_rarefied_rate() -> None:
    assert rarefied_flip_rate([1, 1, 0], [3, 2, 0], 3) == RateOfK(3, pass_rate([1], [1]), cases=1, dropped=1)


def test_the_flip_rate_beyond_the_repeats_is_refused() -> None:
    with pytest.raises(UsageError, match="the flip rate with k = 4 cannot be estimated: no case has more than 3"):
        rarefied_flip_rate([1], [3], 4)


@given(cases(least=3))
def test_the_disagreement_is_the_rarefied_rate_of_two_and_two_thirds_of_that_of_three(
    counts: tuple[list[int], list[int]],
) -> None:
    d, two, three = disagreement(*counts), rarefied_flip_rate(*counts, 2), rarefied_flip_rate(*counts, 3)
    assert d.value is not None
    assert two.rate.value == near(d.value)
    assert three.rate.value == near(1.5 * d.value)
    assert rarefied_flip_rate(*counts, 1).rate.value == 0


@given(st.integers(2, 9), st.data())
def test_at_k_of_all_repeats_the_rarefied_rate_is_the_observed_one(repeats: int, data: st.DataObject) -> None:
    passes = data.draw(st.lists(st.integers(0, repeats), min_size=1, max_size=10))
    decided = [repeats] * len(passes)
    observed = flip_rate(passes, decided)
    assert rarefied_flip_rate(passes, decided, repeats).rate == Rate(
        value=observed.value, low=observed.low, high=observed.high
    )


@given(st.integers(3, 9), st.data())
def test_more_repeats_never_show_fewer_flips(repeats: int, data: st.DataObject) -> None:
    passes = data.draw(st.lists(st.integers(0, repeats), min_size=1, max_size=10))
    shown = [rarefied_flip_rate(passes, [repeats] * len(passes), k).rate.value or 0.0 for k in range(1, repeats + 1)]
    assert all(fewer <= more + 1e-12 for fewer, more in itertools.pairwise(shown))


@given(cases())
def test_swapping_pass_and_fail_leaves_the_disagreement(counts: tuple[list[int], list[int]]) -> None:
    passes, decided = counts
    assert disagreement([r - c for c, r in zip(passes, decided, strict=True)], decided).model_dump() == near_rate(
        disagreement(passes, decided)
    )


@given(cases(least=2))
def test_the_interval_holds_the_disagreement(counts: tuple[list[int], list[int]]) -> None:
    d = disagreement(*counts)
    assert d.value is not None
    assert d.low is not None
    assert d.high is not None
    assert 0 <= d.low <= d.value <= d.high <= 1
    assert d.high > d.low


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8), st.permutations(range(3)))
def test_the_order_of_repeats_and_a_case_that_never_varies_leave_q_as_it_is(
    labels: list[list[bool]], order: list[int]
) -> None:
    table = np.array(labels, dtype=float)
    q = repeat_spread(table).q
    assert q is not None
    assert repeat_spread(table[:, order]).q == near(q)
    assert repeat_spread(np.vstack([table, np.ones(3)])).q == near(q)
