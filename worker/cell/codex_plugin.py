"""The plugin as Codex wants it: its folder with the server's entry pointed at the tool gateway, and its mention."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from evalfarm.contracts.base import digest, digest_bytes
from evalfarm.contracts.suite import Plugin, Suite
from evalfarm.errors import SuiteError
from worker.cell.cell import TOOLS_URL_INSIDE

MARKETPLACE = "evalfarm"
#: Seconds that Codex waits for the plugin's server. The gateway is up before Codex starts, so this is never reached.
_STARTUP_TIMEOUT_S = 30
#: What the entry of the server under test says in Codex's home.
_ENTRY: Mapping[str, object] = {
    "type": "http",
    "url": TOOLS_URL_INSIDE,
    "required": True,
    "default_tools_approval_mode": "approve",
    "startup_timeout_sec": _STARTUP_TIMEOUT_S,
}


def server_entry(plugin: Plugin) -> str:
    """The name of the server under test in the plugin's `.mcp.json`; the model sees it as `mcp__<name>`."""
    return plugin.server or plugin.name


def mention(plugin: Plugin) -> str:
    """What the product puts before a question when the user mentions the plugin."""
    return f"[@{plugin.name}](plugin://{plugin.name}@{MARKETPLACE}) "


def plugin_source(suite: Suite, variant: str, folder: Path) -> Path | None:
    """The plugin's own folder for a variant; None: one is made."""
    path = suite.variants[variant].plugin_path or suite.plugin.path
    return folder / path if path else None


class PluginFile(NamedTuple):
    """One file of a plugin's folder."""

    data: bytes
    program: bool = False  #: can be run, as a skill's scripts are


def plugin_files(plugin: Plugin, source: Path | None) -> dict[Path, PluginFile]:
    """The plugin's folder as it goes into the marketplace, by relative path.

    Of the author's own folder only the entry of the server under test is changed: its address, and what makes
    Codex wait for it (`required`) and run its tools unasked. Raises SuiteError when there is no such entry.
    """
    name = server_entry(plugin)
    if source is None:
        about = {"name": plugin.name, "version": plugin.version, "description": plugin.description}
        return {
            Path(".codex-plugin/plugin.json"): PluginFile(as_json({**about, "mcpServers": "./.mcp.json"})),
            Path(".mcp.json"): PluginFile(as_json({"mcpServers": {name: _ENTRY}})),
        }
    files = {
        path.relative_to(source): PluginFile(path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    try:
        described = json.loads(files[Path(".mcp.json")].data)
        servers = described.get("mcpServers", described)
        if name not in servers:
            raise KeyError(f"entry {name!r} in .mcp.json, which has {', '.join(map(repr, servers)) or 'none'}")
        servers[name] = _ENTRY
        files[Path(".mcp.json")] = PluginFile(as_json(described))
        json.loads(files[Path(".codex-plugin/plugin.json")].data)
    except (KeyError, ValueError, AttributeError) as error:
        wrong = f"there is no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise SuiteError(
            f"the folder of plugin {plugin.name!r} does not describe a server {name!r}: {wrong}",
            "it needs .codex-plugin/plugin.json, and a .mcp.json whose mcpServers holds that entry; "
            "plugin.server names another one",
        ) from error
    return files


def catalog(plugin: Plugin) -> bytes:
    """The marketplace's own file: what it is called, and where in it the plugin is."""
    place = {"source": "local", "path": f"./plugins/{plugin.name}"}
    listing = {
        "name": MARKETPLACE,
        "owner": {"name": "evalfarm"},
        "plugins": [{"name": plugin.name, "source": place}],
    }
    return as_json(listing)


def marketplace_digest(plugin: Plugin, source: Path | None) -> str:
    """A digest of the marketplace that Codex installs the plugin from, file by file. Raises as `plugin_files`."""
    return digest([digest_bytes(catalog(plugin)), contents(plugin_files(plugin, source))])


def contents(files: Mapping[Path, PluginFile]) -> dict[str, list[str | bool]]:
    """What files hold, to be told apart by: path -> digest, and whether it is a program."""
    return {str(path): [digest_bytes(file.data), file.program] for path, file in files.items()}


def as_json(value: object) -> bytes:
    """A file of JSON as a person would read it."""
    return (json.dumps(value, indent=2) + os.linesep).encode()
