"""A suite with another tree in the place of its plugin's folder."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

from cases.loader import LoadedSuite
from cases.plugin_tree import About, is_below
from evalfarm.contracts.suite import Suite
from evalfarm.errors import UsageError
from evalfarm.patches import PluginTree, TreeFile

#: Where the tree goes in a suite that names no folder of its own.
_PLACE = "patched-plugin"
_SHOWN_DIGITS = 12


def released_tree(loaded: LoadedSuite) -> PluginTree | None:
    """The plugin's folder as the suite has it; None: it names none, and one is made around its server."""
    folder = loaded.suite.plugin.path
    if folder is None:
        return None
    programs = loaded.executables
    return PluginTree(
        {
            PurePosixPath(name).relative_to(folder).as_posix(): TreeFile(data, name in programs)
            for name, data in loaded.files.items()
            if is_below(name, folder)
        }
    )


def variants_patched(suite: Suite) -> tuple[str, ...]:
    """The variants whose plugin a patch takes the place of: those without a folder of their own."""
    return tuple(name for name, variant in suite.variants.items() if variant.plugin_path in (None, suite.plugin.path))


def check_fits(loaded: LoadedSuite, tree: PluginTree, said: About) -> None:
    """Raises UsageError for a tree that cannot stand in for the suite's plugin: another's, or one without the server.

    A server that lies outside the plugin's folder stays the suite's own.
    """
    suite = loaded.suite
    if said.name != suite.plugin.name:
        raise UsageError(
            f"the working tree is of plugin {said.name!r}, and suite {suite.suite!r} is about {suite.plugin.name!r}",
            "name the suite that is about it: --suite my-suite.yaml",
        )
    folder = suite.plugin.path
    programs = {suite.server_of(variant).python for variant in suite.variants}
    for program in sorted(name for name in programs if name and folder and is_below(name, folder)):
        if PurePosixPath(program).relative_to(str(folder)).as_posix() not in tree.files:
            raise UsageError(
                f"suite {suite.suite!r} starts its server from {program!r}, and the working tree has no such file",
                "a patch replaces the whole folder: keep the server's file where the suite looks for it",
            )


def patched_suite(loaded: LoadedSuite, tree: PluginTree, said: About, into: Path) -> LoadedSuite:
    """The suite with a tree in the place of its plugin's folder, laid out in an empty folder.

    Its plugin's version says that it is patched, and with what: wherever versions are told apart, this is one of its
    own. Raises as `check_fits`.
    """
    check_fits(loaded, tree, said)
    suite, programs = loaded.suite, set(loaded.executables)
    folder = PurePosixPath(suite.plugin.path or _free(loaded))
    own = [variant.plugin_path for variant in suite.variants.values()]
    apart = [path for path in own if path is not None and PurePosixPath(path) != folder]
    kept = {
        name: TreeFile(data, name in programs)
        for name, data in loaded.files.items()
        if not is_below(name, str(folder)) or any(is_below(name, other) for other in apart)
    }
    placed = {(folder / name).as_posix(): file for name, file in tree.files.items()}
    whole = PluginTree(dict(sorted({**kept, **placed}.items())))
    whole.lay_out(into)
    version = f"{said.version or suite.plugin.version}+patched.{short(tree.digest)}"
    plugin = suite.plugin.model_copy(update={"path": str(folder), "version": version})
    return replace(
        loaded,
        suite=suite.model_copy(update={"plugin": plugin}),
        folder=into,
        files={name: file.data for name, file in whole.files.items()},
    )


def short(content: str) -> str:
    """A digest's first digits: `0123456789ab`."""
    return content.removeprefix("sha256:")[:_SHOWN_DIGITS]


def _free(loaded: LoadedSuite) -> str:
    name = _PLACE
    while any(file == name or is_below(file, name) for file in loaded.files):
        name += "-"
    return name
