import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import QueueName
from evalfarm.runstate import Load
from scheduler.shares import DEPTH_PER_SLOT, fair_room, reserved

EMPTY: Mapping[QueueName, int] = {"interactive": 0, "nightly": 0}


def load(
    run: str,
    queue: QueueName = "interactive",
    *,
    left: int = 100,
    handed_out: int = 0,
    at_work: int = 0,
    together: int = 1,
) -> Load:
    return Load(run, queue, left, handed_out, at_work, together)


@pytest.mark.parametrize(("slots", "kept"), [(1, 0), (2, 1), (10, 1), (11, 2), (64, 7)])
def test_a_tenth_of_the_slots_is_kept_from_nightly_runs_and_at_least_one(slots: int, kept: int) -> None:
    assert reserved(slots) == kept
    assert fair_room("n", [load("n", "nightly")], EMPTY, slots) == slots - kept


def test_an_interactive_run_alone_fills_the_queue_a_quarter_deeper_than_the_slots() -> None:
    assert fair_room("a", [load("a")], EMPTY, 8) == 10
    assert fair_room("a", [load("a", at_work=8)], {**EMPTY, "interactive": 7}, 8) == 3


def test_where_both_wait_interactive_runs_get_four_slots_of_five() -> None:
    both = [load("a"), load("n", "nightly")]
    assert [fair_room(run, both, EMPTY, 10) for run in ("a", "n")] == [8, 2]
    busy = [load("a", at_work=5), load("n", "nightly", at_work=2)]
    assert [fair_room(run, busy, EMPTY, 10) for run in ("a", "n")] == [3, 0]


def test_a_run_with_nothing_to_hand_out_keeps_nobody_from_a_slot() -> None:
    both = [load("a", left=0, at_work=3), load("n", "nightly")]
    assert fair_room("n", both, EMPTY, 10) == 9


def test_runs_of_one_queue_share_its_room() -> None:
    assert [fair_room(run, [load("a"), load("b"), load("c", left=0)], EMPTY, 8) for run in "abc"] == [5, 5, 5]


def test_trials_that_travel_together_take_one_slot() -> None:
    nightly = [load("n", "nightly", at_work=33, together=16)]
    assert fair_room("n", nightly, EMPTY, 8) == 7 - 3


@pytest.mark.parametrize("slots", [0, 4])
def test_without_slots_and_for_a_run_that_is_not_open_there_is_no_room(slots: int) -> None:
    assert fair_room("gone", [load("a")] if slots else [load("gone")], EMPTY, slots) == 0


LOADS = st.builds(
    Load,
    run=st.sampled_from("abcdef"),
    queue=st.sampled_from(("interactive", "nightly")),
    open=st.integers(0, 50),
    handed_out=st.integers(0, 20),
    at_work=st.integers(0, 20),
    together=st.sampled_from((1, 16)),
)


@given(
    loads=st.lists(LOADS, max_size=6, unique_by=lambda one: one.run),
    slots=st.integers(0, 40),
    interactive=st.integers(0, 60),
    nightly=st.integers(0, 60),
)
def test_no_queue_grows_beyond_its_depth_and_nightly_runs_never_beyond_what_is_theirs(
    loads: list[Load], slots: int, interactive: int, nightly: int
) -> None:
    waiting: dict[QueueName, int] = {"interactive": interactive, "nightly": nightly}
    for one in loads:
        room = fair_room(one.run, loads, waiting, slots)
        assert 0 <= room <= max(0, math.ceil(DEPTH_PER_SLOT * slots) - waiting[one.queue])
        if one.queue == "nightly" and room and slots > 1:
            at_work = sum(math.ceil(peer.at_work / peer.together) for peer in loads if peer.queue == "nightly")
            assert nightly + at_work + room <= slots - reserved(slots)
