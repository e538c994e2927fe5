"""A plugin's working tree, read whole: what must not travel is left out or refused, and named."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cases.suite_files import PLUGIN_MANIFEST
from evalfarm.errors import UsageError
from evalfarm.patches import PluginTree, TreeFile

MOST_FILES = 5_000
MOST_BYTES = 64 * 1024 * 1024
"""Of a whole tree: it goes to every worker with every run that it is new to."""

#: What a checkout holds beside the plugin.
_NO_PLUGIN = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", ".DS_Store"})
#: Names under which people keep passwords and keys. Whatever a plugin's `.env.example` holds is meant to be seen.
_SECRET = re.compile(
    r"\.env(?!\.(?:example|sample|template)$)(?:\..*)?|.*\.(?:pem|key|p12|pfx|jks|keystore)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:\..*)?|\.(?:netrc|npmrc|pypirc|pgpass|htpasswd|git-credentials)"
    r"|(?:credentials|secrets?)(?:\.(?:json|ya?ml|toml|ini|env))?",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_SKILL = "SKILL.md"
_LONGEST_VERSION = 50


@dataclass(frozen=True)
class About:
    """What a plugin says of itself in its plugin.json."""

    name: str
    version: str
    skills: str | None  #: the folder of its skills; None: it names none


def is_plugin(path: Path) -> bool:
    """Whether a folder is a plugin's."""
    return (path / PLUGIN_MANIFEST).is_file()


def read_tree(path: Path) -> PluginTree:
    """A working tree with every file that can travel.

    Left out are what version control and Python keep beside it, and files whose names are those of secrets. Raises
    UsageError, naming the file, for a link that leads out of the tree or to a folder, for what is no file or cannot be
    read, for a private key in a file of any name, and for a tree of more than MOST_FILES files or MOST_BYTES bytes.
    """
    root = Path(os.path.realpath(path))
    files: dict[str, TreeFile] = {}
    left_out: list[str] = []
    size = 0
    for found in _walked(root, left_out):
        name = _name(found, root)
        target = _checked(found, root)
        if _is_secret(found) or _is_secret(target):
            left_out.append(name)
            continue
        size += target.stat().st_size
        if len(files) >= MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"{path} is too large for a plugin: more than {MOST_FILES:,} files, or than {MOST_BYTES >> 20} MB",
                "is this the plugin's folder? give the one that holds .codex-plugin",
            )
        files[name] = TreeFile(_content(target, found), os.access(target, os.X_OK))
    return PluginTree(dict(sorted(files.items())), tuple(sorted(left_out)))


def about(tree: PluginTree, what: str) -> About:
    """What a tree's plugin.json says; `what` names the tree in errors. Raises UsageError."""
    file = tree.files.get(PLUGIN_MANIFEST)
    hint = 'it needs at least {"name": "…", "version": "…"}'
    if file is None:
        raise UsageError(f"{what} is no plugin: {PLUGIN_MANIFEST} is missing", hint)
    try:
        said = json.loads(file.data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{PLUGIN_MANIFEST} of {what} is no JSON: {error}", hint) from error
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        raise UsageError(f"{PLUGIN_MANIFEST} of {what} gives the plugin no name", hint)
    skills, version = said.get("skills"), str(said.get("version", ""))
    if not version.isprintable() or len(version) > _LONGEST_VERSION:
        raise UsageError(
            f"{PLUGIN_MANIFEST} of {what} gives a version that is none: {version[:_LONGEST_VERSION]!r}", hint
        )
    return About(said["name"], version, _inside(skills) if isinstance(skills, str) else None)


def with_skills(released: PluginTree, path: Path, what: str) -> PluginTree:
    """A plugin whose skills are those of a working tree: a folder of skills, or of one, which replaces its namesake.

    `what` names the plugin in errors. Raises UsageError for a folder without a SKILL.md, and for a plugin that says of
    no folder that its skills are there.
    """
    if not (path / _SKILL).is_file() and not any(path.glob(f"*/{_SKILL}")):
        raise UsageError(
            f"{path} is neither a plugin nor a folder of skills: it holds no {PLUGIN_MANIFEST} and no {_SKILL}",
            "give the folder that holds .codex-plugin, or that of the plugin's skills",
        )
    folder = about(released, what).skills
    if folder is None:
        raise UsageError(
            f"plugin.json of {what} names no folder of skills, so there is no place for those of {path}",
            "give the working tree of the whole plugin, with a `skills` in its plugin.json",
        )
    given = read_tree(path)
    place = f"{folder}/{Path(os.path.realpath(path)).name}" if (path / _SKILL).is_file() else folder
    kept = {name: file for name, file in released.files.items() if not is_below(name, place)}
    placed = {f"{place}/{name}": file for name, file in given.files.items()}
    return PluginTree({**kept, **placed}, tuple(f"{place}/{name}" for name in given.left_out))


def is_below(name: str, folder: str) -> bool:
    """Whether a path lies in a folder, both relative to the same place."""
    return PurePosixPath(folder) in PurePosixPath(name).parents


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, list[str]]:
    """The files that differ between two trees, each as path -> digest, by what became of them."""
    return {
        "changed": sorted(name for name in before.keys() & now.keys() if before[name] != now[name]),
        "added": sorted(now.keys() - before.keys()),
        "removed": sorted(before.keys() - now.keys()),
    }


def _walked(root: Path, left_out: list[str]) -> Iterator[Path]:
    """Everything below a folder that is no folder itself, links to folders among it."""

    def cannot(error: OSError) -> None:
        raise _unreadable(Path(str(error.filename)), error)

    for folder, names, files in os.walk(root, onerror=cannot):
        here = Path(folder)
        beside = [name for name in (*names, *files) if name in _NO_PLUGIN]
        left_out += [(here / name).relative_to(root).as_posix() for name in beside]
        links = [name for name in names if (here / name).is_symlink() and name not in _NO_PLUGIN]
        names[:] = sorted(name for name in names if name not in (*_NO_PLUGIN, *links))
        yield from (here / name for name in sorted((*links, *files)) if name not in _NO_PLUGIN)


def _name(found: Path, root: Path) -> str:
    name = found.relative_to(root).as_posix()
    if not name.isprintable():  # half of a surrogate pair stands for a byte that is no UTF-8
        raise UsageError(f"{name!r} in {root} is no name that can be written down", "name the file in plain characters")
    return name


def _checked(found: Path, root: Path) -> Path:
    """Where a file's bytes are. Raises UsageError for what is none, and for a link out of the tree."""
    target = Path(os.path.realpath(found))
    if not target.is_relative_to(root):
        raise UsageError(f"{found} is a link that leads out of the working tree", "put the file itself there")
    try:
        mode = target.stat().st_mode
    except OSError as error:
        raise _unreadable(found, error) from error
    if not stat.S_ISREG(mode):
        kind = "a link, and not to a file" if found.is_symlink() else "neither a file nor a folder"
        raise UsageError(f"{found} is {kind}", "put the files themselves there, or take it away")
    return target


def _content(target: Path, found: Path) -> bytes:
    try:
        data = target.read_bytes()
    except OSError as error:
        raise _unreadable(found, error) from error
    if _PRIVATE_KEY.search(data):
        raise UsageError(
            f"{found} holds a private key, and a patched plugin is kept in the store and sent to every worker",
            "take the key out of the working tree",
        )
    return data


def _is_secret(path: Path) -> bool:
    return _SECRET.fullmatch(path.name) is not None


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be read: {error.strerror}", "a run needs every file of the plugin")


def _inside(skills: str) -> str | None:
    place = PurePosixPath(skills)
    return None if place.is_absolute() or ".." in place.parts or not place.parts else place.as_posix()
