"""The plugins that are patched on a machine: kept whole, standing or not, and put back."""

import threading
from pathlib import Path

import pytest

from evalfarm.errors import InfrastructureError, UnknownName, UsageError
from evalfarm.patches import Installed, Patch, Patches, PluginTree, TreeFile

FIRST = PluginTree({"a.md": TreeFile(b"one"), "bin/go": TreeFile(b"go", program=True)})
SECOND = PluginTree({"a.md": TreeFile(b"two")})
INSTALLED = Installed(home="h", stamp_ns=1, codex="0.1.0", isolation="cell")


def patch(tree: PluginTree, plugin: str = "Shop") -> Patch:
    return Patch(
        plugin=plugin,
        version="1.1.0",
        digest=tree.digest,
        files=tree.contents,
        source="/somewhere/plugin",
        patched_at=1.0,
        installed=INSTALLED,
    )


def kept(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "patches/Shop").iterdir())


def test_what_is_kept_stands_only_when_it_is_told_to_and_comes_back_as_it_was(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    assert (patches.all(), patches.standing("Shop")) == ([], None)
    assert not (tmp_path / "patches").exists()
    patches.keep("Shop", FIRST)
    assert patches.all() == []
    patches.stand(patch(FIRST))
    assert patches.all() == [patch(FIRST)] == [patches.standing("Shop")]
    assert patches.tree(patch(FIRST)) == FIRST


def test_another_patch_takes_the_place_of_the_one_before_it(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    for tree in (FIRST, FIRST, SECOND):
        patches.keep("Shop", tree)
        patches.stand(patch(tree))
    assert patches.tree(patch(SECOND)) == SECOND
    assert kept(tmp_path) == sorted(["patch.json", SECOND.digest.removeprefix("sha256:")[:24]])


def test_a_copy_that_was_refused_leaves_the_one_that_stands(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    patches.keep("Shop", FIRST)
    patches.stand(patch(FIRST))
    patches.keep("Shop", SECOND)
    patches.forget_others("Shop")
    assert (patches.tree(patch(FIRST)), len(kept(tmp_path))) == (FIRST, 2)
    patches.restore("Shop")
    patches.keep("Shop", SECOND)
    patches.forget_others("Shop")
    assert kept(tmp_path) == []


def test_a_restored_plugin_leaves_nothing_and_another_patch_stays(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    for plugin in ("Shop", "Store"):
        patches.keep(plugin, FIRST)
        patches.stand(patch(FIRST, plugin))
    assert [patches.restore("Shop"), patches.restore("Shop")] == [True, False]
    assert patches.all() == [patch(FIRST, "Store")]
    assert sorted(path.name for path in (tmp_path / "patches").iterdir()) == ["Store", "lock"]


@pytest.mark.parametrize("spoil", ["changed", "added", "removed", "program"])
def test_a_copy_that_is_not_what_was_patched_is_refused(tmp_path: Path, spoil: str) -> None:
    patches = Patches(tmp_path)
    copy = patches.keep("Shop", FIRST)
    patches.stand(patch(FIRST))
    match spoil:
        case "changed":
            (copy / "a.md").write_text("other")
        case "added":
            (copy / "b.md").write_text("more")
        case "removed":
            (copy / "a.md").unlink()
        case _:
            (copy / "bin/go").chmod(0o644)
    with pytest.raises(UsageError) as caught:
        patches.tree(patch(FIRST))
    assert caught.value.message == (
        f"the patch of plugin 'Shop' is not whole any more: what {copy} holds is not what was patched"
    )
    assert caught.value.hint == (
        "patch it again: evalfarm plugin patch /somewhere/plugin; or put the released one back with --restore"
    )


def test_a_record_that_does_not_read_is_told_and_can_be_restored(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    patches.keep("Shop", FIRST)
    patches.stand(patch(FIRST))
    record = tmp_path / "patches/Shop/patch.json"
    record.write_text("{")
    with pytest.raises(UsageError) as caught:
        patches.standing("Shop")
    assert caught.value.message == f"the patch of plugin 'Shop' cannot be read from {record}"
    assert patches.restore("Shop")
    assert patches.standing("Shop") is None


@pytest.mark.parametrize("name", ["../outside", "", ".", "a/b", "/etc"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    with pytest.raises(UnknownName):
        Patches(tmp_path).restore(name)
    assert (tmp_path / "outside").is_dir()


def test_what_is_being_installed_is_not_removed_by_whoever_restores_or_patches_meanwhile(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    patches.keep("Shop", SECOND)
    patches.stand(patch(SECOND))
    meanwhile = threading.Thread(target=Patches(tmp_path).restore, args=("Shop",))
    with patches.changing():
        patches.keep("Shop", FIRST)
        meanwhile.start()
        meanwhile.join(0.2)
        assert meanwhile.is_alive()
        patches.stand(patch(FIRST))
        assert patches.tree(patch(FIRST)) == FIRST
    meanwhile.join(60)
    assert patches.all() == []


def test_a_run_takes_up_a_patch_and_its_tree_as_one(tmp_path: Path) -> None:
    patches = Patches(tmp_path)
    assert patches.taken_up("Shop") is None
    assert not (tmp_path / "patches").exists()
    with patches.changing():
        patches.keep("Shop", FIRST)
        patches.stand(patch(FIRST))
    assert patches.taken_up("Shop") == (patch(FIRST), FIRST)


def test_a_home_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "patches").write_text("no folder")
    with pytest.raises(InfrastructureError) as told, Patches(tmp_path).changing():
        pytest.fail("it was entered")
    assert told.value.message == f"the patches of this home cannot be kept: {tmp_path}/patches: File exists"
    assert told.value.hint.startswith("set EVALFARM_HOME to a folder that you may write to")


def test_a_full_disk_is_no_fault_of_ours(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"a\.bin: No space left on device"), Patches(tmp_path).changing():
        raise OSError(28, "No space left on device", "a.bin")
