"""A patched plugin installed into a template home, as the workers of this machine will find it."""

from pathlib import Path

from evalfarm.cli.plugins.patching import homes_of, stamp_of
from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Plugin
from evalfarm.errors import HarnessUnavailable, IsolationUnavailable
from evalfarm.patches import Installed
from evalfarm.settings import Settings
from worker.cell.cell import check_isolation
from worker.cell.codex_home import template_home
from worker.cell.codex_runtime import Codex, codex_version, find_codex


def install(plugin: Plugin, tree: Path, settings: Settings) -> Installed:
    """Install a plugin's folder for the Codex of this machine.

    Raises HarnessUnavailable when Codex refuses it, SuiteError when it does not describe the server under test.
    """
    codex = find_codex(settings.codex_bin)
    version, isolation = codex_version(codex), _isolation(codex)
    home = template_home(codex, version, plugin, tree, isolation=isolation, cache=homes_of(settings))
    stamp_ns = stamp_of(home)
    if stamp_ns is None:
        raise HarnessUnavailable(f"the home {home} was cleared away while it was built", "patch the plugin again")
    return Installed(home=home.name, stamp_ns=stamp_ns, codex=version, isolation=isolation)


def codex_here(settings: Settings) -> str:
    """The version of the Codex that this machine measures. Raises HarnessUnavailable."""
    return codex_version(find_codex(settings.codex_bin))


def _isolation(codex: Codex) -> Isolation:
    try:
        check_isolation(codex, "cell")
    except IsolationUnavailable:
        return "harness"
    return "cell"
