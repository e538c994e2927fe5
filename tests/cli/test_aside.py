"""The process beside a command: what it is told to do it does, and what goes wrong there is told here."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cases.loader import load_suite
from evalfarm.cli import early
from evalfarm.cli.beside.aside import Aside, Listing, Servers, WorkerToBe
from evalfarm.contracts.suite import Server
from evalfarm.errors import InfrastructureError, ServerUnavailable
from evalfarm.runstate import Client, live_slots
from evalfarm.settings import Settings, load_settings

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"EVALFARM_HOME": str(tmp_path / "home")})


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    loaded = load_suite("bls")
    folder = loaded.folder.absolute()
    log = tmp_path / "server.log"
    return Servers(suite=loaded.suite, folder=folder, variants=("plain",), log=log, isolation="harness")


def broken(servers: Servers, tmp_path: Path) -> Servers:
    server = Server(python="not-there.py", startup_timeout_s=5)
    suite = servers.suite.model_copy(update={"server": server})
    return servers.model_copy(update={"suite": suite, "folder": tmp_path})


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_it_lists_servers_again_and_again_and_ends_with_its_block(settings: Settings, servers: Servers) -> None:
    before = children()
    with Aside(settings) as aside:
        first = aside.list_servers(servers)
        (started,) = children() - before
        aside.make_ready_to_seal()
        assert aside.list_servers(servers) == first
        assert children() - before == {started}
        aside.rest()
        assert children() == before
        assert aside.list_servers(servers) == first
    assert children() == before
    assert set(first) == {"plain"}
    assert isinstance(first["plain"], Listing)
    assert first["plain"].tools


def test_an_error_there_is_the_same_error_here(settings: Settings, servers: Servers, tmp_path: Path) -> None:
    with Aside(settings) as aside:
        with pytest.raises(ServerUnavailable) as told:
            aside.list_servers(broken(servers, tmp_path))
        assert told.value.message.startswith("the plugin's MCP server (not-there.py) did not come up within 5 s: ")
        assert aside.list_servers(servers)


def test_a_fault_of_ours_there_is_a_fault_here_with_its_traceback(settings: Settings) -> None:
    with Aside(settings) as aside, pytest.raises(RuntimeError) as told:
        aside.list_servers(None)  # what no caller does
    assert str(told.value) == "ValueError: no servers to list"
    assert "evalfarm/cli/beside/orders.py" in told.value.__notes__[0]


def test_its_death_is_told_and_the_next_order_starts_another(settings: Settings, servers: Servers) -> None:
    before = children()
    with Aside(settings) as aside:
        aside.make_ready_to_seal()
        (started,) = children() - before
        os.kill(started, signal.SIGKILL)
        with pytest.raises(InfrastructureError) as told:
            aside.seal("night", "redis://127.0.0.1:9/0")
        assert told.value.message == "the process that was to seal has ended with -9"
        assert aside.list_servers(servers)


def test_none_is_started_for_nothing(settings: Settings) -> None:
    before: Any = children()
    with Aside(settings):
        assert children() == before


def test_one_that_listed_servers_becomes_a_worker_that_ends_with_its_standard_input(
    settings: Settings,
    servers: Servers,
    tmp_path: Path,
    redis_url: str,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALFARM_REDIS_URL", redis_url)
    before, log, deadline = children(), tmp_path / "worker.log", time.monotonic() + 120
    with WorkerToBe(settings) as to_be:
        assert set(to_be.list_servers(servers)) == {"plain"}
        (started,) = children() - before
        worker = to_be.work(3, log)
    while live_slots(client) != 3:
        assert (time.monotonic() < deadline, worker.poll()) == (True, None), log.read_text()
        time.sleep(0.02)
    with worker:
        worker.stdin.close()  # type: ignore[union-attr]
        assert (worker.pid, worker.wait(60), f"worker-{started}@" in log.read_text()) == (started, 0, True)
    assert children() == before


@pytest.mark.parametrize(
    ("words", "environ", "wanted"),
    [
        (("run", "bls"), {}, True),
        (("run", "bls", "--workers", "2"), {}, True),
        (("run", "--help"), {}, False),
        (("run", "bls", "--dry-run"), {}, False),
        (("run", "bls"), {"EVALFARM_REDIS_URL": "redis://queue:6379/0"}, False),
        (("report", "run"), {}, False),
        ((), {}, False),
    ],
)
def test_a_worker_is_started_early_where_a_command_line_will_have_one(
    words: tuple[str, ...], environ: dict[str, str], wanted: bool
) -> None:
    assert early.is_wanted(words, environ) == wanted


def test_a_command_that_is_refused_leaves_no_early_process(tmp_path: Path) -> None:
    known = {**os.environ, "EVALFARM_HOME": str(tmp_path / "home")}
    known.pop("EVALFARM_REDIS_URL", None)
    refused = subprocess.run(
        [sys.executable, "-m", "evalfarm", "run", str(tmp_path / "none.yaml")],
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    left = [path for path in Path("/proc").glob("[0-9]*") if f"{tmp_path}/home".encode() in environ_of(path)]
    assert (refused.returncode, left) == (2, [])


def environ_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("evalfarm.cli.running.runs", ("duckdb", "numpy", "scipy", "mcp", "openai", "jinja2")),
        ("evalfarm.cli.services.tending", ("duckdb", "numpy", "scipy", "mcp", "openai", "jinja2")),
        ("evalfarm.cli.services.working", ("duckdb", "numpy", "scipy", "openai_codex", "jinja2", "rich")),
    ],
)
def test_what_runs_for_hours_does_not_hold_what_is_needed_for_a_moment(module: str, unwanted: tuple[str, ...]) -> None:
    asked = f"import sys, {module}; print([name for name in {unwanted} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
