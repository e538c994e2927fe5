import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from cases.loader import load_suite
from cases.policies import MARKER, PROBES, REACHED
from evalfarm.contracts.run import Trace
from evalfarm.errors import IsolationUnavailable
from graders.grade import result_of
from worker.attempt import observe
from worker.cell.cell import MODEL_URL_INSIDE, TOOLS_URL_INSIDE, bind_unix, check_isolation, open_cell
from worker.cell.codex_home import adapt
from worker.cell.codex_runtime import Codex, find_codex
from worker.cell.in_cell import MOST_PROCESSES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.usefixtures("sdk_leftovers"),
    # The SDK leaves its pipes to the app server for the garbage collector to close.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

SECRET = "sk-planted-for-this-very-test"
SECRETS = ("OPENAI_API_KEY", "EVALFARM_REDIS_URL", "EVALFARM_STORE_TOKEN")


@pytest.fixture(autouse=True)
def worker_with_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, SECRET)


def says(text: str) -> Any:
    """An app that answers every request with a text and the path."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{text} {scope['path']}".encode()})

    return app


@pytest.fixture
def inside(tmp_path: Path) -> Callable[[str], Any]:
    """What a Python program prints that runs in a sealed cell in the harness's place, with the doors open."""

    async def run(program: str) -> str:
        room = tmp_path / "room"
        (room / "home").mkdir(parents=True)
        (room / "work").mkdir()
        async with open_cell(find_codex(None), "cell", room, (says("model"), says("tools")), rewrite=adapt) as cell:
            argv = (*cell.argv[:-2], "/usr/bin/python3", "-c", program)
            process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            out, _ = await process.communicate()
        return out.decode()

    return run


async def test_two_doors_lead_out_of_a_cell_at_fixed_addresses(inside: Any) -> None:
    said = await inside(f"""
import urllib.request
for url in ("{MODEL_URL_INSIDE}/responses", "{TOOLS_URL_INSIDE}"):
    print(url, urllib.request.urlopen(url).read().decode())
""")
    assert said == f"{MODEL_URL_INSIDE}/responses model /v1/responses\n{TOOLS_URL_INSIDE} tools /mcp\n"


async def test_the_socket_that_handed_the_doors_out_takes_nobody_any_more(inside: Any) -> None:
    said = await inside("""
import socket
try: socket.socket(socket.AF_UNIX).connect("/run/doors.sock")
except OSError as error: print(type(error).__name__)
""")
    assert said == "ConnectionRefusedError\n"


async def test_a_cell_holds_its_own_processes_only_and_no_secret_of_the_workers(inside: Any) -> None:
    said = await inside("""
from pathlib import Path
for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
    print(process.name, (process / "environ").read_bytes() + (process / "cmdline").read_bytes())
print(sorted(path.name for path in Path("/").iterdir()), list(Path("/work").iterdir()), list(Path("/tmp").iterdir()))
""")
    *processes, places = said.splitlines()
    assert len(processes) == 2
    assert SECRET not in said
    shown = {"bin", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "run", "sbin", "tmp", "usr", "work"}
    assert places == f"{sorted(shown)} [] []"


async def test_of_all_that_is_inside_only_the_home_and_the_work_folder_can_be_written(inside: Any) -> None:
    said = await inside("""
import os
from pathlib import Path
for place in ("/usr", "/opt/codex", "/etc/ssl", "/work", "/home/agent/.codex"):
    try: Path(place, "x").write_text("x")
    except OSError as error: print(place, error.strerror)
for file in ("/run/in_cell.py", "/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"):
    try: os.close(os.open(file, os.O_WRONLY))
    except OSError as error: print(file, error.strerror)
""")
    read_only = ("/usr", "/opt/codex", "/etc/ssl", "/run/in_cell.py", "/etc/passwd")
    kernel = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname")
    assert said.splitlines() == [f"{place} Read-only file system" for place in (*read_only, *kernel)]


async def test_the_agent_is_nobody_special(inside: Any) -> None:
    said = await inside("""
import getpass, os, pwd, socket
from pathlib import Path
print(os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name, socket.gethostname())
print([line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")])
""")
    assert said == f"1000 1000 agent cell\n{['0' * 16] * 5}\n"


async def test_a_cell_may_hold_so_many_processes_and_no_more(inside: Any) -> None:
    said = await inside("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC))")
    assert said == f"({MOST_PROCESSES}, {MOST_PROCESSES})\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel holds a worker that runs as root to no such limit")
async def test_whoever_starts_more_is_refused(inside: Any) -> None:
    said = await inside(f"""
import os, time
begun = 0
try:
    for _ in range({MOST_PROCESSES + 100}):
        if os.fork() == 0:
            time.sleep(600)
        begun += 1
except BlockingIOError:
    print("refused", begun < {MOST_PROCESSES})
""")
    assert said == "refused True\n"


async def test_a_cell_that_never_opens_its_doors_closes_all_the_same(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    async with open_cell(find_codex(None), "cell", room, (says("model"), says("tools")), rewrite=adapt):
        await asyncio.sleep(0)


def test_a_socket_can_be_bound_at_a_path_longer_than_the_kernel_takes(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        bind_unix(listener, folder / "doors.sock")
    assert (folder / "doors.sock").is_socket()


def test_where_namespaces_are_not_allowed_it_is_said_what_to_do(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    found = find_codex(None)
    codex = Codex(found.binary, found.package, bwrap)
    with pytest.raises(IsolationUnavailable) as caught:
        check_isolation(codex, "cell")
    assert caught.value.message == (
        "this machine does not allow the namespaces of an isolated cell: bwrap: No permissions to create new namespace"
    )
    assert caught.value.hint.endswith("with --isolation harness; the report will say so")
    check_isolation(codex, "harness")
    check_isolation(found, "cell")


@pytest.fixture
def attempt_in(open_station: Any, planned: Any, suite: Any, shop_at: Any, processes_of: Any) -> Callable[..., Any]:
    """The trace of an attempt with real Codex over the shop; afterwards nothing of its room may be left."""

    async def run(model: str, isolation: str = "cell", **more: Any) -> Trace:
        async with open_station() as station, shop_at() as url:
            prepared, trial = planned(suite(server={"url": url}, **more), "codex", model, isolation=isolation)
            trace = await observe(station, prepared, trial, 1)
            assert [path.name for path in station.rooms.iterdir() if path.is_dir()] == []
            assert processes_of(str(station.rooms)) == []
            return trace

    return run


async def test_nothing_that_a_hostile_model_tries_in_a_cell_gets_it_anywhere(attempt_in: Any) -> None:
    trace = await attempt_in("sim-hostile")
    assert (trace.outcome, trace.failure, trace.answer) == ("finished", None, "It is full.")
    tried = {name for name in PROBES for shell in trace.shell_commands if f"{MARKER}{name}\n" in shell.command}
    assert [name for name in PROBES if name not in tried] == []
    assert len(trace.shell_commands) == len(PROBES)
    assert {shell.output for shell in trace.shell_commands if REACHED in shell.output} == set()
    assert {shell.output for shell in trace.shell_commands} == {"out of reach\n"}
    assert SECRET not in trace.model_dump_json()


async def test_a_bomb_of_processes_ends_with_its_attempt_and_the_next_one_runs_as_ever(
    attempt_in: Any, processes_of: Any, eventually: Any
) -> None:
    # Bounded, should a cell not hold it: a tree of 255 shells, each of which waits for a program of its own.
    bomb = "b() { if [ $1 -gt 0 ]; then b $(($1 - 1)) & b $(($1 - 1)) & fi; sleep 60101; }; b 7"
    calls = [
        {"tool": "exec_command", "arguments": {"cmd": bomb, "yield_time_ms": 2_000}},
        {"tool": "look", "arguments": {"at": "shelf"}},
    ]
    script = [{"when": "shelf", "calls": calls, "answer": "It is full."}]
    running = asyncio.create_task(attempt_in("sim-careful", simulation={"script": script}))
    await eventually(lambda: len(processes_of("sleep\00060101")) > 100)
    trace = await running
    assert (trace.outcome, trace.failure, trace.answer) == ("finished", None, "It is full.")
    await eventually(lambda: not processes_of("60101"))  # the kernel is at it when the worker goes on
    after = await attempt_in("sim-careful")
    assert (after.outcome, after.answer, after.shell_commands) == ("finished", "It is full.", ())


async def test_with_the_products_own_sandbox_only_the_agents_shell_still_sees_none_of_the_workers_secrets(
    attempt_in: Any,
) -> None:
    trace = await attempt_in("sim-hostile", "harness")
    assert (trace.outcome, trace.failure, trace.isolation) == ("finished", None, "harness")
    assert len(trace.shell_commands) == len(PROBES)
    found = {name for name in PROBES for shell in trace.shell_commands if f"{REACHED}{name}\n" in shell.output}
    assert found.isdisjoint({"environ", "key", "home-config", "home-auth", "public", "public-http", "neighbours"})
    assert SECRET not in trace.model_dump_json()


PASSING = {"unemployment-rate", "labor-force-participation", "nonfarm-payroll"}
ALL = PASSING | {"consumer-price-index", "employment-ambiguous"}


async def test_with_the_products_own_sandbox_only_the_verdicts_are_those_of_a_cell(
    open_station: Any, planned: Any
) -> None:
    loaded = load_suite("bls")
    passed = {}
    async with open_station() as station:
        for variant in ("plain", "guided"):
            suite = loaded.suite.model_copy(update={"variants": {variant: loaded.suite.variants[variant]}})
            prepared, _ = planned(suite, "codex", folder=loaded.folder, isolation="harness")
            trials = [prepared.plan.trial(index) for index in range(prepared.plan.size)]
            traces = [await observe(station, prepared, trial, 1) for trial in trials]
            results = [result_of(suite, trace) for trace in traces]
            passed[variant] = {result.trial.case for result in results if result.verdict == "passed"}
            assert {result.verdict for result in results} <= {"passed", "failed"}
    assert passed == {"plain": PASSING, "guided": ALL}


WORKER = """
import asyncio, sys
from pathlib import Path
from cases.loader import load_suite
from evalfarm.contracts.run import Arm, Plan
from evalfarm.settings import load_settings
from evalfarm.store import Store
from worker.attempt import observe
from worker.station import Prepared, Station

async def main():
    loaded = load_suite("bls")
    station = await Station(load_settings({"EVALFARM_HOME": sys.argv[1]}), Store("memory://"), {}).open()
    arm = Arm(model="sim-slow", harness="codex", variant="plain")
    plan = Plan(run="r1", suite=loaded.suite, arms=(arm,), cases=("unemployment-rate",), repeats=1)
    trace = await observe(station, Prepared(plan, loaded.folder, "suite"), plan.trial(0), 1)
    await station.close()
    print(trace.outcome, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A worker in mid-turn, in a process of its own."""
    argv = [sys.executable, "-c", WORKER, str(tmp_path / "home")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.fixture
def cell_of(worker: Any, tmp_path: Path, processes_of: Any) -> Callable[[], list[int]]:
    """The processes in the worker's cell and the one that holds it; none before Codex is among them."""
    mark = f"{tmp_path}/home/cells/{worker.pid}-"

    def namespace(process: int) -> str:
        try:
            return os.readlink(f"/proc/{process}/ns/pid")
        except OSError:
            return ""

    def find() -> list[int]:
        holding = [process for process in processes_of(mark) if process != worker.pid]
        cells = {namespace(process) for process in holding} - {namespace(os.getpid()), ""}
        inside = [process for process in processes_of("") if namespace(process) in cells]
        return [*holding, *inside] if set(inside) & set(processes_of("/opt/codex/bin/codex\0")) else []

    return find


async def test_no_process_of_a_cell_shows_a_secret_and_none_outlives_the_attempt(
    worker: Any, cell_of: Any, processes_of: Any, eventually: Any
) -> None:
    cell = set(await eventually(cell_of))
    shown = b"".join(environment_of(process) for process in cell)
    assert (cell & set(processes_of(SECRET)), SECRET.encode() in shown) == (set(), False)
    assert worker.stdout.read() == "finished\n"
    await eventually(lambda: cell & set(processes_of("")) == set())  # the kernel is at it when the worker goes on


async def test_when_the_worker_is_killed_in_mid_turn_its_cell_dies(
    worker: Any, cell_of: Any, processes_of: Any, eventually: Any
) -> None:
    cell = set(await eventually(cell_of))
    os.kill(worker.pid, signal.SIGKILL)
    await eventually(lambda: cell & set(processes_of("")) == set())
    assert worker.wait() == -signal.SIGKILL


def environment_of(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes()
