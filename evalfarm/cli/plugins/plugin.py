"""`evalfarm plugin`: a plugin's working tree in the place of the released one, until it is restored."""

import json
import time
from pathlib import Path
from typing import Any, Literal

import click
from rich.table import Table
from rich.text import Text

from cases.loader import LoadedSuite, load_suite, shipped_suites
from cases.patching import check_fits, released_tree, short
from cases.plugin_tree import about, changes, is_plugin, read_tree, with_skills
from evalfarm.cli.output import stdout_console
from evalfarm.cli.plugins.installing import codex_here, install
from evalfarm.cli.plugins.patching import homes_of, rebuilt
from evalfarm.errors import UnknownName, UsageError
from evalfarm.patches import Patch, Patches, PluginTree
from evalfarm.reports import numbers
from evalfarm.reports.safe_text import harmless, one_line
from evalfarm.settings import Settings, load_settings

_NOTHING = "No plugin is patched here: runs take what their suites name."
#: Of the files that a patch changes, so many are named.
_SHOWN_FILES = 12


@click.command(epilog="Example: evalfarm plugin patch ../my-plugin --suite my-suite.yaml")
@click.argument("action", type=click.Choice(["patch", "list", "show"]))
@click.argument("subject", metavar="[PATH|PLUGIN]", required=False)
@click.option("--suite", metavar="SUITE", help="patch: a suite of the plugin. [default: the shipped one of its name]")
@click.option("--restore", is_flag=True, help="patch: put the released one back, of PLUGIN or of all that is patched.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def plugin(
    action: Literal["patch", "list", "show"], subject: str | None, suite: str | None, restore: bool, as_json: bool
) -> None:
    """Measure a plugin's working tree before it is released: runs take it until it is restored.

    patch PATH: a copy of the plugin's folder, or of its skills' (then name the --suite), is installed for Codex, and
    every `evalfarm run` of a suite of this plugin from this EVALFARM_HOME takes it; its first lines say so. Runs that
    are open already keep what they have, and schedules measure what is released. list and show say what is patched.
    """
    settings = load_settings()
    patches = Patches(settings.home)
    if restore and action != "patch":
        raise UsageError("--restore goes with `evalfarm plugin patch`", "evalfarm plugin patch --restore")
    if action == "list":
        _list(patches, as_json)
    elif action == "show":
        _show(patches, _named(subject, "show"), settings, as_json)
    elif restore:
        _restore(patches, subject, as_json)
    else:
        _patch(Path(_named(subject, "patch")), suite, patches, settings, as_json)


def _named(subject: str | None, action: str) -> str:
    if subject is None:
        what = "a working tree's path" if action == "patch" else "a plugin's name"
        raise UsageError(f"which plugin? `evalfarm plugin {action}` takes {what}", "evalfarm plugin list shows them")
    return subject


def _patch(path: Path, suite: str | None, patches: Patches, settings: Settings, as_json: bool) -> None:
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", "give the folder of the plugin's working tree")
    whole = is_plugin(path)
    tree = read_tree(path) if whole else None
    loaded = _suite(about(tree, str(path)).name if tree else None, path, suite)
    released = released_tree(loaded)
    if tree is None:
        name = loaded.suite.plugin.name
        if released is None:
            raise UsageError(f"suite {loaded.suite.suite!r} names no folder of plugin {name!r}", "give a whole plugin")
        tree = with_skills(released, path, f"plugin {name!r}")
    said = about(tree, str(path))
    check_fits(loaded, tree, said)
    if released is not None and released.digest == tree.digest:
        raise UsageError(
            f"{path} holds what is released, byte for byte: there is nothing to patch",
            "evalfarm plugin patch --restore puts the released one back, where a patch stands",
        )
    patch = _install(path, tree, said.version, loaded, patches, settings)
    document = _document(patch, settings) | {
        "released": None if released is None else released.digest,
        "released_version": loaded.suite.plugin.version,
        "files": changes({} if released is None else released.contents, tree.contents),
    }
    _tell(document, _patched_lines(patch, document), as_json)


def _install(
    path: Path, tree: PluginTree, version: str, loaded: LoadedSuite, patches: Patches, settings: Settings
) -> Patch:
    """Keep a tree, install it, and have it stand: in this order, so that what Codex refuses never stands."""
    about_it = loaded.suite.plugin
    with patches.changing():
        kept = patches.keep(about_it.name, tree)
        try:
            installed = install(about_it, kept, settings)
            patch = Patch(
                plugin=about_it.name,
                version=version,
                digest=tree.digest,
                files=tree.contents,
                left_out=tree.left_out,
                source=str(path.resolve()),
                patched_at=time.time(),
                installed=installed,
            )
            patches.stand(patch)
        except BaseException:
            patches.forget_others(about_it.name)
            raise
    return patch


def _suite(name: str | None, path: Path, asked: str | None) -> LoadedSuite:
    """The suite that says what the plugin is: the one asked for, else a shipped one of its name."""
    if asked is not None:
        return load_suite(asked)
    for suite in shipped_suites() if name is not None else ():
        loaded = load_suite(suite)
        if loaded.suite.plugin.name == name:
            return loaded
    what = f"plugin {name!r}" if name is not None else f"the plugin of {path}"
    raise UsageError(f"no shipped suite is about {what}", "name one that is: --suite my-suite.yaml")


def _restore(patches: Patches, subject: str | None, as_json: bool) -> None:
    named = [patch.plugin for patch in patches.all()] if subject is None else [_plugin_of(subject)]
    restored = [name for name in named if patches.restore(name)]
    lines = [
        f"Plugin {name}: the released one is back, for every run from now on. Runs that are open keep the patch."
        for name in restored
    ]
    lines += [f"Plugin {name} is not patched here: its runs take what is released." for name in named if not restored]
    _tell({"restored": restored}, lines or [_NOTHING], as_json)


def _plugin_of(subject: str) -> str:
    """A plugin's name, or that of the plugin in a folder."""
    path = Path(subject)
    return about(read_tree(path), subject).name if is_plugin(path) else subject


def _list(patches: Patches, as_json: bool) -> None:
    found = patches.all()
    if as_json:
        click.echo(json.dumps([_public(patch) for patch in found], indent=2))
    elif not found:
        click.echo(_NOTHING)
    else:
        table = Table("plugin", "version", "digest", "patched (UTC)", "working tree", box=None, pad_edge=False)
        for patch in found:
            when = numbers.moment(patch.patched_at).removesuffix(" UTC")
            words = (patch.plugin, patch.version, short(patch.digest), when, patch.source)
            table.add_row(*(Text(one_line(word)) for word in words))
        stdout_console().print(table)


def _show(patches: Patches, name: str, settings: Settings, as_json: bool) -> None:
    patch = patches.standing(name)
    if patch is None:
        known = ", ".join(found.plugin for found in patches.all()) or "none"
        raise UnknownName(f"plugin {name!r} is not patched here: runs take what is released", f"patched: {known}")
    document = _document(patch, settings)
    _tell(document, [f"Plugin {patch.plugin} is patched: {_known(patch)}.", *_about(document)], as_json)


def _document(patch: Patch, settings: Settings) -> dict[str, Any]:
    """What is to be known of a patch that stands, and of the home that it was installed into."""
    since = rebuilt(patch.installed, homes_of(settings), codex_here(settings), patch.installed.isolation)
    return _public(patch) | {"rebuilt": list(since)}


def _public(patch: Patch) -> dict[str, Any]:
    return patch.model_dump(mode="json", exclude={"schema_version", "files"})


def _patched_lines(patch: Patch, document: dict[str, Any]) -> list[str]:
    was = "a plugin made around the server" if document["released"] is None else short(document["released"])
    released = f"{was} (version {document['released_version']})"
    return [
        f"Plugin {patch.plugin} is patched: {_known(patch)}, in place of {released}.",
        *(f"  {kind}: {_some(names)}" for kind, names in document["files"].items() if names),
        *_about(document),
        f"Runs from this home take it until: evalfarm plugin patch {patch.plugin} --restore",
    ]


def _known(patch: Patch) -> str:
    return f"{short(patch.digest)} (version {patch.version or 'not said'})"


def _about(document: dict[str, Any]) -> list[str]:
    installed = document["installed"]
    lines = [f"  working tree: {one_line(document['source'])}, as it was at {numbers.moment(document['patched_at'])}"]
    if document["left_out"]:
        lines.append(f"  left out, as no part of a plugin or secret by name: {_some(document['left_out'])}")
    lines.append(f"  installed for Codex {installed['codex']} into home {installed['home']}")
    return lines + [f"  REBUILT: {why}; to patch it again takes note of that" for why in document["rebuilt"]]


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN_FILES
    return ", ".join(names[:_SHOWN_FILES]) + (f" and {more} more" if more > 0 else "")


def _tell(document: dict[str, Any], lines: list[str], as_json: bool) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else "\n".join(map(harmless, lines)))
