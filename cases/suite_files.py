"""The files that a suite names, read from its folder and from nowhere else."""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import yaml

from cases.document import Document, Loc, Mistake
from evalfarm.contracts.suite import Suite
from evalfarm.plain_files import read_plain

PLUGIN_MANIFEST = ".codex-plugin/plugin.json"

#: Endings of files beside a suite that tell of its cases: its lock and its regression set.
_BESIDE_SUITES = (".lock", ".regressions.jsonl")

#: The folder beside a suite that holds answers with people's labels.
LABELS = "labels"

_Kind = Literal["file", "plugin", "pattern"]


@dataclass(frozen=True)
class _Named:
    """A place in the suite that names files."""

    loc: Loc
    text: str  #: a path relative to the suite's folder, or a glob pattern
    kind: _Kind


class _Refused(Exception):
    """Why what a suite names cannot be read."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


def is_suite(path: Path) -> bool:
    """Whether a file is a suite, by its name's ending and by its text: YAML with a field `suite` at its top."""
    if path.suffix not in (".yaml", ".yml"):
        return False
    try:
        root = yaml.compose(read_plain(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False
    return isinstance(root, yaml.MappingNode) and any(field.value == "suite" for field, _ in root.value)


def collect_files(suite: Suite, suite_file: Path, document: Document) -> tuple[dict[str, bytes], list[Mistake]]:
    """The bytes of every file the suite names, by path relative to its folder, and what is wrong with the naming.

    The suite's own file, every other suite at the top of its folder, its lock, its regression set and its labels are
    left out even where a pattern, the plugin's folder or a link covers them: they hold what is expected. Compiled
    Python (`__pycache__`) is left out too. Nothing outside the folder is ever read, through symbolic links neither.
    """
    folder = suite_file.parent
    files: dict[str, bytes] = {}
    mistakes: list[Mistake] = []
    for named in _named_in(suite):
        try:
            for path in _paths(folder, named):
                if not _holds_expectations(_real(path), _real(suite_file)):
                    files[path.relative_to(folder).as_posix()] = _content(path, folder)
        except _Refused as refused:
            mistakes.append(document.mistake(named.loc, refused.text, refused.hint))
    return dict(sorted(files.items())), mistakes


def _holds_expectations(path: Path, suite_file: Path) -> bool:
    if path.parent == suite_file.parent:
        return path == suite_file or path.name.endswith(_BESIDE_SUITES) or is_suite(path)
    return suite_file.parent / LABELS in path.parents


def _real(path: Path) -> Path:
    """Where a path leads. `Path.resolve` ends in a RuntimeError on links that lead in a circle, before 3.13."""
    return Path(os.path.realpath(path))


def _named_in(suite: Suite) -> Iterator[_Named]:
    simulation = suite.simulation
    files: dict[Loc, str | None] = {
        ("server", "python"): suite.server.python,
        ("simulation", "policy"): simulation.policy if simulation else None,
        ("simulation", "judge"): simulation.judge if simulation else None,
        ("fixtures_from",): suite.fixtures_from,
        ("answer_functions",): suite.answer_functions,
    }
    plugins: dict[Loc, str | None] = {("plugin", "path"): suite.plugin.path}
    for name, variant in suite.variants.items():
        files["variants", name, "server", "python"] = variant.server.python if variant.server else None
        plugins["variants", name, "plugin_path"] = variant.plugin_path
    yield from (_Named(loc, text, "file") for loc, text in files.items() if text is not None)
    yield from (_Named(loc, text, "plugin") for loc, text in plugins.items() if text is not None)
    yield from (_Named(("files", place), pattern, "pattern") for place, pattern in enumerate(suite.files))


def _paths(folder: Path, named: _Named) -> list[Path]:
    """The files that one place names. Raises _Refused."""
    pure = PurePosixPath(named.text)
    if pure.is_absolute() or ".." in pure.parts:
        raise _Refused(f"'{named.text}' leads out of the suite's folder", "give a path inside the suite's folder")
    path = folder / named.text
    if named.kind == "pattern":
        found = [folder / match for match in sorted(glob.glob(named.text, root_dir=folder, recursive=True))]
        files = [file for match in found for file in (_tree(match) if match.is_dir() else [match])]
        if not files:
            raise _Refused(f"no file matches '{named.text}' in {folder}")
        return files
    if named.kind == "plugin":
        if not (path / PLUGIN_MANIFEST).is_file():
            raise _Refused(f"'{named.text}' is no plugin folder: {path / PLUGIN_MANIFEST} is missing")
        return _tree(path)
    if not path.is_file():
        raise _Refused(f"there is no file '{named.text}' in {folder}")
    return [path]


def _tree(folder: Path) -> list[Path]:
    inside = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    for path in inside:
        if path.is_symlink() and not path.is_file():
            raise _Refused(f"{path} is a symbolic link, and not to a file", "put the files themselves there")
    return [path for path in inside if path.is_file()]


def _content(path: Path, folder: Path) -> bytes:
    if not _real(path).is_relative_to(_real(folder)):
        raise _Refused(f"{path} is a link that leads out of the suite's folder", "put the file itself there")
    try:
        return read_plain(path)
    except OSError as error:
        raise _Refused(f"{path} cannot be read: {error.strerror}") from error
