"""A suite as `evalfarm run` takes it: with its plugin patched, where a patch stands on this machine."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from cases.loader import LoadedSuite
from cases.patching import patched_suite, released_tree, variants_patched
from cases.plugin_tree import About, about
from evalfarm.contracts.patch import PluginPatch
from evalfarm.contracts.run import Isolation, Manifest, Plan
from evalfarm.errors import InfrastructureError
from evalfarm.patches import Installed, Patch, Patches, PluginTree
from evalfarm.reports.run.patched import lines
from evalfarm.reports.safe_text import harmless
from evalfarm.settings import Settings
from worker.rooms import close_room, new_room, open_room

#: Of a template home, what is written while it is built and never again.
_STAMPED = "config.toml"


@dataclass(frozen=True)
class UnderTest:
    """A suite as it is to be run."""

    loaded: LoadedSuite
    patch: Patch | None  #: what its plugin was patched with; None: it is as the suite has it
    released: str | None  #: the digest of the plugin's folder in the suite; None: it names none
    released_version: str
    homes: Path  #: where this machine's template homes are

    def told(self, manifest: Manifest) -> Manifest:
        """The manifest with the patch in it, where one of its arms runs the patch."""
        variants = {arm.variant for arm in manifest.arms}
        note = self.note(variants, manifest.versions.get("codex"), manifest.isolation)
        return manifest.model_copy(update={"patch": note})

    def announce(self, plan: Plan) -> None:
        """Say on standard error that a run of this plan would be patched, where it would."""
        for line in lines(self.note({arm.variant for arm in plan.arms}, None, plan.isolation)):
            click.echo(harmless(line), err=True)

    def note(self, variants: Collection[str], codex: str | None, isolation: Isolation) -> PluginPatch | None:
        """What is said of a run of these variants, its Codex (None: it runs none) and its isolation."""
        patch = self.patch
        patched = tuple(name for name in variants_patched(self.loaded.suite) if name in variants)
        if patch is None or not patched:
            return None
        return PluginPatch(
            plugin=patch.plugin,
            variants=patched,
            version=patch.version,
            digest=patch.digest,
            released=self.released,
            released_version=self.released_version,
            patched_at=patch.patched_at,
            rebuilt=rebuilt(patch.installed, self.homes, codex, isolation),
        )


@contextmanager
def under_test(loaded: LoadedSuite, settings: Settings) -> Iterator[UnderTest]:
    """The suite with the patch of its plugin that stands on this machine, laid out while the block lasts.

    Where it was laid out for a command that was killed is cleared away. Raises UsageError for a patch that is not whole
    any more, and for one that does not fit this suite; InfrastructureError where it cannot be laid out.
    """
    patches, plugin, homes = Patches(settings.home), loaded.suite.plugin, homes_of(settings)
    taken = patches.taken_up(plugin.name)
    if taken is None:
        yield UnderTest(loaded, None, None, plugin.version, homes)
        return
    (patch, tree), released = taken, released_tree(loaded)
    said = about(tree, f"the patch of plugin {plugin.name!r}")
    with _room(settings.home / "patched") as room:
        suite = _laid_out(loaded, tree, said, room)
        yield UnderTest(suite, patch, None if released is None else released.digest, plugin.version, homes)


@contextmanager
def _room(rooms: Path) -> Iterator[Path]:
    room = new_room(rooms)
    try:
        lock = open_room(room)
    except OSError as error:
        raise _unwritable(rooms, error) from error
    try:
        yield room
    finally:
        close_room(room, lock)


def _laid_out(loaded: LoadedSuite, tree: PluginTree, said: About, room: Path) -> LoadedSuite:
    folder = room / "suite"
    try:
        folder.mkdir()
        return patched_suite(loaded, tree, said, folder)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"the patched plugin cannot be laid out in {folder}: {error.strerror or error}",
        "set EVALFARM_HOME to a folder that you may write to, or take the patch away: evalfarm plugin patch --restore",
    )


def homes_of(settings: Settings) -> Path:
    """Where this machine's template homes are."""
    return settings.home / "homes"


def rebuilt(installed: Installed, homes: Path, codex: str | None, isolation: Isolation) -> tuple[str, ...]:
    """Why attempts are not cloned from the home that a patch was installed into; empty: they are.

    `codex`: the version that they run; None: none of them runs Codex, and no home is needed. Under another isolation
    than the patch was installed under there is another home from the start.
    """
    if codex is None or isolation != installed.isolation:
        return ()
    if codex != installed.codex:
        return (f"Codex is {codex} now, and was {installed.codex} when the patch was installed",)
    stamp_ns = stamp_of(homes / installed.home)
    if stamp_ns is None:
        return ("the template home that the patch was installed into was cleared away",)
    return () if stamp_ns == installed.stamp_ns else ("the template home of the patch was cleared away and built anew",)


def stamp_of(home: Path) -> int | None:
    """When a template home was built, in ns by the file system's clock; None: it is not there."""
    try:
        return (home / _STAMPED).stat().st_mtime_ns
    except OSError:
        return None
