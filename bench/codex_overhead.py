"""What a trial through the farm costs in wall time, against the bare Codex SDK doing the same turn.

    farm   worker.attempt.observe on an open Station: a cloned home, a sealed cell, both gateways, a whole trace
    bare   AsyncCodex on one prepared home that every turn shares: no cell, no gateway, nothing recorded

Both ask the same question, of the same simulated model, served over loopback from this process, through the same
plugin. The farm starts the plugin's server itself and speaks stdio to it; for the bare side it is served over
streamable HTTP from another process. The two take turns (farm, bare, farm, bare …), so that a machine that slows
down slows both, and the ratio is the median over pairs. Run it as `make bench`; it reaches nothing but loopback.
"""

import asyncio
import multiprocessing
import os
import platform
import runpy
import shutil
import socket
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from openai_codex import ApprovalMode, AsyncCodex, CodexConfig
from openai_codex.generated.v2_all import (
    ItemCompletedNotification,
    McpToolCallThreadItem,
    TurnCompletedNotification,
    TurnStatus,
)

from cases.loader import file_digests, load_suite
from cases.policies.offered import policies_of
from evalfarm.contracts.run import Plan
from evalfarm.settings import Settings
from evalfarm.store import Store
from graders.grade import result_of
from scheduler.planner import Axes, Measured, manifest_of, plan_run
from worker.attempt import observe
from worker.cell.cell import CODEX_HOME_INSIDE, MODEL_URL_INSIDE, TOOLS_URL_INSIDE, environment
from worker.cell.codex_plugin import mention
from worker.gateways.serving import loopback, serving
from worker.simulated_model import simulated_app
from worker.station import Prepared, Station

SUITE, CASE, VARIANT, MODEL = "bls", "unemployment-rate", "plain", "sim-careful"
CALLS = 2  #: that a right answer takes: resolve, then fetch
PAIRS = 20
PAIRS_OF_TWO = 15
WARM_UPS = 3
TARGET = 1.15  #: the most that a trial may cost, as a multiple of the bare turn

Run = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Bare:
    """A prepared home that every bare turn shares, and the question to ask in it."""

    binary: Path
    home: Path
    work: Path
    query: str

    async def turn(self) -> None:
        """Start Codex, ask, read the stream to its end, close. Raises RuntimeError for a turn without its calls."""
        env = environment(str(self.home.parent), str(self.home))
        # The SDK adds the caller's environment, so it is cleared as in a cell.
        command = ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in env.items()), str(self.binary))
        async with AsyncCodex(CodexConfig(launch_args_override=(*command, "app-server"))) as codex:
            thread = await codex.thread_start(
                approval_mode=ApprovalMode.deny_all, cwd=str(self.work), ephemeral=True, model=MODEL
            )
            turn = await thread.turn(self.query)
            calls = 0
            async for event in turn.stream():
                item = event.payload.item.root if isinstance(event.payload, ItemCompletedNotification) else None
                calls += isinstance(item, McpToolCallThreadItem) and item.error is None
                if isinstance(event.payload, TurnCompletedNotification):
                    ended = event.payload.turn
        if ended.status != TurnStatus.completed or calls != CALLS:
            raise RuntimeError(f"the bare turn ended as {ended.status.value} after {calls} calls: {ended.error}")


@dataclass
class Farm:
    """An open station with one run prepared in it; each call is the next repeat of its one case."""

    station: Station
    prepared: Prepared
    done: int = 0

    async def trial(self) -> None:
        """Run one attempt. Raises RuntimeError for a trial that did not pass: its time would mean nothing."""
        trial = self.prepared.plan.trial(self.done)
        self.done += 1
        trace = await observe(self.station, self.prepared, trial, 1)
        result = result_of(self.prepared.plan.suite, trace)
        if result.verdict != "passed":
            raise RuntimeError(f"the farm's trial ended as {result.verdict}: {'; '.join(result.reasons)}")


@asynccontextmanager
async def open_farm(settings: Settings) -> AsyncIterator[Farm]:
    """A station as in a worker process, with the benchmark's run stored where it looks for it."""
    loaded = load_suite(SUITE)
    axes = Axes((MODEL,), ("codex",), (VARIANT,), repeats=500)
    plan = plan_run(loaded.suite, axes, run="bench", cases=(CASE,), files=file_digests(loaded))
    store = Store("memory:///")
    for content in loaded.files.values():
        store.put_blob(content)
    store.put_plan(plan)
    store.put_manifest(manifest_of(plan, Measured({}, {}, simulated=True), created_at=0.0, label=None, filters={}))
    station = await Station(settings, store, {}).open()
    try:
        yield Farm(station, await station.prepare(plan.run))
    finally:
        await station.close()


@asynccontextmanager
async def open_bare(farm: Farm, room: Path) -> AsyncIterator[Bare]:
    """The same plugin in a home of its own, its model and its tools on loopback ports."""
    plan = farm.prepared.plan
    async with AsyncExitStack() as stack:
        model_at, tools_at = loopback(), loopback()
        urls = [f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (model_at, tools_at)]
        policies = policies_of(plan.suite, farm.prepared.folder)
        await stack.enter_async_context(serving(simulated_app(policies), model_at))
        server_file = farm.prepared.folder / str(plan.suite.server.python)
        tools = multiprocessing.get_context("spawn").Process(target=serve_tools, args=(server_file, tools_at))
        tools.start()
        stack.callback(tools.join)
        stack.callback(tools.kill)
        tools_at.close()
        template = await asyncio.to_thread(farm.station.template, farm.prepared, VARIANT)
        home, work = room / "home", room / "work"
        shutil.copytree(template, home)
        work.mkdir()
        for path in (home / "config.toml", *home.rglob(".mcp.json")):
            text = path.read_text(encoding="utf-8").replace(MODEL_URL_INSIDE, f"{urls[0]}/v1")
            text = text.replace(TOOLS_URL_INSIDE, f"{urls[1]}/mcp").replace(CODEX_HOME_INSIDE, str(home))
            path.write_text(text, encoding="utf-8")
        yield Bare(farm.station.codex.binary, home, work, question(plan))


def question(plan: Plan) -> str:
    """The case's question as Codex is asked it, mention of the plugin included."""
    return mention(plan.suite.plugin) + plan.suite.case(CASE).turns[0]


def serve_tools(server_file: Path, sock: socket.socket) -> None:
    """The suite's server over streamable HTTP, in a process of its own, until that process is ended."""
    # As the farm's own face: plain JSON and no session are the quicker choice, so the bare side is not held back.
    app = runpy.run_path(str(server_file))["mcp"].http_app(path="/mcp", json_response=True, stateless_http=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[sock])


async def compare(farm: Run, bare: Run, *, pairs: int, at_once: int) -> None:
    """Time both in turn and print one line."""
    times: dict[Run, list[float]] = {farm: [], bare: []}
    for number in range(WARM_UPS + pairs):
        for run in (farm, bare):
            started = time.perf_counter()
            await asyncio.gather(*(run() for _ in range(at_once)))
            if number >= WARM_UPS:
                times[run].append(time.perf_counter() - started)
    ratios = sorted(ours / theirs for ours, theirs in zip(times[farm], times[bare], strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{at_once} at a time, {pairs} pairs: farm {statistics.median(times[farm]):.3f} s, "
        f"bare SDK {statistics.median(times[bare]):.3f} s, ratio {middle:.2f} (middle half {low:.2f} to {high:.2f})"
    )
    if at_once == 1:
        print(f"target: at most {TARGET}; {'met' if middle <= TARGET else 'MISSED'}")


async def measure(home: Path) -> None:
    """Open both sides and compare them, one trial at a time and two."""
    settings = Settings(home=home)
    async with open_farm(settings) as farm:
        print(f"Codex {farm.station.codex_version}, {machine()}")
        async with open_bare(farm, home / "bare") as bare:
            await compare(farm.trial, bare.turn, pairs=PAIRS, at_once=1)
            await compare(farm.trial, bare.turn, pairs=PAIRS_OF_TWO, at_once=2)


def machine() -> str:
    """Where this was measured, in one line."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    return (
        f"{names[0] if names else platform.machine()}, {cores} cores, load {os.getloadavg()[0]:.1f}, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def main() -> None:
    """Measure in a folder of its own, which is removed afterwards."""
    # Not under the temporary folder: Codex refuses helper programs in a home there.
    home = Path(".evalfarm", f"bench-{os.getpid()}").absolute()
    home.mkdir(parents=True)
    try:
        asyncio.run(measure(home))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
