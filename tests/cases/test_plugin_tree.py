"""A plugin's working tree: what of it travels, what is left out, and what is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cases.plugin_tree import MOST_BYTES, MOST_FILES, about, changes, read_tree, with_skills
from evalfarm.errors import UsageError
from evalfarm.patches import PluginTree, TreeFile

ABOUT = json.dumps({"name": "Shop", "version": "1.2.0", "skills": "./skills/"}).encode()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree with a skill, a script and a link inside it."""
    root = tmp_path / "checkout"
    files = {
        ".codex-plugin/plugin.json": ABOUT,
        "skills/buy/SKILL.md": b"Look first.",
        "skills/buy/run.sh": b"#!/bin/sh",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "skills/buy/run.sh").chmod(0o755)
    (root / "GUIDE.md").symlink_to("skills/buy/SKILL.md")
    return root


def test_a_tree_is_read_with_its_programs_and_links_within_it(tree: Path) -> None:
    assert read_tree(tree) == PluginTree(
        {
            ".codex-plugin/plugin.json": TreeFile(ABOUT),
            "GUIDE.md": TreeFile(b"Look first."),
            "skills/buy/SKILL.md": TreeFile(b"Look first."),
            "skills/buy/run.sh": TreeFile(b"#!/bin/sh", program=True),
        }
    )


def test_the_digest_follows_from_names_contents_and_what_is_a_program_alone(tree: Path, tmp_path: Path) -> None:
    first = read_tree(tree)
    first.lay_out(tmp_path / "copy")
    assert read_tree(tmp_path / "copy").digest == first.digest
    (tree / "skills/buy/run.sh").chmod(0o644)
    others = {read_tree(tree).digest}
    (tree / "skills/buy/run.sh").chmod(0o755)
    (tree / "GUIDE.md").unlink()
    others.add(read_tree(tree).digest)
    assert len(others | {first.digest}) == 3


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".env.local", ".ENV", "server.pem", "tls.key", "store.p12", "id_rsa", "id_ed25519.pub", ".npmrc"),
        *(".netrc", "credentials", "credentials.json", "secrets.yaml", "__pycache__/x.pyc", ".git/config", ".venv/x"),
    ],
)
def test_secrets_by_name_and_what_a_checkout_keeps_beside_the_plugin_are_left_out_and_named(
    tree: Path, name: str
) -> None:
    whole = read_tree(tree)
    (tree / "skills" / name).parent.mkdir(exist_ok=True)
    (tree / "skills" / name).write_text("X=1")
    found = read_tree(tree)
    named = f"skills/{name.partition('/')[0]}"
    assert (found.digest, found.left_out) == (whole.digest, (named,))


def test_a_secret_behind_a_link_of_another_name_is_left_out_too(tree: Path) -> None:
    (tree / ".env").write_text("X=1")
    (tree / "settings.txt").symlink_to(".env")
    assert read_tree(tree).left_out == (".env", "settings.txt")


@pytest.mark.parametrize("name", [".env.example", ".env.sample", "keyboard.md", "secret-santa.md", "environment.txt"])
def test_what_only_resembles_a_secret_travels(tree: Path, name: str) -> None:
    (tree / name).write_text("X=")
    assert (name in read_tree(tree).files, read_tree(tree).left_out) == (True, ())


def link_out(tree: Path) -> None:
    (tree.parent / "outside.txt").write_text("x")
    (tree / "a.txt").symlink_to("../outside.txt")


def folder_out(tree: Path) -> None:
    (tree / "a.txt").symlink_to("/")


def folder_within(tree: Path) -> None:
    (tree / "a.txt").symlink_to("skills")


def link_in_a_circle(tree: Path) -> None:
    (tree / "a.txt").symlink_to("a.txt")


def link_to_nothing(tree: Path) -> None:
    (tree / "a.txt").symlink_to("nowhere")


def a_pipe(tree: Path) -> None:
    os.mkfifo(tree / "a.txt")


def private_key(tree: Path) -> None:
    (tree / "a.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (link_out, "is a link that leads out of the working tree"),
        (folder_out, "is a link that leads out of the working tree"),
        (folder_within, "is a link, and not to a file"),
        (link_in_a_circle, "cannot be read: Too many levels of symbolic links"),
        (link_to_nothing, "cannot be read: No such file or directory"),
        (a_pipe, "is neither a file nor a folder"),
        (private_key, "holds a private key, and a patched plugin is kept in the store and sent to every worker"),
    ],
)
def test_what_cannot_travel_is_refused_by_its_name(tree: Path, spoil: Callable[[Path], None], told: str) -> None:
    spoil(tree)
    with pytest.raises(UsageError) as caught:
        read_tree(tree)
    assert caught.value.message == f"{tree}/a.txt {told}"


def test_a_name_that_cannot_be_written_down_is_refused(tree: Path) -> None:
    (tree / "two\nlines").write_text("x")
    with pytest.raises(UsageError) as caught:
        read_tree(tree)
    assert caught.value.message == f"'two\\nlines' in {tree} is no name that can be written down"


def test_a_tree_that_is_no_plugin_s_size_is_refused_before_it_is_read(tree: Path) -> None:
    told = f"{tree} is too large for a plugin: more than {MOST_FILES:,} files, or than 64 MB"
    with (tree / "large.bin").open("wb") as large:
        large.truncate(MOST_BYTES + 1)
    with pytest.raises(UsageError) as by_size:
        read_tree(tree)
    assert by_size.value.message == told
    (tree / "large.bin").unlink()
    for number in range(MOST_FILES):
        (tree / f"{number}.md").touch()
    with pytest.raises(UsageError) as by_number:
        read_tree(tree)
    assert by_number.value.message == told


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "PATH is no plugin: .codex-plugin/plugin.json is missing"),
        (b"{", ".codex-plugin/plugin.json of PATH is no JSON: "),
        (b"\xff", ".codex-plugin/plugin.json of PATH is no JSON: "),
        (b"[]", ".codex-plugin/plugin.json of PATH gives the plugin no name"),
        (b'{"name": 1}', ".codex-plugin/plugin.json of PATH gives the plugin no name"),
        (b'{"name": "S", "version": "1\\n2"}', ".codex-plugin/plugin.json of PATH gives a version that is none: "),
        (b'{"name": "S", "version": "' + b"1" * 51 + b'"}', ".codex-plugin/plugin.json of PATH gives a version that"),
    ],
)
def test_a_plugin_json_that_does_not_say_what_the_plugin_is_is_refused(data: bytes | None, told: str) -> None:
    files = {} if data is None else {".codex-plugin/plugin.json": TreeFile(data)}
    with pytest.raises(UsageError) as caught:
        about(PluginTree(files), "PATH")
    assert caught.value.message.startswith(told)


def released(skills: str | None = "./skills/") -> PluginTree:
    said = {"name": "Shop", **({} if skills is None else {"skills": skills})}
    names = ("skills/buy/SKILL.md", "skills/buy/old.md", "skills/sell/SKILL.md", ".mcp.json")
    files = {name: TreeFile(name.encode()) for name in names}
    return PluginTree({**files, ".codex-plugin/plugin.json": TreeFile(json.dumps(said).encode())})


def test_a_folder_of_skills_takes_the_place_of_all_skills_and_one_skill_that_of_its_namesake(tree: Path) -> None:
    (tree / "skills/.env").write_text("X=1")
    every = with_skills(released(), tree / "skills", "Shop")
    one = with_skills(released(), tree / "skills/buy", "Shop")
    assert changes(released().contents, every.contents) == {
        "changed": ["skills/buy/SKILL.md"],
        "added": ["skills/buy/run.sh"],
        "removed": ["skills/buy/old.md", "skills/sell/SKILL.md"],
    }
    assert changes(released().contents, one.contents) == {
        "changed": ["skills/buy/SKILL.md"],
        "added": ["skills/buy/run.sh"],
        "removed": ["skills/buy/old.md"],
    }
    assert (every.left_out, one.left_out) == (("skills/.env",), ())


@pytest.mark.parametrize("skills", [None, "../skills", "/skills", "."])
def test_skills_need_a_place_in_the_plugin(tree: Path, skills: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        with_skills(released(skills), tree / "skills", "plugin 'Shop'")
    assert caught.value.message == (
        f"plugin.json of plugin 'Shop' names no folder of skills, so there is no place for those of {tree}/skills"
    )


def test_a_folder_that_is_neither_a_plugin_nor_skills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        with_skills(released(), tmp_path, "Shop")
    assert caught.value.message == (
        f"{tmp_path} is neither a plugin nor a folder of skills: it holds no .codex-plugin/plugin.json and no SKILL.md"
    )
