import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.arms import (
    Pairing,
    Square,
    arms_of,
    axes_between,
    chosen,
    common_cases,
    counts_of,
    families_of,
    figures_of,
    label_table,
    pairs_between,
    pairs_within,
    slices_of,
    squares,
)
from tests.made_runs import CODEX, DIRECT, GUIDED, LOOP, OTHER, OTHER_CODEX, made_case, made_run

names = st.builds(
    ArmName,
    model=st.sampled_from(["a", "b", "none"]),
    harness=st.sampled_from(["direct", "loop", "codex"]),
    variant=st.sampled_from(["plain", "guided"]),
)
arm_lists = st.lists(names, unique=True, max_size=8)


def test_an_arm_is_written_without_a_model_where_none_takes_part() -> None:
    assert [str(LOOP), str(DIRECT)] == ["m · loop · plain", "direct · plain"]


def test_an_arm_of_rows_is_written_without_what_they_do_not_name() -> None:
    assert [str(ArmName("m", "-", "-")), str(ArmName("-", "-", "-"))] == ["m", "all trials"]


def test_arms_come_in_the_order_of_the_summary_each_with_its_own_cases() -> None:
    summary = made_run("r", made_case("a", LOOP, 1, 3), made_case("a", GUIDED, 2, 3), made_case("b", LOOP, 3, 3))
    assert {name: list(arm.cases) for name, arm in arms_of(summary).items()} == {LOOP: ["a", "b"], GUIDED: ["a"]}


def test_arms_are_chosen_by_their_values_on_every_axis() -> None:
    arms = arms_of(made_run("r", *(made_case("a", arm, 1, 3) for arm in (LOOP, GUIDED, CODEX, OTHER, DIRECT))))
    assert list(chosen(arms, {})) == [LOOP, GUIDED, CODEX, OTHER, DIRECT]
    assert list(chosen(arms, {"model": ("m",), "variant": ("plain",), "harness": ()})) == [LOOP, CODEX]


def test_an_arm_without_a_model_differs_from_one_with_a_model_in_its_harness_alone() -> None:
    assert axes_between(DIRECT, LOOP) == ("harness",)
    assert axes_between(LOOP, OTHER) == ("model",)
    assert axes_between(GUIDED, OTHER_CODEX) == ("model", "harness", "variant")
    assert axes_between(LOOP, LOOP) == ()


def test_within_a_run_arms_are_paired_that_differ_on_one_axis() -> None:
    assert pairs_within([LOOP, GUIDED, CODEX]) == (
        Pairing(LOOP, GUIDED, ("variant",)),
        Pairing(LOOP, CODEX, ("harness",)),
    )


def test_within_a_run_of_arms_that_differ_on_several_axes_all_are_paired() -> None:
    assert pairs_within([GUIDED, OTHER]) == (Pairing(GUIDED, OTHER, ("model", "variant")),)


def test_between_runs_equal_arms_are_paired_first() -> None:
    assert pairs_between([LOOP, CODEX], [CODEX, LOOP]) == (Pairing(LOOP, LOOP, ()), Pairing(CODEX, CODEX, ()))


def test_between_runs_of_two_models_the_same_harnesses_are_paired() -> None:
    assert pairs_between([DIRECT, LOOP, CODEX], [DIRECT, OTHER, OTHER_CODEX]) == (
        Pairing(DIRECT, DIRECT, ()),
        Pairing(LOOP, OTHER, ("model",)),
        Pairing(CODEX, OTHER_CODEX, ("model",)),
    )


def test_where_an_arm_has_a_choice_of_partners_none_is_made_for_it() -> None:
    third = ArmName("o", "loop", "plain")
    assert pairs_between([LOOP], [OTHER, third]) == ()


def test_the_last_arm_of_each_run_is_paired_whatever_it_is() -> None:
    assert pairs_between([LOOP], [OTHER_CODEX]) == (Pairing(LOOP, OTHER_CODEX, ("model", "harness")),)


@given(arm_lists, arm_lists)
def test_no_arm_is_paired_twice_between_runs(left: list[ArmName], right: list[ArmName]) -> None:
    pairs = pairs_between(left, right)
    assert len({pair.baseline for pair in pairs}) == len({pair.candidate for pair in pairs}) == len(pairs)
    assert all(pair.axes == axes_between(pair.baseline, pair.candidate) for pair in pairs)
    assert {name for name in left if name in right} == {pair.baseline for pair in pairs if not pair.axes}


def test_a_square_is_two_arms_under_two_harnesses() -> None:
    assert squares([LOOP, GUIDED, OTHER, CODEX, OTHER_CODEX]) == (Square("model", (LOOP, OTHER), (CODEX, OTHER_CODEX)),)
    assert squares([LOOP, CODEX, GUIDED]) == ()


def test_counts_are_aligned_with_the_list_of_cases_and_zero_where_the_arm_has_none() -> None:
    summary = made_run("r", made_case("a", LOOP, 1, 3, planned=4), made_case("b", LOOP, 2, 2))
    counts = counts_of(arms_of(summary)[LOOP], ["b", "z", "a"])
    assert [counts.passed.tolist(), counts.decided.tolist(), counts.planned.tolist()] == [
        [2, 0, 1],
        [2, 0, 3],
        [2, 0, 4],
    ]


def test_common_cases_are_those_of_every_arm_in_the_order_of_the_first() -> None:
    summary = made_run(
        "r", *(made_case(case, LOOP, 1, 1) for case in "bac"), *(made_case(case, GUIDED, 1, 1) for case in "cbd")
    )
    assert common_cases(list(arms_of(summary).values())) == ("b", "c")


def test_families_are_named_where_one_case_has_one() -> None:
    alone, kin = made_case("a", LOOP, 1, 1), made_case("b", LOOP, 1, 1, family="a")
    assert families_of([alone]) is None
    assert families_of([alone, kin]) == ("case a", "family a")


def test_a_figure_that_was_not_reported_is_missing_and_not_zero() -> None:
    summary = made_run("r", made_case("a", LOOP, 1, 1, latency_s=2.5), made_case("b", LOOP, 1, 1))
    found = figures_of(arms_of(summary)[LOOP], "latency_s", ["a", "b", "z"])
    assert found[0] == 2.5
    assert [math.isnan(value) for value in found[1:]] == [True, True]


def test_the_label_table_keeps_what_was_not_decided_apart() -> None:
    summary = made_run("r", made_case("a", LOOP, 1, 2, planned=3), made_case("b", LOOP, 1, 1))
    table = label_table(arms_of(summary)[LOOP])
    assert np.array_equal(table, [[1, 0, np.nan], [1, np.nan, np.nan]], equal_nan=True)


def test_slices_name_the_places_of_their_cases() -> None:
    tagged = [("a", {"kind": "x"}), ("b", {"kind": "y", "size": "s"}), ("c", {"kind": "x"})]
    arm = arms_of(made_run("r", *(made_case(case, LOOP, 1, 1, tags=tags) for case, tags in tagged)))[LOOP]
    assert slices_of(arm, ["c", "b", "a"]) == {"kind=x": (0, 2), "kind=y": (1,), "size=s": (1,)}


@pytest.mark.parametrize("arms", [[], [LOOP]])
def test_fewer_than_two_arms_make_no_pair(arms: list[ArmName]) -> None:
    assert pairs_within(arms) == ()
