"""The plugins that are patched on this machine: a copy of each working tree, and which of them stand.

    {home}/patches/{plugin}/patch.json           Patch: that it stands; replaced at once or not at all
    {home}/patches/{plugin}/{digest}/plugin/…    the tree as it was when it was patched, as files
    {home}/patches/lock                          held by whoever changes any of it, and shared by who takes a tree up

A patch stands for the runs that are started from this home, and for nobody else's: who shares the store goes on with
what is released. Of a run's plan it is part like any file, so a restored patch takes nothing from a run under way.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from evalfarm.contracts.base import Contract, Name, digest, digest_bytes
from evalfarm.contracts.run import Isolation
from evalfarm.errors import InfrastructureError, UnknownName, UsageError

_RECORD = "patch.json"
_LOCK = "lock"
_TREE = "plugin"
_DIGITS = 24
_NAME: TypeAdapter[str] = TypeAdapter(Name)


class TreeFile(NamedTuple):
    """One file of a plugin's folder."""

    data: bytes
    program: bool = False  #: can be run, as a skill's scripts are


@dataclass(frozen=True)
class PluginTree:
    """A plugin's folder by relative path, with `/`."""

    files: Mapping[str, TreeFile]
    left_out: tuple[str, ...] = ()  #: what must not travel, as keys

    @cached_property
    def contents(self) -> dict[str, str]:
        """The digest of each file."""
        return {name: digest_bytes(file.data) for name, file in sorted(self.files.items())}

    @cached_property
    def digest(self) -> str:
        """One digest of all that it holds."""
        return digest({name: [content, self.files[name].program] for name, content in self.contents.items()})

    def lay_out(self, folder: Path) -> None:
        """Write it as files."""
        for name, file in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(0o755 if file.program else 0o644)


class Installed(Contract):
    """The template home that a patch was installed into, so that another one in its place is noticed."""

    home: str  #: its name among the homes
    stamp_ns: int  #: when it was built, by the file system's clock
    codex: str  #: the version
    isolation: Isolation  #: that it was built under


class Patch(Contract):
    """A patch that stands."""

    schema_version: Literal[1] = 1
    plugin: Name
    version: str  #: that the tree's plugin.json says
    digest: str  #: of the tree
    files: dict[str, str]  #: path -> digest
    left_out: tuple[str, ...] = ()  #: what of the working tree is no part of it
    source: str  #: where the working tree was
    patched_at: float  #: seconds since the epoch
    installed: Installed


class Patches:
    """The patches of one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "patches"

    def all(self) -> list[Patch]:
        """Every patch that stands, by the plugin's name."""
        found = (self.standing(record.parent.name) for record in sorted(self._folder.glob(f"*/{_RECORD}")))
        return [patch for patch in found if patch is not None]

    def standing(self, plugin: str) -> Patch | None:
        """The patch of a plugin; None: it is not patched here. Raises UsageError for a record that does not read."""
        record = self._of(plugin) / _RECORD
        try:
            return Patch.model_validate_json(record.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValidationError) as error:
            raise UsageError(
                f"the patch of plugin {plugin!r} cannot be read from {record}",
                f"evalfarm plugin patch {plugin} --restore puts the released one back",
            ) from error

    def taken_up(self, plugin: str) -> tuple[Patch, PluginTree] | None:
        """The patch of a plugin with its tree, both as they stood at one moment; None: it is not patched here.

        Raises UsageError as `standing` and `tree` do.
        """
        if self.standing(plugin) is None:
            return None  # as a rule: then nothing is waited for
        with self._locked(fcntl.LOCK_SH):
            patch = self.standing(plugin)
            return None if patch is None else (patch, self.tree(patch))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For `keep`, `stand` and what goes between: while the block lasts nobody else changes a patch of this home.

        Otherwise one patch that comes to stand would remove the copy of another that is being installed. Raises
        InfrastructureError where something in the block cannot be written.
        """
        with self._locked(fcntl.LOCK_EX):
            yield

    def keep(self, plugin: str, tree: PluginTree) -> Path:
        """A folder that holds a copy of a tree, which does not stand yet. Safe to repeat."""
        kept = self._kept(plugin, tree.digest)
        if _read(kept) == tree.files:  # a run that is just starting may be reading it
            return kept
        kept.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent.parent, prefix=".") as made:
            tree.lay_out(Path(made, _TREE))
            shutil.rmtree(kept.parent, ignore_errors=True)
            kept.parent.mkdir()
            Path(made, _TREE).rename(kept)
        return kept

    def stand(self, patch: Patch) -> None:
        """Have the runs that are started from now on take a tree that is kept, in the place of any other."""
        folder = self._of(patch.plugin)
        written = folder / f".{_RECORD}"
        written.write_text(patch.model_dump_json(indent=2), encoding="utf-8")
        written.replace(folder / _RECORD)
        self._forget(folder, but=self._kept(patch.plugin, patch.digest).parent)

    def forget_others(self, plugin: str) -> None:
        """Remove the copies that do not stand."""
        standing = self.standing(plugin)
        self._forget(self._of(plugin), but=self._kept(plugin, standing.digest).parent if standing else None)

    def restore(self, plugin: str) -> bool:
        """Put the released plugin back; False: it was not patched. Raises InfrastructureError where it cannot."""
        folder = self._of(plugin)
        if not folder.exists():
            return False
        with self.changing():
            was = (folder / _RECORD).exists()
            (folder / _RECORD).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            return was

    def tree(self, patch: Patch) -> PluginTree:
        """The tree of a patch that stands. Raises UsageError when its copy is not the one that was patched."""
        kept = self._kept(patch.plugin, patch.digest)
        with suppress(OSError):
            tree = PluginTree(_read(kept))
            if tree.digest == patch.digest:
                return tree
        raise UsageError(
            f"the patch of plugin {patch.plugin!r} is not whole any more: what {kept} holds is not what was patched",
            f"patch it again: evalfarm plugin patch {patch.source}; or put the released one back with --restore",
        )

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / _LOCK).open("ab") as lock:
                fcntl.flock(lock, how)
                yield
        except OSError as error:
            where = error.filename or self._folder
            raise InfrastructureError(
                f"the patches of this home cannot be kept: {where}: {error.strerror or error}",
                "set EVALFARM_HOME to a folder that you may write to, with room for a copy of the plugin",
            ) from error

    def _kept(self, plugin: str, content: str) -> Path:
        return self._of(plugin) / content.removeprefix("sha256:")[:_DIGITS] / _TREE

    def _of(self, plugin: str) -> Path:
        try:
            return self._folder / _NAME.validate_python(plugin)
        except ValidationError as error:
            raise UnknownName(
                f"no plugin can be called {plugin!r}", "evalfarm plugin list shows what is patched"
            ) from error

    def _forget(self, folder: Path, but: Path | None) -> None:
        for other in folder.iterdir() if folder.is_dir() else ():
            if other.is_dir() and other != but:
                shutil.rmtree(other, ignore_errors=True)


def _read(folder: Path) -> dict[str, TreeFile]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): TreeFile(path.read_bytes(), os.access(path, os.X_OK)) for path in files
    }
