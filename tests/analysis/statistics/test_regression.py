from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import figure_change
from evalfarm.analysis.statistics.paired import CaseCounts, case_counts
from evalfarm.analysis.statistics.regression import (
    Dispersion,
    NightlyRule,
    Suspect,
    dispersion,
    judge_night,
    pooled,
    regressed_among,
    rose,
    suspects,
)
from evalfarm.analysis.statistics.steadiness import repeat_spread


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-9)


def night(passed: list[int], repeats: int = 3, planned: int | None = None) -> CaseCounts:
    of = [repeats] * len(passed)
    return case_counts(passed, of, None if planned is None else [planned] * len(passed))


STEADY = [3] * 16 + [2, 1, 2, 3]
NIGHTS = [night(STEADY)] * 3 + [night([3] * 16 + [1, 2, 3, 2])] * 4
BROKEN = [0] * 4 + STEADY[4:]


def fresh(passed: list[int]) -> CaseCounts:
    """A confirm run of six repeats that does as a night of three did, twice."""
    return night([2 * c for c in passed], 6)


def test_a_night_like_the_others_held() -> None:
    found = judge_night(NIGHTS, night(STEADY))
    assert (found.verdict, found.nights, found.p_confirm) == ("held", 7, None)
    assert found.reason == f"no change (p = {found.p_screen:.2g})"


def test_a_small_drop_is_told_as_what_a_rerun_does() -> None:
    found = judge_night(NIGHTS, night([2, *STEADY[1:]]))
    assert found.reason == f"a drop of 1.7 points, which is no more than a rerun does (p = {found.p_screen:.2g})"


def test_a_drop_is_confirmed_by_fresh_repeats_before_it_alerts() -> None:
    screened = judge_night(NIGHTS, night(BROKEN))
    assert screened.verdict == "to confirm"
    p = f"p = {screened.p_screen:.2g}"
    assert screened.reason == f"a drop of 20.0 points ({p}): 6 fresh repeats of every case decide"
    alerted = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN))
    assert (alerted.verdict, alerted.tonight.decided[0]) == ("regressed", 9)
    assert alerted.reason == f"a drop of 20.0 points, confirmed (p = {alerted.p_confirm:.2g})"
    healed = judge_night(NIGHTS, night([*STEADY[:-2], 0, 0]), fresh(STEADY))
    assert healed.verdict == "held"


def test_one_fresh_repeat_decides_and_two_decide() -> None:
    told = [judge_night(NIGHTS, night(BROKEN), rule=NightlyRule(confirm_repeats=count)).reason for count in (1, 2)]
    assert [reason.partition(": ")[2] for reason in told] == [
        "1 fresh repeat of every case decides",
        "2 fresh repeats of every case decide",
    ]


def test_a_confirmed_drop_below_the_least_one_held() -> None:
    found = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN), NightlyRule(least_drop=0.5))
    assert found.verdict == "held"
    assert found.reason.endswith("but less than the 50 points that alert")


def test_a_better_night_is_told_for_information() -> None:
    found = judge_night([night([1] * 20)] * 6, night([3] * 20))
    assert (found.verdict, found.reason[:21]) == ("improved", "a rise of 66.7 points")


@pytest.mark.parametrize(
    ("accepted", "tonight", "reason"),
    [
        ([], night(STEADY), "the baseline has 0 accepted nights; 5 are needed"),
        (NIGHTS[:1], night(STEADY), "the baseline has 1 accepted night; 5 are needed"),
        (NIGHTS[:4], night(STEADY), "the baseline has 4 accepted nights; 5 are needed"),
        (NIGHTS, night(STEADY, planned=4), "25.0% of tonight's trials were not decided; at most 5% may be"),
        (NIGHTS, case_counts([0] * 20, [0] * 20), "no case was decided both tonight and in the baseline"),
        (
            [night([24] * 20, 25)] * 9,
            case_counts([24] * 20, [24] * 20, [25] * 20),
            "tonight 4.0% of the trials were not decided, in the baseline 0.0%",
        ),
    ],
)
def test_without_comparable_nights_nothing_is_said(
    accepted: list[CaseCounts], tonight: CaseCounts, reason: str
) -> None:
    found = judge_night(accepted, tonight)
    assert (found.verdict, found.reason, found.p_screen) == ("inconclusive", reason, None)


def test_only_the_last_accepted_nights_are_the_baseline() -> None:
    old = [night([0] * 20)] * 5
    found = judge_night(old + NIGHTS, night(STEADY), rule=NightlyRule(most_nights=7))
    assert (found.nights, found.p_screen) == (7, judge_night(NIGHTS, night(STEADY)).p_screen)


def test_nights_that_differ_by_more_than_reruns_raise_the_bar() -> None:
    swinging = [night([2] * 20), night([3] * 20)] * 4
    spread = dispersion(swinging)
    assert spread.factor > 2
    assert spread.p < 0.05
    calm = judge_night([night([2, 3] * 10), night([3, 2] * 10)] * 4, night([2] * 20))
    wide = judge_night(swinging, night([2] * 20))
    assert calm.p_screen is not None
    assert wide.p_screen is not None
    assert wide.p_screen > calm.p_screen


@pytest.mark.parametrize("nights", [[], [night(STEADY)], [night([3, 0])] * 4])
def test_one_night_and_nights_that_never_vary_have_no_dispersion(nights: list[CaseCounts]) -> None:
    assert dispersion(nights) == Dispersion(1.0, 0.0, 1.0)


def test_several_configurations_are_corrected_for_their_number() -> None:
    alerted, held = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN)), judge_night(NIGHTS, night(STEADY))
    assert regressed_among([held, alerted, held]) == (False, True, False)
    small = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN))
    assert regressed_among([small], NightlyRule(least_drop=0.5)) == (False,)
    assert regressed_among([]) == ()


def test_an_alert_names_the_slice_and_the_cases_that_broke() -> None:
    alerted = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN))
    found = suspects(alerted, {"sound": range(10, 20), "broken": range(5)})
    assert [(suspect.name, suspect.named) for suspect in found] == [("broken", True), ("sound", False)]
    assert found[0].change == near(-0.8)
    cases = suspects(alerted, {f"case-{at}": [at] for at in range(20)})
    assert [suspect.name for suspect in cases if suspect.named] == [f"case-{at}" for at in range(4)]


def test_without_an_alert_nobody_is_suspected() -> None:
    assert suspects(judge_night(NIGHTS, night(BROKEN)), {"broken": range(5)}) == ()


def test_a_slice_without_cases_is_no_suspect() -> None:
    alerted = judge_night(NIGHTS, night(BROKEN), fresh(BROKEN))
    assert suspects(alerted, {"nothing": []}) == (Suspect("nothing", None, 1.0, 1.0, named=False),)


def test_pooled_runs_count_every_trial() -> None:
    found = pooled([case_counts([1, 0], [2, 1], [3, 3]), case_counts([1, 1], [1, 1])])
    assert [list(counts) for counts in (found.passed, found.decided, found.planned)] == [[2, 1], [3, 2], [4, 4]]


def test_a_figure_rose_if_it_did_so_by_much_and_surely() -> None:
    before = np.arange(1.0, 21)
    assert rose(figure_change(before, before * 1.3))
    assert not rose(figure_change(before, before * 1.1))
    assert not rose(figure_change(before, before / 2))
    assert not rose(figure_change([1.0], [5.0]))


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=10))
def test_with_one_repeat_a_night_the_dispersion_is_cochrans_q(labels: list[list[bool]]) -> None:
    table = np.array(labels, dtype=float)
    found, spread = dispersion([night(list(table[:, at].astype(int)), 1) for at in range(3)]), repeat_spread(table)
    assert (found.q, found.p) == (near(spread.q or 0.0), near(1.0 if spread.p is None else spread.p))


@given(st.lists(st.integers(0, 3), min_size=20, max_size=20), st.integers(0, 19))
def test_one_more_pass_never_raises_the_alarm(passed: list[int], at: int) -> None:
    better = list(passed)
    better[at] = min(3, better[at] + 1)
    worse_p, better_p = (judge_night(NIGHTS, night(one)).p_screen for one in (passed, better))
    assert worse_p is not None
    assert better_p is not None
    assert better_p >= worse_p - 1e-12


@given(st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_what_held_is_not_held_against_it_by_a_confirm_run_that_was_not_asked_for(passed: list[int]) -> None:
    alone = judge_night(NIGHTS, night(passed))
    confirmed = judge_night(NIGHTS, night(passed), fresh(passed))
    if alone.verdict in ("held", "improved"):
        assert confirmed.verdict in ("held", "improved")
    else:
        assert confirmed.verdict in ("held", "regressed")
