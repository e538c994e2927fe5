"""A Codex home with the plugin really installed: built once per plugin and Codex version, cloned per attempt.

    config.toml                      where the model is, no web search, the marketplace, the plugin enabled
    auth.json                        a placeholder key: the gateway outside adds the real one
    marketplaces/evalfarm/…          the plugin's folder, its server's entry pointed at the tool gateway
    plugins/cache/evalfarm/<p>/…     what `codex plugin add` made of it

Paths and addresses inside are the cell's, which are the same in every attempt, so a clone needs no rewriting.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from evalfarm.contracts.base import digest, digest_bytes
from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Plugin
from evalfarm.errors import HarnessUnavailable, SuiteError
from worker.cell import CODEX_HOME_INSIDE, MODEL_URL_INSIDE, TOOLS_URL_INSIDE, codex_inside, environment, sealed
from worker.codex_runtime import Codex

MARKETPLACE = "evalfarm"
#: Seconds that Codex waits for the plugin's server. The gateway is up before Codex starts, so this is never reached.
_STARTUP_TIMEOUT_S = 30


def server_entry(plugin: Plugin) -> str:
    """The name of the server under test in the plugin's `.mcp.json`; the model sees it as `mcp__<name>`."""
    return plugin.server or plugin.name


def mention(plugin: Plugin) -> str:
    """What the product puts before a question when the user mentions the plugin."""
    return f"[@{plugin.name}](plugin://{plugin.name}@{MARKETPLACE}) "


def template_home(
    codex: Codex, version: str, plugin: Plugin, source: Path | None, *, isolation: Isolation, cache: Path
) -> Path:
    """The prepared home for a plugin, built now if it is not there yet. Safe for several workers at once.

    `source` is the plugin's folder (None: one is made from the plugin's name and description), `cache` the folder
    that holds all templates. Raises HarnessUnavailable when Codex refuses the plugin.
    """
    files = plugin_files(plugin, source)
    contents = {str(path): [digest_bytes(file.data), file.program] for path, file in files.items()}
    key = digest({"codex": version, "plugin": plugin.name, "files": contents, "isolation": isolation, "layout": 1})
    ready = cache / key.removeprefix("sha256:")[:24]
    if ready.is_dir():
        return ready
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.is_dir():
            building = cache / f"{ready.name}.building"
            shutil.rmtree(building, ignore_errors=True)
            _build(codex, plugin, files, isolation, building)
            building.rename(ready)
    return ready


class PluginFile(NamedTuple):
    """One file of a plugin's folder."""

    data: bytes
    program: bool = False  #: can be run, as a skill's scripts are


def plugin_files(plugin: Plugin, source: Path | None) -> dict[Path, PluginFile]:
    """The plugin's folder as it goes into the marketplace, by relative path.

    Of the author's own folder only the entry of the server under test is changed: its address, and what makes
    Codex wait for it (`required`) and run its tools unasked. Raises SuiteError when there is no such entry.
    """
    entry = {
        "type": "http",
        "url": TOOLS_URL_INSIDE,
        "required": True,
        "default_tools_approval_mode": "approve",
        "startup_timeout_sec": _STARTUP_TIMEOUT_S,
    }
    name = server_entry(plugin)
    if source is None:
        about = {"name": plugin.name, "version": plugin.version, "description": plugin.description}
        return {
            Path(".codex-plugin/plugin.json"): PluginFile(_json({**about, "mcpServers": "./.mcp.json"})),
            Path(".mcp.json"): PluginFile(_json({"mcpServers": {name: entry}})),
        }
    files = {
        path.relative_to(source): PluginFile(path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(source.rglob("*"))
        if path.is_file()
    }
    try:
        described = json.loads(files[Path(".mcp.json")].data)
        servers = described.get("mcpServers", described)
        servers[name] = entry if name in servers else servers[name]
        files[Path(".mcp.json")] = PluginFile(_json(described))
        json.loads(files[Path(".codex-plugin/plugin.json")].data)
    except (KeyError, ValueError, AttributeError) as error:
        raise SuiteError(
            f"folder {source.name!r} of plugin {plugin.name!r} does not describe a server {name!r}: {error!r}",
            "it needs .codex-plugin/plugin.json, and a .mcp.json whose mcpServers holds that entry; "
            "plugin.server names another one",
        ) from error
    return files


def adapt(model_url: str, tools_url: str, home: Path) -> None:
    """Tell a cloned home its addresses under `harness` isolation, and hide it from the agent's shell."""
    config = home / "config.toml"
    text = config.read_text(encoding="utf-8").replace(MODEL_URL_INSIDE, model_url).replace(CODEX_HOME_INSIDE, str(home))
    hidden = '[permissions.eval]\nextends = ":read-only"\n\n'
    hidden += f'[permissions.eval.filesystem]\n{json.dumps(str(home))} = "deny"\n'
    shell = '[shell_environment_policy]\ninherit = "core"\n'
    config.write_text(f'default_permissions = "eval"\n{text}\n{hidden}\n{shell}', encoding="utf-8")
    for path in home.rglob(".mcp.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(TOOLS_URL_INSIDE, tools_url), encoding="utf-8")


def _build(codex: Codex, plugin: Plugin, files: Mapping[Path, PluginFile], isolation: Isolation, home: Path) -> None:
    marketplace = home / "marketplaces" / MARKETPLACE
    for path, file in files.items():
        target = marketplace / "plugins" / plugin.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(0o755 if file.program else 0o644)
    listing = {
        "name": MARKETPLACE,
        "owner": {"name": "evalfarm"},
        "plugins": [{"name": plugin.name, "source": {"source": "local", "path": f"./plugins/{plugin.name}"}}],
    }
    catalog = marketplace / ".agents/plugins/marketplace.json"
    catalog.parent.mkdir(parents=True)
    catalog.write_bytes(_json(listing))
    inside = CODEX_HOME_INSIDE if isolation == "cell" else str(home)
    (home / "config.toml").write_text(
        f'openai_base_url = "{MODEL_URL_INSIDE}"\nweb_search = "disabled"\n\n'
        f'[marketplaces.{MARKETPLACE}]\nsource_type = "local"\nsource = "{inside}/marketplaces/{MARKETPLACE}"\n\n'
        f'[plugins."{plugin.name}@{MARKETPLACE}"]\nenabled = true\n',
        encoding="utf-8",
    )
    _codex(codex, home, isolation, "login", "--with-api-key", stdin="placeholder")
    _codex(codex, home, isolation, "plugin", "add", f"{plugin.name}@{MARKETPLACE}")
    if not any((home / "plugins").rglob("plugin.json")):
        raise HarnessUnavailable(f"Codex installed nothing for plugin {plugin.name!r}", "is its plugin.json complete?")
    for leftover in ("tmp", "log"):
        shutil.rmtree(home / leftover, ignore_errors=True)
    if isolation == "harness":  # from here on the home is addressed as in a cell, and `adapt` rewrites each clone
        config = home / "config.toml"
        config.write_text(config.read_text(encoding="utf-8").replace(str(home), CODEX_HOME_INSIDE), encoding="utf-8")


def _codex(codex: Codex, home: Path, isolation: Isolation, *command: str, stdin: str = "") -> None:
    if isolation == "cell":
        work = home.parent / f"{home.name}.work"
        work.mkdir(exist_ok=True)
        argv = [*sealed(codex, home, work), codex_inside(codex), *command]
        env: dict[str, str] | None = None
    else:
        argv, env = [str(codex.binary), *command], environment(str(home), str(home))
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessUnavailable(
            f"codex {command[0]} does not run: {error}", "evalfarm doctor shows what works here"
        ) from error
    finally:
        if isolation == "cell":
            shutil.rmtree(work, ignore_errors=True)
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()[-500:]
        raise HarnessUnavailable(
            f"codex {' '.join(command)} failed: {told}", "is the plugin's folder as Codex wants it?"
        )


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + os.linesep).encode()
