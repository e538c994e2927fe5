import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from evalfarm.contracts.suite import Server
from evalfarm.errors import ServerUnavailable
from worker.cell.cell import containment
from worker.cell.codex_runtime import find_codex
from worker.gateways.serving import loopback
from worker.gateways.tool_gateway import result_value
from worker.plugin_server import PluginServer, command_of, describe

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HINT = (
    "start it by hand to see why; a Python file must call mcp.run() under `if __name__ == '__main__'`; "
    "a slow server may need a larger startup_timeout_s in the suite"
)
SECRET = "planted-for-this-very-test"


@pytest.fixture
def start(servers: Path, tmp_path: Path) -> Callable[..., Any]:
    """Starts a server of the fixtures' folder, in a PID namespace of its own, as a worker does."""

    async def go(server: Server, environ: dict[str, str] | None = None) -> PluginServer:
        prefix = containment(find_codex(None), "cell")
        return await PluginServer.start(
            server, servers, log=tmp_path / "server.log", environ=environ or {}, containment=prefix
        )

    return go


async def value_of(server: PluginServer, tool: str) -> Any:
    return result_value(await server.call(tool, {}))


@pytest.mark.parametrize(
    "server", [Server(python="bare.py"), Server(command=("python", "bare.py"))], ids=["python file", "stdio command"]
)
async def test_a_server_of_the_suite_comes_up_also_when_it_talks_out_of_turn(start: Any, server: Server) -> None:
    up = await start(server)
    try:
        assert [tool.name for tool in up.tools] == ["count", "environment", "child", "die"]
        assert (up.name, up.version, up.instructions, await up.is_up()) == ("bare", "0", "", True)
        assert (await value_of(up, "count"))["called"] == 1
    finally:
        await up.stop()
    assert await up.is_up() is False


async def test_the_servers_environment_is_what_the_suite_says_and_nothing_of_the_workers(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("EVALFARM_REDIS_URL", SECRET)
    server = Server(python="bare.py", env={"GUIDANCE": "1"}, env_from=("SHOP_TOKEN", "NOT_SET"))
    up = await start(server, {"SHOP_TOKEN": "t0ken", "OTHER": SECRET})
    try:
        found = await value_of(up, "environment")
    finally:
        await up.stop()
    inherited = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
    assert {name: value for name, value in found.items() if name not in inherited | {"PWD", "LC_CTYPE"}} == {
        "GUIDANCE": "1",
        "SHOP_TOKEN": "t0ken",
        "PYTHONUNBUFFERED": "1",
    }
    assert SECRET not in found.values()


async def failure(start: Any, server: Server) -> ServerUnavailable:
    with pytest.raises(ServerUnavailable) as caught:
        await start(server)
    return caught.value


async def test_a_server_that_crashes_at_its_start_says_why(start: Any) -> None:
    error = await failure(start, Server(python="crashes.py"))
    assert error.message.startswith(
        "the plugin's MCP server (crashes.py) did not come up within 20 s: MCPError: Connection closed; it said: "
    )
    assert error.message.endswith("RuntimeError: no catalogue")
    assert error.hint == HINT


async def test_a_server_that_says_nothing_is_given_up_with_its_last_words(start: Any) -> None:
    error = await failure(start, Server(python="silent.py", startup_timeout_s=1))
    assert error.message == ("the plugin's MCP server (silent.py) did not come up within 1 s: it said: still loading")


async def test_a_slow_server_is_given_as_long_as_the_suite_says(start: Any) -> None:
    slow = Server(python="slow.py", env={"SLOW_S": "0.6"}, startup_timeout_s=20)
    up = await start(slow)
    await up.stop()
    assert [tool.name for tool in up.tools] == ["count"]
    error = await failure(start, slow.model_copy(update={"startup_timeout_s": 0.3}))
    assert error.message == "the plugin's MCP server (slow.py) did not come up within 0.3 s: no answer"


async def test_a_server_without_tools_cannot_be_tested(start: Any) -> None:
    error = await failure(start, Server(python="toolless.py"))
    assert (error.message, error.hint) == (
        "the plugin's MCP server (toolless.py) offers no tools",
        "check what its tools/list answers",
    )


async def test_a_program_that_is_not_there_is_named(start: Any) -> None:
    error = await failure(start, Server(command=("no-such-program", "--serve")))
    assert "there is no program 'no-such-program' on this worker" in error.message


async def test_an_address_where_nobody_listens_is_no_server(start: Any) -> None:
    with loopback() as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    error = await failure(start, Server(url=url, startup_timeout_s=5))
    assert error.message.startswith(f"the plugin's MCP server ({url}) did not come up within 5 s: ")
    assert "onnect" in error.message.partition("5 s: ")[2]


async def test_a_server_that_dies_in_a_call_fails_the_call_and_is_known_to_be_gone(start: Any, tmp_path: Path) -> None:
    up = await start(Server(python="bare.py"))
    with pytest.raises(MCPError, match="Connection closed"):
        await up.call("die", {})
    await up.stop()
    assert await up.is_up() is False
    assert (tmp_path / "server.log").read_text() == "I cannot go on\n"


async def test_a_server_that_dies_between_calls_is_known_to_be_gone(
    start: Any, processes_of: Any, eventually: Any
) -> None:
    up = await start(Server(python="bare.py"))
    mark = (await value_of(up, "child"))["mark"]
    orphans = await eventually(lambda: processes_of(mark))
    kill_servers_beside(orphans[0], processes_of("bare.py"))
    await eventually(lambda: not processes_of(mark))
    await up.stop()
    assert await up.is_up() is False


def kill_servers_beside(orphan: int, servers: list[int]) -> None:
    """Kill those servers that share a PID namespace with a process that one of them started."""
    namespace = os.readlink(f"/proc/{orphan}/ns/pid")
    for server in servers:
        # Servers of tests that run beside this one come and go.
        with suppress(FileNotFoundError, ProcessLookupError):
            if os.readlink(f"/proc/{server}/ns/pid") == namespace:
                os.kill(server, signal.SIGKILL)


async def test_a_server_behind_an_address_is_up_while_it_answers(open_shop: Any) -> None:
    async with open_shop() as server:
        assert await server.is_up()
        kept = server
    assert await kept.is_up() is False


async def test_when_a_server_is_stopped_nothing_that_it_started_lives_on(
    start: Any, processes_of: Any, eventually: Any
) -> None:
    up = await start(Server(python="bare.py"))
    mark = (await value_of(up, "child"))["mark"]
    await eventually(lambda: processes_of(mark))
    await up.stop()
    await eventually(lambda: not processes_of(mark))


async def test_when_a_start_is_called_off_no_process_is_left(start: Any, processes_of: Any, eventually: Any) -> None:
    mark = f"evalfarm-called-off-{os.getpid()}"
    starting = asyncio.create_task(start(Server(command=("sh", "-c", f": {mark}; cat >/dev/null; sleep 600"))))
    await eventually(lambda: processes_of(mark))
    starting.cancel()
    await asyncio.wait((starting,))
    assert starting.cancelled()
    await eventually(lambda: not processes_of(mark))


WORKER = """
import asyncio, sys
from pathlib import Path
from evalfarm.contracts.suite import Server
from worker.cell.cell import containment
from worker.cell.codex_runtime import find_codex
from worker.plugin_server import PluginServer
from worker.gateways.tool_gateway import result_value

async def main():
    folder = Path(sys.argv[1])
    prefix = containment(find_codex(None), "cell")
    log = Path(sys.argv[2])
    up = await PluginServer.start(Server(python="bare.py"), folder, log=log, environ={}, containment=prefix)
    print(result_value(await up.call("child", {}))["mark"], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def worker(servers: Path, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A worker in a process of its own; it prints the mark of a program that its server started."""
    argv = [sys.executable, "-c", WORKER, str(servers), str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_when_the_worker_is_killed_its_server_dies_with_all_that_it_started(
    worker: Any, processes_of: Any, eventually: Any
) -> None:
    mark = worker.stdout.readline().strip()
    await eventually(lambda: processes_of(mark))  # it is told as soon as there is a process, before that is its program
    worker.kill()
    await eventually(lambda: not processes_of(mark))


@pytest.mark.parametrize(
    ("server", "argv"),
    [
        (Server(python="server.py"), (sys.executable, "/suite/server.py")),
        (Server(command=("python", "-m", "x")), (sys.executable, "-m", "x")),
        (Server(command=("python3", "-m", "x")), (sys.executable, "-m", "x")),
        (Server(command=("sh", "run.sh")), ("sh", "run.sh")),
    ],
)
def test_python_is_the_workers_own_interpreter(server: Server, argv: tuple[str, ...]) -> None:
    assert command_of(server, Path("/suite")) == argv


def test_a_server_is_described_as_the_suite_names_it_without_its_environment() -> None:
    servers = [
        Server(python="server.py", env={"TOKEN": SECRET}),
        Server(command=("sh", "run.sh"), env={"TOKEN": SECRET}),
        Server(url="http://127.0.0.1:9/mcp"),
    ]
    assert [describe(server) for server in servers] == ["server.py", "sh run.sh", "http://127.0.0.1:9/mcp"]
