"""Every service of the compose file as a plain process: its own command line, its environment, its secrets as files."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

pytestmark = pytest.mark.slow
PATIENCE_S = 60.0
#: service -> the option that names the port where it can be asked, and the path to ask for
ASKED = {
    "worker": ("--health-port", "/readyz"),
    "nightly-worker": ("--health-port", "/readyz"),
    "scheduler": ("--health-port", "/readyz"),
    "beat": ("--health-port", "/readyz"),
    "exporter": ("--port", "/readyz"),
    "web": ("--port", "/"),
}


@pytest.fixture
def port() -> int:
    """One that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def at_port(command: list[str], option: str, port: int) -> list[str]:
    """The command line with a port that is free here, and for this machine alone."""
    command = [word.replace("0.0.0.0", "127.0.0.1") for word in command]
    place = command.index(option) + 1
    return [*command[:place], str(port), *command[place + 1 :]]


def answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError as error:
        return getattr(error, "code", None) in (401, 403)  # it asks for a token
    except OSError:
        return False


@pytest.mark.parametrize("name", ASKED)
def test_a_service_comes_up_answers_and_stops_in_order(
    compose: dict[str, Any], name: str, root: Path, tmp_path: Path, redis_url: str, port: int
) -> None:
    service, (option, path) = compose["services"][name], ASKED[name]
    here = {"EVALFARM_REDIS_URL": redis_url, "EVALFARM_STORE_URL": f"file://{tmp_path}/store"}
    environment = service["environment"] | {"EVALFARM_STORE_URL": here["EVALFARM_STORE_URL"]}
    environment |= {"EVALFARM_FILE": str(root / "deploy/schedules/evalfarm.toml")} if name == "beat" else {}
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for secret in service["secrets"]:
        (secrets / secret["target"]).write_text(here.get(secret["target"], ""), encoding="utf-8")
    python = Path(sys.executable).parent
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "EVALFARM_HOME")}
    command = [
        str(root / "deploy/with-secrets"),
        "python",
        "-m",
        "evalfarm",
        *at_port(service["command"], option, port),
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=kept | environment | {"SECRETS_FOLDER": str(secrets), "PATH": f"{python}:{kept['PATH']}"},
            stdout=log,
            stderr=log,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not answers(port, path):
            assert process.poll() is None, (tmp_path / "log").read_text(encoding="utf-8")
            assert time.monotonic() < deadline, (tmp_path / "log").read_text(encoding="utf-8")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")
