"""`evalfarm plugin`: what it takes, what it says, and what a run takes afterwards."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases.loader import load_suite, shipped_suites
from cases.plugin_tree import read_tree
from evalfarm.cli.plugins.patching import rebuilt, stamp_of, under_test
from evalfarm.patches import Installed, Patch, Patches
from evalfarm.settings import load_settings

Run = Callable[..., Any]
NOTHING = "No plugin is patched here: runs take what their suites name.\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree of the plugin BLS, with a skill that the released one does not have."""
    path = Path(shutil.copytree(shipped_suites()["bls"].parent / "plugin", tmp_path / "tree"))
    said = json.loads((path / ".codex-plugin/plugin.json").read_text())
    (path / ".codex-plugin/plugin.json").write_text(json.dumps({**said, "version": "1.1.0", "skills": "./skills/"}))
    (path / "skills/ask").mkdir(parents=True)
    (path / "skills/ask/SKILL.md").write_text("---\nname: ask\ndescription: When to ask.\n---\nAsk on ties.\n")
    return path


def standing(patches: Patches, path: Path) -> Patch:
    """A patch that stands, installed nowhere."""
    kept = read_tree(path)
    patch = Patch(
        plugin="BLS",
        version="1.1.0",
        digest=kept.digest,
        files=kept.contents,
        source=str(path),
        patched_at=1.0,
        installed=Installed(home="h", stamp_ns=1, codex="1.0.0", isolation="cell"),
    )
    patches.keep("BLS", kept)
    patches.stand(patch)
    return patch


@pytest.mark.slow
def test_a_patch_is_installed_told_listed_shown_and_restored(evalfarm: Run, tree: Path, tmp_path: Path) -> None:
    (tree / ".env").write_text("TOKEN=x")
    made = evalfarm("plugin", "patch", str(tree))
    assert made.code == 0, made.err
    (patch,) = Patches(tmp_path / "home").all()
    released = load_suite("bls").suite.plugin.version
    first, *rest = made.out.splitlines()
    assert first.startswith(f"Plugin BLS is patched: {patch.digest[7:19]} (version 1.1.0), in place of ")
    assert first.endswith(f" (version {released}).")
    assert rest[:2] == ["  changed: .codex-plugin/plugin.json", "  added: skills/ask/SKILL.md"]
    assert "  left out, as no part of a plugin or secret by name: .env" in rest
    assert rest[-1] == "Runs from this home take it until: evalfarm plugin patch BLS --restore"
    home = tmp_path / "home/homes" / patch.installed.home
    assert any(home.rglob("skills/ask/SKILL.md"))
    assert not any(home.rglob(".env"))

    assert f"BLS     1.1.0    {patch.digest[7:19]}" in evalfarm("plugin", "list").out
    (listed,) = json.loads(evalfarm("plugin", "list", "--json").out)
    assert json.loads(evalfarm("plugin", "show", "BLS", "--json").out) == listed | {"rebuilt": []}
    again = json.loads(evalfarm("plugin", "patch", str(tree), "--json").out)
    assert (again["digest"], again["files"]["added"]) == (patch.digest, ["skills/ask/SKILL.md"])
    shutil.rmtree(home)
    shown = evalfarm("plugin", "show", "BLS").out
    assert "  REBUILT: the template home that the patch was installed into was cleared away; " in shown

    dry = evalfarm("run", "bls", "--harness", "direct", "--dry-run")
    assert dry.err.startswith(f"PATCHED: plugin BLS is a working tree, {patch.digest[7:19]} (version 1.1.0), ")
    restored = evalfarm("plugin", "patch", str(tree), "--restore")
    assert restored.out == (
        "Plugin BLS: the released one is back, for every run from now on. Runs that are open keep the patch.\n"
    )
    assert evalfarm("plugin", "list").out == evalfarm("plugin", "patch", "--restore").out == NOTHING
    assert evalfarm("run", "bls", "--harness", "direct", "--dry-run").err == ""


@pytest.mark.slow
def test_what_codex_refuses_never_stands(evalfarm: Run, tree: Path, tmp_path: Path) -> None:
    (tree / ".mcp.json").write_text(json.dumps({"mcpServers": {"Other": {"command": "x"}}}))
    ended = evalfarm("plugin", "patch", str(tree))
    assert ended.code == 2
    assert ended.err.startswith("Error: the folder of plugin 'BLS' does not describe a server 'BLS': ")
    assert evalfarm("plugin", "list").out == NOTHING
    assert [path.name for path in (tmp_path / "home/patches").rglob("*") if path.is_file()] == ["lock"]


def no_manifest(tree: Path) -> None:
    shutil.rmtree(tree / ".codex-plugin")
    shutil.rmtree(tree / "skills")


def another_name(tree: Path) -> None:
    (tree / ".codex-plugin/plugin.json").write_text('{"name": "Other"}')


def not_there(tree: Path) -> None:
    shutil.rmtree(tree)


def link_out(tree: Path) -> None:
    (tree / "a.md").symlink_to("/etc/hostname")


def as_released(tree: Path) -> None:
    shutil.rmtree(tree)
    shutil.copytree(shipped_suites()["bls"].parent / "plugin", tree)


@pytest.mark.parametrize(
    ("spoil", "words", "told", "hint"),
    [
        (
            no_manifest,
            ["--suite", "bls"],
            "TREE is neither a plugin nor a folder of skills: it holds no .codex-plugin/plugin.json and no SKILL.md",
            "give the folder that holds .codex-plugin, or that of the plugin's skills",
        ),
        (no_manifest, [], "no shipped suite is about the plugin of TREE", "name one that is: --suite my-suite.yaml"),
        (
            another_name,
            ["--suite", "bls"],
            "the working tree is of plugin 'Other', and suite 'bls' is about 'BLS'",
            "name the suite that is about it: --suite my-suite.yaml",
        ),
        (another_name, [], "no shipped suite is about plugin 'Other'", "name one that is: --suite my-suite.yaml"),
        (not_there, [], "there is no folder TREE", "give the folder of the plugin's working tree"),
        (link_out, [], "TREE/a.md is a link that leads out of the working tree", "put the file itself there"),
        (
            as_released,
            [],
            "TREE holds what is released, byte for byte: there is nothing to patch",
            "evalfarm plugin patch --restore puts the released one back, where a patch stands",
        ),
    ],
)
def test_a_working_tree_that_cannot_be_patched_is_refused_and_nothing_is_kept(
    evalfarm: Run, tree: Path, tmp_path: Path, spoil: Callable[[Path], None], words: list[str], told: str, hint: str
) -> None:
    spoil(tree)
    ended = evalfarm("plugin", "patch", str(tree), *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"Error: {told}\n\nhint: {hint}\n".replace("TREE", str(tree))
    assert not (tmp_path / "home/patches").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["patch"], "which plugin? `evalfarm plugin patch` takes a working tree's path"),
        (["show"], "which plugin? `evalfarm plugin show` takes a plugin's name"),
        (["show", "BLS"], "plugin 'BLS' is not patched here: runs take what is released"),
        (["list", "--restore"], "--restore goes with `evalfarm plugin patch`"),
        (["patch", "../outside", "--restore"], "no plugin can be called '../outside'"),
    ],
)
def test_words_that_say_too_little_are_answered(evalfarm: Run, words: list[str], told: str) -> None:
    ended = evalfarm("plugin", *words)
    assert (ended.code, ended.err.splitlines()[0]) == (2, f"Error: {told}")


def test_to_restore_what_is_not_patched_is_no_mistake(evalfarm: Run) -> None:
    assert evalfarm("plugin", "patch", "BLS", "--restore").out == (
        "Plugin BLS is not patched here: its runs take what is released.\n"
    )
    assert json.loads(evalfarm("plugin", "patch", "--restore", "--json").out) == {"restored": []}


def test_a_home_is_noticed_that_is_another_than_the_patch_was_installed_into(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    (home / "config.toml").touch()
    installed = Installed(home="h", stamp_ns=stamp_of(home) or 0, codex="1.0.0", isolation="cell")
    assert rebuilt(installed, tmp_path, "1.0.0", "cell") == ()
    assert rebuilt(installed, tmp_path, None, "cell") == rebuilt(installed, tmp_path, "1.0.0", "harness") == ()
    assert rebuilt(installed, tmp_path, "1.1.0", "cell") == (
        "Codex is 1.1.0 now, and was 1.0.0 when the patch was installed",
    )
    os.utime(home / "config.toml", ns=(1, 1))
    assert rebuilt(installed, tmp_path, "1.0.0", "cell") == (
        "the template home of the patch was cleared away and built anew",
    )
    shutil.rmtree(home)
    assert rebuilt(installed, tmp_path, "1.0.0", "cell") == (
        "the template home that the patch was installed into was cleared away",
    )


def test_a_run_whose_variants_all_have_folders_of_their_own_is_not_called_patched(bls: Path, tree: Path) -> None:
    settings = load_settings()
    patch = standing(Patches(settings.home), tree)
    with under_test(load_suite("bls"), settings) as tested:
        assert tested.note({"plain"}, None, "cell") is not None
        assert tested.note({"elsewhere"}, None, "cell") is None
        assert (tested.patch, tested.loaded.suite.plugin.path) == (patch, "plugin")
        laid = tested.loaded.folder
    assert not laid.exists()
    other = bls.read_text().replace("guided:\n", "guided:\n    plugin_path: plugin2\n")
    bls.write_text(other)
    shutil.copytree(bls.parent / "plugin", bls.parent / "plugin2")
    with under_test(load_suite(str(bls)), settings) as tested:
        assert tested.note({"guided"}, None, "cell") is None
        note = tested.note({"plain", "guided"}, None, "cell")
        assert note is not None
        assert note.variants == ("plain",)


def test_where_a_killed_command_had_its_patched_suite_is_cleared_away_by_the_next_and_that_of_a_live_one_is_not(
    tree: Path,
) -> None:
    settings = load_settings()
    standing(Patches(settings.home), tree)
    killed = settings.home / "patched/1-killed"
    (killed / "suite").mkdir(parents=True)
    (killed / ".lock").touch()
    with under_test(load_suite("bls"), settings) as first:
        assert not killed.exists()
        with under_test(load_suite("bls"), settings) as second:
            assert first.loaded.folder != second.loaded.folder
            assert first.loaded.folder.exists()
    assert list((settings.home / "patched").iterdir()) == []


def test_a_home_in_which_a_patched_suite_cannot_be_laid_out_is_named(evalfarm: Run, tree: Path) -> None:
    home = load_settings().home
    standing(Patches(home), tree)
    (home / "patched").touch()
    ended = evalfarm("run", "bls", "--dry-run")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == (
        f"Error: the patched plugin cannot be laid out in {home / 'patched'}: File exists\n\n"
        "hint: set EVALFARM_HOME to a folder that you may write to, or take the patch away: "
        "evalfarm plugin patch --restore\n"
    )
