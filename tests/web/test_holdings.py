"""What is held of a store: copied once, scored where nobody did, and brought up to date when something changed."""

from pathlib import Path
from typing import Any

import pytest

from evalfarm.cli.conversations.scoring import read_subject
from evalfarm.errors import StoreUnavailable
from evalfarm.objects import Objects


def told(farm: Any) -> list[tuple[str, bool, bool, str]]:
    return [(held.name, held.finished, held.scored, held.trouble) for held in farm.holdings.seen.sources]


def test_a_finished_run_is_scored_once_and_one_at_work_is_not(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.add_run("shop-2", sealed=False, started_at=farm.clock() + 1)
    for _ in range(2):
        farm.holdings.look()
        assert told(farm) == [("shop-2", False, False, ""), ("shop-1", True, True, "")]
    assert farm.scored == ["shop-1"]


def test_rows_that_the_store_has_are_not_made_again(farm: Any) -> None:
    farm.add_run("shop-1")
    read_subject(farm.store, "shop-1")
    farm.holdings.look()
    assert (farm.scored, told(farm)) == ([], [("shop-1", True, True, "")])


def test_rows_from_before_a_run_s_end_are(farm: Any) -> None:
    farm.add_run("shop-1", sealed=False)
    read_subject(farm.store, "shop-1")
    farm.holdings.look()
    assert told(farm) == [("shop-1", False, False, "")]
    plan = farm.store.get_plan("shop-1")
    farm.seal(plan)
    farm.holdings.look()
    assert (farm.scored, told(farm)) == (["shop-1"], [("shop-1", True, True, "")])


def test_what_changed_is_copied_anew_and_the_old_copy_goes_a_look_later(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.holdings.look()
    (before,) = farm.holdings.seen.sources
    read_subject(farm.store, "shop-1")
    farm.holdings.look()
    (after,) = farm.holdings.seen.sources
    assert before.stamp != after.stamp
    assert (before.folder.exists(), after.folder.exists()) == (True, True)
    farm.holdings.look()
    assert (before.folder.exists(), after.folder.exists()) == (False, True)
    assert farm.holdings.seen.sources == (after,)


def test_what_the_rules_disagree_on_is_told_and_not_tried_again_and_again(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.refused.add("shop-1")
    for _ in range(2):
        farm.holdings.look()
        assert told(farm) == [("shop-1", True, False, "it cannot be scored")]
    assert farm.scored == ["shop-1"]
    assert [held.name for held in farm.holdings.seen.waiting] == ["shop-1"]


def test_a_store_that_fails_leaves_what_was_seen(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.holdings.look()
    seen = farm.holdings.seen
    (Path(farm.folder) / "store/runs/shop-2").mkdir()
    (Path(farm.folder) / "store/runs/shop-2/manifest.json").write_text("{")
    with pytest.raises(StoreUnavailable):
        farm.holdings.look()
    assert farm.holdings.seen is seen


def test_a_run_that_was_deleted_is_held_no_more_and_the_others_are(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.add_run("shop-2", started_at=farm.clock() + 1)
    farm.holdings.look()
    farm.store.delete_run("shop-2")
    farm.holdings.look()
    assert told(farm) == [("shop-1", True, True, "")]


def test_a_run_that_is_being_deleted_is_left_out(farm: Any) -> None:
    farm.add_run("shop-1")
    plan = farm.add_run("shop-2", started_at=farm.clock() + 1)
    (Path(farm.folder) / "store/runs/shop-2/plan.json").unlink()
    (Path(farm.folder) / "store/runs/shop-2/summary.json").unlink()
    farm.holdings.look()
    assert told(farm) == [("shop-1", True, True, "")]
    farm.store.put_plan(plan)
    farm.seal(plan)
    farm.holdings.look()
    assert told(farm) == [("shop-2", True, True, ""), ("shop-1", True, True, "")]


def test_a_stamp_changes_with_every_write_and_a_copy_is_whole(tmp_path: Path) -> None:
    objects = Objects(f"file://{tmp_path}/store")
    assert (objects.stamp("a"), objects.save("a", tmp_path / "x")) == (None, False)
    objects.write("a", b"1" * 3_000_000, create=False)
    first = objects.stamp("a")
    objects.write("a", b"2" * 3_000_001, create=False)
    second = objects.stamp("a")
    assert first is not None
    assert second is not None
    assert (first.tag != second.tag, first.written_at <= second.written_at) == (True, True)
    assert objects.save("a", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"2" * 3_000_001
