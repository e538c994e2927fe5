"""The isolated cell of one attempt: what is in it, and the two doors that lead out.

`cell` isolation is an outer bubblewrap (the one inside the Codex wheel) around the whole product: own user, PID,
IPC, UTS, cgroup and network namespaces, a cleared environment, a read-only system, a cloned home, an empty work
folder, and death with the worker. Inside, 127.0.0.1:8124 is the model gateway and 127.0.0.1:8123 the tool gateway;
there is nothing else to reach. The product's own sandbox still works inside.

`harness` isolation runs the product as it is, with a cleared environment and its own sandbox set to hide its home,
for machines that do not allow namespaces. It is named in the manifest and in every report.

No secret is ever inside: the model gateway adds the key outside.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from evalfarm.contracts.run import Isolation
from evalfarm.errors import IsolationUnavailable
from worker.cell.codex_runtime import Codex
from worker.cell.in_cell import PORTS
from worker.gateways.serving import loopback, serving

#: Where things are as the agent sees them.
HOME_INSIDE = "/home/agent"
CODEX_HOME_INSIDE = f"{HOME_INSIDE}/.codex"
WORK_INSIDE = "/work"
MODEL_URL_INSIDE = f"http://127.0.0.1:{PORTS[0]}/v1"
TOOLS_URL_INSIDE = f"http://127.0.0.1:{PORTS[1]}/mcp"

_PRELUDE = Path(__file__).with_name("in_cell.py")
_ETC = Path(__file__).with_name("etc")
_DOORS_TIMEOUT_S = 20.0


Apps = tuple[ASGIApp, ASGIApp]
"""What the two doors lead to: the model gateway's face, the tool gateway's."""


@dataclass(frozen=True)
class Cell:
    """An open cell: start the harness with this argv, in this folder."""

    argv: tuple[str, ...]
    work: str  #: the work folder as the harness sees it
    home: Path | None = None  #: the cloned Codex home, as the worker sees it


def sealed(codex: Codex, home: Path, work: Path, *, doors: Path | None = None) -> tuple[str, ...]:
    """The bubblewrap argv up to where the command inside begins. `doors`: the unix socket that takes the listeners.

    The command line holds no secret and nothing of the caller's environment: `ps` inside shows it. Nor does
    bubblewrap itself get that environment: it is process 1 inside, and /proc/1/environ can be read there.
    """
    argv = ["/usr/bin/env", "-i", str(codex.bwrap)]
    argv += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "cell"]
    argv += [f"--unshare-{space}" for space in ("user", "pid", "ipc", "uts", "net", "cgroup-try")]
    # As another user than the worker's, without any power: Codex's own sandbox still opens its namespaces.
    argv += ["--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", *_system()]
    argv += ["--ro-bind", str(codex.package), "/opt/codex"]
    argv += ["--bind", str(home), CODEX_HOME_INSIDE, "--bind", str(work), WORK_INSIDE, "--chdir", WORK_INSIDE]
    if doors is not None:
        argv += ["--ro-bind", str(_PRELUDE), "/run/in_cell.py", "--ro-bind", str(doors), "/run/doors.sock"]
    interpreter = _interpreter()
    if not interpreter.is_relative_to("/usr"):
        argv += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    for name, value in environment(HOME_INSIDE, CODEX_HOME_INSIDE).items():
        argv += ["--setenv", name, value]
    if doors is not None:
        argv += [str(interpreter), "-IS", "/run/in_cell.py"]
    return tuple(argv)


def _system() -> list[str]:
    """What of the machine is seen inside: its programs and its certificates, to read."""
    argv = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"]  # noqa: S108
    # Root owns the kernel's settings inside as outside: a worker that runs as root would hand them to its agents to
    # write, and core_pattern among them is a way out.
    for name in ("/proc/sys", "/proc/sysrq-trigger"):
        argv += ["--ro-bind-try", name, name]
    for name in ("bin", "sbin", "lib", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            argv += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            argv += ["--ro-bind", str(path), str(path)]
    for name in ("/etc/ssl", "/etc/ca-certificates", "/etc/localtime", "/etc/alternatives"):
        argv += ["--ro-bind-try", name, name]
    for name in ("passwd", "group"):  # the same user on every machine, and none of the machine's
        argv += ["--ro-bind", str(_ETC / name), f"/etc/{name}"]
    return argv


def environment(home: str, codex_home: str) -> dict[str, str]:
    """All that a harness finds in its environment."""
    return {
        "HOME": home,
        "CODEX_HOME": codex_home,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "USER": "agent",
        "SHELL": "/bin/bash",
    }


def codex_inside(codex: Codex) -> str:
    """The Codex binary's path as seen inside a sealed cell."""
    return f"/opt/codex/{codex.binary.relative_to(codex.package)}"


@asynccontextmanager
async def open_cell(
    codex: Codex, isolation: Isolation, room: Path, apps: Apps, *, rewrite: Callable[[str, str, Path], None]
) -> AsyncIterator[Cell]:
    """A cell around `room` (which holds `home/` and `work/`), its two doors leading to `apps`.

    `rewrite(model_url, tools_url, home)` is called under `harness` isolation only, where addresses differ from
    attempt to attempt and the cloned home has to be told.
    """
    async with AsyncExitStack() as stack:
        home, work = room / "home", room / "work"
        if isolation == "harness":
            sockets = [loopback() for _ in PORTS]
            model_port, tools_port = (sock.getsockname()[1] for sock in sockets)
            rewrite(f"http://127.0.0.1:{model_port}/v1", f"http://127.0.0.1:{tools_port}/mcp", home)
            await _serve(stack, sockets, apps)
            (room / "tmp").mkdir()
            env = environment(str(room), str(home)) | {"TMPDIR": str(room / "tmp")}
            command = ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in env.items()), str(codex.binary))
            yield Cell(argv=(*command, "app-server"), work=str(work), home=home)
            return
        doors = room / "doors.sock"
        listener = socket.socket(socket.AF_UNIX)
        stack.callback(listener.close)
        bind_unix(listener, doors)
        listener.listen(1)
        listener.setblocking(False)
        opening = asyncio.create_task(_open_doors(listener, doors, stack, apps))
        stack.callback(opening.cancel)
        yield Cell(
            argv=(*sealed(codex, home, work, doors=doors), codex_inside(codex), "app-server"),
            work=WORK_INSIDE,
            home=home,
        )


async def _open_doors(listener: socket.socket, path: Path, stack: AsyncExitStack, apps: Apps) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_DOORS_TIMEOUT_S):
        inside, _ = await loop.sock_accept(listener)
    listener.close()
    # The door that handed the doors out is closed for good: nothing inside can connect to it again.
    await asyncio.to_thread(path.unlink)
    with inside:
        inside.setblocking(True)
        _, descriptors, _, _ = socket.recv_fds(inside, 16, len(PORTS))
        await _serve(stack, [socket.socket(fileno=descriptor) for descriptor in descriptors], apps)
        inside.send(b"!")


async def _serve(stack: AsyncExitStack, sockets: list[socket.socket], apps: Apps) -> None:
    model, tools = apps
    await stack.enter_async_context(serving(model, sockets[0]))
    await stack.enter_async_context(serving(tools, sockets[1], lifespan="on"))


def containment(codex: Codex, isolation: Isolation) -> tuple[str, ...]:
    """An argv prefix under which a helper's whole process tree dies with this worker; empty where not possible.

    It contains processes, not secrets: it is for the plugin's own server, which its author trusts.
    """
    if isolation == "harness":
        return ()
    return (
        str(codex.bwrap),
        "--die-with-parent",
        "--unshare-user",
        "--unshare-pid",
        "--bind",
        "/",
        "/",
        "--dev-bind",
        "/dev",
        "/dev",
        "--proc",
        "/proc",
    )


def check_isolation(codex: Codex, isolation: Isolation) -> None:
    """Prove that the isolation asked for works here. Raises IsolationUnavailable with what to do."""
    if isolation == "harness":
        return
    argv = [
        str(codex.bwrap),
        *(f"--unshare-{space}" for space in ("user", "pid", "net")),
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "/bin/true",
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        told = done.stderr.strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        told = str(error)
    if told:
        raise IsolationUnavailable(
            f"this machine does not allow the namespaces of an isolated cell: {told}",
            "allow unprivileged user namespaces (in a container: a seccomp profile that permits them), or accept the "
            "product's own sandbox only, with --isolation harness; the report will say so",
        )


def _interpreter() -> Path:
    system = Path("/usr/bin/python3")
    return (
        system
        if system.exists()
        else Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    )


def lay_out(room: Path, template: Path) -> None:
    """Make an attempt's room: a clone of the prepared home (half a megabyte) and an empty work folder."""
    shutil.copytree(template, room / "home", symlinks=True)
    (room / "work").mkdir()


def bind_unix(sock: socket.socket, path: Path) -> None:
    """Bind a unix socket at any path; one over the 107 bytes allowed is reached through its folder's descriptor."""
    if len(os.fsencode(path)) < 108:
        sock.bind(str(path))
        return
    folder = os.open(path.parent, os.O_PATH)
    try:
        sock.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
