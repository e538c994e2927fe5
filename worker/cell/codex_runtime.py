"""Which Codex is measured, and whether it starts."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import codex_cli_bin

from evalfarm.errors import HarnessUnavailable


@dataclass(frozen=True)
class Codex:
    """The Codex that is measured, and the bubblewrap that seals it in."""

    binary: Path
    package: Path  #: the folder that must be visible inside: the binary with its helpers
    bwrap: Path


def find_codex(binary: Path | None) -> Codex:
    """The Codex to measure: the one named by the settings, else the runtime that is installed with evalfarm.

    Raises HarnessUnavailable when there is none.
    """
    bundled = Path(codex_cli_bin.bundled_package_dir())
    if binary is None:
        return Codex(bundled / "bin/codex", bundled, bundled / "codex-resources/bwrap")
    if not binary.is_file() or not os.access(binary, os.X_OK):
        raise HarnessUnavailable(
            f"EVALFARM_CODEX_BIN is {binary}, which is no executable file",
            "name a Codex binary, or unset it to use the one installed here",
        )
    resolved = binary.resolve()
    package = resolved.parent.parent if resolved.parent.name == "bin" else resolved.parent
    return Codex(resolved, package, bundled / "codex-resources/bwrap")


def codex_version(codex: Codex) -> str:
    """What the binary says of itself, as in `0.163.0`. Raises HarnessUnavailable when it does not start."""
    try:
        # Even for its version Codex writes into its home: not into the user's own, and with nothing of ours in sight.
        with TemporaryDirectory(prefix="evalfarm-") as home:
            env = {"HOME": home, "CODEX_HOME": home, "PATH": os.defpath}
            argv = [str(codex.binary), "--version"]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessUnavailable(
            f"the Codex binary {codex.binary} does not start: {error}", "run it with --version to see why"
        ) from error
    if done.returncode != 0 or not done.stdout.strip():
        told = (done.stderr or done.stdout).strip()[-300:] or f"exit status {done.returncode}"
        raise HarnessUnavailable(
            f"the Codex binary {codex.binary} does not start: {told}", "run it with --version to see why"
        )
    return done.stdout.split()[-1]
