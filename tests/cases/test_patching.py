"""A suite with a working tree in the place of its plugin's folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.loader import LoadedSuite, load_suite
from cases.patching import check_fits, patched_suite, released_tree, short, variants_patched
from cases.plugin_tree import About
from evalfarm.errors import UsageError
from evalfarm.patches import PluginTree, TreeFile

SAID = About("Shop", "1.1.0", None)
TREE = PluginTree({".codex-plugin/plugin.json": TreeFile(b"{}"), "bin/go.sh": TreeFile(b"go", program=True)})


def a_suite(folder: Path, **said: Any) -> LoadedSuite:
    """A suite with a plugin's folder, another variant's folder, and a server beside them."""
    for name in ("one", "two"):
        (folder / name / ".codex-plugin").mkdir(parents=True, exist_ok=True)
        (folder / name / ".codex-plugin/plugin.json").write_text(json.dumps({"name": "Shop"}))
        (folder / name / "old.sh").write_text("old")
    (folder / "one/old.sh").chmod(0o755)
    for name in ("server.py", "one/server.py"):
        (folder / name).write_text("")
    suite = {
        "suite": "shop",
        "version": "1",
        "plugin": {"name": "Shop", "path": "./one"},
        "server": {"python": "server.py"},
        "variants": {"plain": {}, "other": {"plugin_path": "two"}, "same": {"plugin_path": "./one"}},
        "cases": [{"id": "a", "query": "Is it there?"}],
    }
    (folder / "suite.yaml").write_text(yaml.safe_dump({**suite, **said}))
    return load_suite(str(folder))


def test_the_released_tree_is_the_folder_as_the_suite_has_it(tmp_path: Path) -> None:
    tree = released_tree(a_suite(tmp_path))
    assert tree == PluginTree(
        {
            ".codex-plugin/plugin.json": TreeFile(b'{"name": "Shop"}'),
            "old.sh": TreeFile(b"old", program=True),
            "server.py": TreeFile(b""),
        }
    )
    assert released_tree(a_suite(tmp_path, plugin={"name": "Shop"}, variants={"plain": {}})) is None


def test_the_tree_replaces_the_whole_folder_and_nothing_else(tmp_path: Path) -> None:
    loaded = a_suite(tmp_path / "suite")
    patched = patched_suite(loaded, TREE, SAID, tmp_path / "laid")
    assert patched.files == {
        "one/.codex-plugin/plugin.json": b"{}",
        "one/bin/go.sh": b"go",
        "server.py": b"",
        "two/.codex-plugin/plugin.json": b'{"name": "Shop"}',
        "two/old.sh": b"old",
    }
    laid = {p.relative_to(patched.folder).as_posix(): p.read_bytes() for p in patched.folder.rglob("*") if p.is_file()}
    assert (laid, patched.executables) == (patched.files, ("one/bin/go.sh",))
    assert patched.suite.plugin.version == f"1.1.0+patched.{short(TREE.digest)}"
    assert patched.suite.model_copy(update={"plugin": loaded.suite.plugin}) == loaded.suite
    assert variants_patched(loaded.suite) == ("plain", "same")


def test_a_suite_without_a_folder_gets_one_that_no_file_of_its_own_lies_in(tmp_path: Path) -> None:
    (tmp_path / "suite/patched-plugin").mkdir(parents=True)
    (tmp_path / "suite/patched-plugin/x").write_text("")
    loaded = a_suite(tmp_path / "suite", plugin={"name": "Shop"}, variants={"plain": {}}, files=["patched-plugin/x"])
    patched = patched_suite(loaded, TREE, About("Shop", "", None), tmp_path / "laid")
    assert patched.suite.plugin.path == "patched-plugin-"
    assert patched.suite.plugin.version == f"1.0.0+patched.{short(TREE.digest)}"
    assert sorted(patched.files) == [
        "patched-plugin-/.codex-plugin/plugin.json",
        "patched-plugin-/bin/go.sh",
        "patched-plugin/x",
        "server.py",
    ]


def test_a_patch_with_the_released_tree_changes_no_file(tmp_path: Path) -> None:
    loaded = a_suite(tmp_path / "suite")
    tree = released_tree(loaded)
    assert tree is not None
    patched = patched_suite(loaded, tree, SAID, tmp_path / "laid")
    assert (patched.files, patched.executables) == (loaded.files, loaded.executables)


def test_another_plugin_s_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_fits(a_suite(tmp_path), TREE, About("Store", "1", None))
    assert caught.value.message == "the working tree is of plugin 'Store', and suite 'shop' is about 'Shop'"
    assert caught.value.hint == "name the suite that is about it: --suite my-suite.yaml"


def test_a_tree_without_the_server_that_the_suite_starts_is_refused(tmp_path: Path) -> None:
    loaded = a_suite(tmp_path, server={"python": "one/server.py"})
    with pytest.raises(UsageError) as caught:
        check_fits(loaded, TREE, SAID)
    assert caught.value.message == (
        "suite 'shop' starts its server from 'one/server.py', and the working tree has no such file"
    )
    check_fits(loaded, PluginTree({**TREE.files, "server.py": TreeFile(b"")}), SAID)


def test_the_shipped_suites_that_share_a_plugin_take_the_same_patch(tmp_path: Path) -> None:
    trees = [released_tree(load_suite(name)) for name in ("bls", "bls-108")]
    assert trees[0] is not None
    assert trees[0] == trees[1]
    for name in ("bls", "bls-108"):
        shutil.rmtree(tmp_path / "laid", ignore_errors=True)
        suite = load_suite(name)
        patched = patched_suite(suite, trees[0], About("BLS", "1.0.0", None), tmp_path / "laid")
        assert patched.files == suite.files
