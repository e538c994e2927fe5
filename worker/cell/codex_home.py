"""A Codex home with the plugin really installed: built once per plugin and Codex version, cloned per attempt.

    config.toml                      where the model is, no web search, the marketplace, the plugin enabled
    auth.json                        a placeholder key: the gateway outside adds the real one
    marketplaces/evalfarm/…          the plugin's folder, its server's entry pointed at the tool gateway
    plugins/cache/evalfarm/<p>/…     what `codex plugin add` made of it
    *.sqlite                         the databases that Codex makes at its first start

Paths and addresses inside are the cell's, which are the same in every attempt, so a clone needs no rewriting.
"""

import fcntl
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Plugin
from evalfarm.errors import HarnessUnavailable
from worker.cell.cell import CODEX_HOME_INSIDE, MODEL_URL_INSIDE, TOOLS_URL_INSIDE, codex_inside, environment, sealed
from worker.cell.codex_plugin import MARKETPLACE, PluginFile, catalog, contents, plugin_files
from worker.cell.codex_runtime import Codex

#: Seconds that one step of building a home may take; each takes well under one.
_STEP_TIMEOUT_S = 60
#: The first message of the app server's protocol; its answer says that Codex has started.
_HELLO = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"evalfarm","version":"1"}}}\n'


#: The product's defaults but for where the model is, and no web search. The harness takes this file and the
#: placeholder key away before the model's first word; a permission profile that hid them would cost 60 ms a trial.
_CONFIG = f"""\
openai_base_url = "{MODEL_URL_INSIDE}"
web_search = "disabled"

[shell_environment_policy]
inherit = "core"

[marketplaces.{MARKETPLACE}]
source_type = "local"
source = "{{home}}/marketplaces/{MARKETPLACE}"

[plugins."{{plugin}}@{MARKETPLACE}"]
enabled = true
"""


def template_home(
    codex: Codex, version: str, plugin: Plugin, source: Path | None, *, isolation: Isolation, cache: Path
) -> Path:
    """The prepared home for a plugin, built now if it is not there yet. Safe for several workers at once.

    `source` is the plugin's folder (None: one is made from the plugin's name and description), `cache` the folder
    that holds all templates. Raises HarnessUnavailable when Codex refuses the plugin.
    """
    files = plugin_files(plugin, source)
    told = {"codex": version, "plugin": plugin.name, "files": contents(files), "isolation": isolation, "layout": 4}
    key = digest(told)
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


def adapt(model_url: str, tools_url: str, home: Path) -> None:
    """Tell a cloned home its addresses, and its own, under `harness` isolation."""
    config = home / "config.toml"
    text = config.read_text(encoding="utf-8").replace(MODEL_URL_INSIDE, model_url).replace(CODEX_HOME_INSIDE, str(home))
    config.write_text(text, encoding="utf-8")
    for path in home.rglob(".mcp.json"):
        path.write_text(path.read_text(encoding="utf-8").replace(TOOLS_URL_INSIDE, tools_url), encoding="utf-8")


def _build(codex: Codex, plugin: Plugin, files: Mapping[Path, PluginFile], isolation: Isolation, home: Path) -> None:
    marketplace = home / "marketplaces" / MARKETPLACE
    for path, file in files.items():
        target = marketplace / "plugins" / plugin.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.data)
        target.chmod(0o755 if file.program else 0o644)
    listing = marketplace / ".agents/plugins/marketplace.json"
    listing.parent.mkdir(parents=True)
    listing.write_bytes(catalog(plugin))
    inside = CODEX_HOME_INSIDE if isolation == "cell" else str(home)
    (home / "config.toml").write_text(_CONFIG.format(home=inside, plugin=plugin.name), encoding="utf-8")
    _codex(codex, home, isolation, "login", "--with-api-key", stdin="placeholder")
    _codex(codex, home, isolation, "plugin", "add", f"{plugin.name}@{MARKETPLACE}")
    if not any((home / "plugins").rglob("plugin.json")):
        raise HarnessUnavailable(f"Codex installed nothing for plugin {plugin.name!r}", "is its plugin.json complete?")
    _start_once(codex, home, isolation)
    # Its own skills go too: to copy their 45 files takes as long as it takes Codex to write them again.
    for leftover in ("tmp", ".tmp", "log", "skills"):
        shutil.rmtree(home / leftover, ignore_errors=True)
    if isolation == "harness":  # from here on the home is addressed as in a cell, and `adapt` rewrites each clone
        config = home / "config.toml"
        config.write_text(config.read_text(encoding="utf-8").replace(str(home), CODEX_HOME_INSIDE), encoding="utf-8")


def _codex(codex: Codex, home: Path, isolation: Isolation, *command: str, stdin: str = "") -> None:
    with _inside(codex, home, isolation, command) as (argv, env):
        try:
            done = subprocess.run(
                argv, input=stdin, capture_output=True, text=True, timeout=_STEP_TIMEOUT_S, check=False, env=env
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessUnavailable(
                f"codex {command[0]} does not run: {error}", "evalfarm doctor shows what works here"
            ) from error
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip()[-500:]
        raise HarnessUnavailable(
            f"codex {' '.join(command)} failed: {told}", "is the plugin's folder as Codex wants it?"
        )


def _start_once(codex: Codex, home: Path, isolation: Isolation) -> None:
    """Let Codex make its databases now: they take a third of its start in a home that it was never started in."""
    with _inside(codex, home, isolation, ("app-server",)) as (argv, env):
        try:
            answered = _answers_hello(argv, env)
        except OSError as error:
            raise HarnessUnavailable(
                f"codex app-server does not run: {error}", "evalfarm doctor shows what works here"
            ) from error
    if not answered:
        raise HarnessUnavailable(
            "codex app-server ended without an answer in a new home", "evalfarm doctor shows what works here"
        )
    for database in home.glob("*.sqlite"):  # each into one file: what a clone copies shrinks from 3 MB to half of one
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _answers_hello(argv: list[str], env: dict[str, str] | None) -> bool:
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        patience = threading.Timer(_STEP_TIMEOUT_S, server.kill)
        patience.start()
        try:
            server.stdin.write(_HELLO)
            server.stdin.flush()
            return bool(server.stdout.readline())
        finally:
            patience.cancel()
            server.terminate()  # at the end of its input it would stop too, but takes five seconds over it
            server.stdout.read()  # until the last process inside has let go


@contextmanager
def _inside(
    codex: Codex, home: Path, isolation: Isolation, command: tuple[str, ...]
) -> Iterator[tuple[list[str], dict[str, str] | None]]:
    """The argv and the environment of a codex command on a home, isolated as attempts on it will be."""
    if isolation == "harness":
        yield [str(codex.binary), *command], environment(str(home), str(home))
        return
    work = home.parent / f"{home.name}.work"
    work.mkdir(exist_ok=True)
    try:
        yield [*sealed(codex, home, work), codex_inside(codex), *command], None
    finally:
        shutil.rmtree(work, ignore_errors=True)
