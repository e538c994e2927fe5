"""Proof that a cell works here as attempts use it, the product's own sandbox inside; or else what stands in its way."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.errors import IsolationUnavailable
from worker.cell.cell import codex_inside, sealed
from worker.cell.codex_runtime import Codex

_PATIENCE_S = 60.0
_PROC = Path("/proc")
_MORE = "allow more user namespaces: sysctl user.max_user_namespaces=10000"


def prove_cell(codex: Codex) -> str:
    """Opens a cell, and the product's own sandbox in it. Returns what was proved; raises IsolationUnavailable."""
    with TemporaryDirectory(prefix="evalfarm-") as room:
        home, work = Path(room, "home"), Path(room, "work")
        home.mkdir()
        work.mkdir()
        cell = sealed(codex, home, work)
        _works((*cell, "/bin/true"), "this machine does not allow the namespaces of an isolated cell")
        _works((*cell, codex_inside(codex), "sandbox", "/bin/true"), "Codex's own sandbox does not work inside a cell")
    return "a cell opens, and Codex's own sandbox in it"


def _works(argv: tuple[str, ...], otherwise: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IsolationUnavailable(f"{otherwise}: {error}", what_to_do(str(error), _PROC)) from error
    if done.returncode:
        told = done.stderr.strip() or f"exit status {done.returncode}"
        raise IsolationUnavailable(f"{otherwise}: {told}", what_to_do(told, _PROC))


def what_to_do(told: str, proc: Path) -> str:
    """What to do about a cell that does not open: by what bubblewrap told, and by what a process's /proc shows."""
    # ENOSPC, which in a nested namespace no file shows: the limit that was met may be an outer one's.
    room = [_MORE] if "max_" in told and _MORE not in hindrances(proc) else []
    return "; ".join(room + hindrances(proc)) or "docs/isolation.md says what a cell needs of the kernel"


def hindrances(proc: Path) -> list[str]:
    """What is known to stand in a cell's way here, by a process's /proc: what to do about each."""
    found = []
    if _number(proc / "sys/user/max_user_namespaces") == 0:
        found.append(_MORE)
    if _number(proc / "sys/kernel/unprivileged_userns_clone") == 0:
        found.append("allow them to everybody: sysctl kernel.unprivileged_userns_clone=1")
    if _number(proc / "sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        found.append("keep AppArmor from refusing them: sysctl kernel.apparmor_restrict_unprivileged_userns=0")
    status = dict(re.findall(r"^(\w+):\s*(\S+)", _text(proc / "self/status"), flags=re.MULTILINE))
    if status.get("Seccomp") == "2":
        found.append("a seccomp filter is on: seccomp=unconfined (Kubernetes: seccompProfile Unconfined)")
    profile = _text(proc / "self/attr/current").strip("\0\n ")
    if profile.endswith(")") and not profile.startswith("unconfined"):
        found.append(
            f"the AppArmor profile {profile} is on: apparmor=unconfined (Kubernetes: appArmorProfile Unconfined)"
        )
    if masked := masked_places(_text(proc / "self/mountinfo")):
        found.append(
            f"something is mounted over {', '.join(masked)}: systempaths=unconfined (Kubernetes: procMount Unmasked)"
        )
    return found


def masked_places(mountinfo: str) -> list[str]:
    """The places in /proc that something else is mounted over, at most three: no new /proc can be mounted then.

    But over binfmt_misc, as on most machines: the folder is always empty, so that the kernel does not mind.
    """
    mounted = [line.split()[4] for line in mountinfo.splitlines()]
    return [at for at in mounted if at.startswith("/proc/") and at != "/proc/sys/fs/binfmt_misc"][:3]


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # this kernel has no such thing
