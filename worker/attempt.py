"""One attempt: open the cell, drive the harness, write down what every witness saw. It never judges."""

import asyncio
import json
import re
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import assert_never

from evalfarm.contracts.run import FailureKind, Outcome, Trace, Trial
from evalfarm.errors import (
    EvalFarmError,
    HarnessUnavailable,
    IsolationUnavailable,
    ModelUnavailable,
    ServerUnavailable,
    StoreUnavailable,
)
from evalfarm.prices import cost_usd, side_costs
from worker.cell.cell import lay_out, open_cell
from worker.cell.codex_home import adapt
from worker.cell.codex_plugin import server_entry
from worker.gateways.model_gateway import ModelGateway
from worker.gateways.tool_gateway import ToolGateway
from worker.gateways.upstreams import Upstream
from worker.harnesses import Ending, Notes, OpenAttempt, direct, loop
from worker.plugin_server import PluginServer
from worker.station import Prepared, Station
from worker.witnesses import compare

#: Endings in mid-turn: the harness's account may lack its last calls without contradicting the gateway's.
_CUT_OFF: tuple[Outcome, ...] = ("timed_out", "crashed", "infra_failed")

_KINDS: dict[type[EvalFarmError], FailureKind] = {
    ModelUnavailable: "model",
    ServerUnavailable: "server",
    HarnessUnavailable: "harness",
    IsolationUnavailable: "isolation",
    StoreUnavailable: "store",
}

#: What Codex does not take into the name of a tool.
_NO_NAME = re.compile("[^A-Za-z0-9_]")


async def observe(
    station: Station,
    prepared: Prepared,
    trial: Trial,
    number: int,
    stopped: Callable[[], str | None] = lambda: None,
) -> Trace:
    """Run one attempt of a trial and return its trace; the cell is gone when this returns.

    Never raises for what the attempt meets: an infrastructure failure is a trace with that outcome. Nor when it is
    cancelled and `stopped` says why: what was seen so far, and paid for, is the trace.
    """
    return await _Observation(station, prepared, trial, number, stopped).run()


@dataclass(frozen=True)
class _Ground:
    """What an attempt stands on, and shares with others of this worker."""

    server: PluginServer
    upstream: Upstream | None  #: None at `direct`
    codex_home: Path | None  #: the template, for `codex`


@dataclass
class _Observation:
    """The witnesses of one attempt, and what they hold when it ends, however it ends."""

    station: Station
    prepared: Prepared
    trial: Trial
    number: int
    stopped: Callable[[], str | None]
    started_at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    duration_s: float = 0.0
    notes: Notes = field(default_factory=Notes)
    tools: ToolGateway | None = None
    model: ModelGateway | None = None

    async def run(self) -> Trace:
        try:
            async with AsyncExitStack() as stack:
                ground = await self._ground(stack)
                ending = self._outweighed(await self._drive_in_time(ground), ground.server)
                if ending.outcome == "timed_out" and self.tools is not None and self.tools.lost:
                    await self.station.drop(self.prepared, self.trial.arm.variant, ground.server)
        except EvalFarmError as error:
            ending = Ending("infra_failed", error.message, kind_of(error))
        except asyncio.CancelledError:
            if (why := self.stopped()) is None:
                raise
            ending = Ending("infra_failed", why, "stopped")
        return self._trace(ending)

    async def _ground(self, stack: AsyncExitStack) -> _Ground:
        arm = self.trial.arm
        # A second attempt has a server of its own: what the first met may have been another attempt's doing.
        server = await self.station.server(self.prepared, arm.variant, stack, alone=self.number > 1)
        upstream = None if arm.harness == "direct" else await self.station.upstream(self.prepared, arm.model)
        codex_home = None
        if arm.harness == "codex":
            codex_home = await asyncio.to_thread(self.station.template, self.prepared, arm.variant)
        return _Ground(server, upstream, codex_home)

    async def _drive_in_time(self, ground: _Ground) -> Ending:
        """Drive until the suite's limit. What is ours to set up and take down is no part of the attempt's time."""
        timeout_s = self.prepared.plan.suite.attempt_timeout_s
        self.started = time.monotonic()
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await self._drive(ground, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            return Ending("timed_out", f"not finished after {timeout_s:g} s, the suite's limit for an attempt")
        finally:
            self.duration_s = time.monotonic() - self.started

    async def _drive(self, ground: _Ground, limit: asyncio.Timeout) -> Ending:
        suite = self.prepared.plan.suite
        self.tools = tools = ToolGateway(ground.server, self.started)
        if ground.upstream is not None:
            shown = {tool.name: _written(tool.name, server_entry(suite.plugin)) for tool in tools.tools}
            self.model = ModelGateway(
                ground.upstream,
                seed=self.trial.seed,
                started=self.started,
                must_show=shown,
                on_wait=lambda seconds: _put_off(limit, seconds),
            )
        case = suite.case(self.trial.case)
        attempt = OpenAttempt(suite, case, self.trial, tools, self.model, self.started, self.notes)
        match self.trial.arm.harness:
            case "direct":
                return await direct.drive(attempt)
            case "loop":
                return await loop.drive(attempt)
            case "codex":
                return await self._drive_codex(attempt, ground)
            case unknown:
                assert_never(unknown)

    async def _drive_codex(self, attempt: OpenAttempt, ground: _Ground) -> Ending:
        """Codex in a cell of its own, from the clone of its home to the last answer."""
        if attempt.model is None or ground.codex_home is None:
            raise ValueError("codex needs a model and a prepared home")
        room = self.station.rooms / uuid.uuid4().hex[:12]
        apps = (attempt.model.app(), attempt.tools.app())
        try:
            lay_out(room, ground.codex_home)
            async with open_cell(self.station.codex, self.prepared.plan.isolation, room, apps, rewrite=adapt) as cell:
                # Imported when asked for: its SDK takes half a second, and no other harness needs it.
                codex = import_module("worker.harnesses.codex")
                ending: Ending = await codex.drive(attempt, cell)
                return ending
        finally:
            shutil.rmtree(room, ignore_errors=True)

    def _outweighed(self, ending: Ending, server: PluginServer) -> Ending:
        """What the gateways know outweighs what the harness made of it: an outage is never the agent's failing."""
        if self.tools is not None and self.tools.lost and server.shared:
            told = "the plugin's server went away or did not answer while several attempts were using it"
            return Ending("infra_failed", f"{told}; the next attempt gets one of its own", "server")
        if self.model is not None and self.model.unseen:
            missing = ", ".join(self.model.unseen)
            told = f"preflight: {self.trial.arm.harness} did not show the model {missing}"
            return Ending("infra_failed", told, "preflight")
        if self.model is not None and self.model.outage:
            return Ending("infra_failed", self.model.outage, "model")
        if ending.outcome in _CUT_OFF and self.model is not None and not self.model.answered:
            met = self.model.requests[-1].error if self.model.requests else None
            told = f"no answer ever came from the model's provider: {met}"
            return Ending("infra_failed", told, "model") if met else ending
        return ending

    def _trace(self, ending: Ending) -> Trace:
        served = tuple(self.tools.calls) if self.tools else ()
        prices, model = self.station.prices, self.trial.arm.model
        requests = side_costs(prices, model, tuple(self.model.requests)) if self.model else ()
        return Trace(
            run=self.prepared.plan.run,
            trial=self.trial,
            attempt=self.number,
            session=self.notes.session,
            outcome=ending.outcome,
            failure=ending.failure,
            failure_kind=ending.kind,
            turns=tuple(self.notes.turns),
            tool_calls=tuple(self.notes.tool_calls),
            served_calls=served,
            requests=requests,
            shell_commands=tuple(self.notes.shell_commands),
            telemetry=compare(self.notes.tool_calls, served, cut_off=ending.outcome in _CUT_OFF),
            events=tuple(self.notes.events),
            versions=self.notes.versions,
            simulated=self.model is not None and self.model.simulated,
            isolation=self.prepared.plan.isolation,
            started_at=self.started_at,
            duration_s=self.duration_s,
            cost_usd=cost_usd(prices, model, requests),
        )


def kind_of(error: EvalFarmError) -> FailureKind:
    """What broke, by the error that says so."""
    return _KINDS.get(type(error), "internal")


def _put_off(limit: asyncio.Timeout, seconds: float) -> None:
    """Waiting for a provider is no time of the agent's: without this, a rate limit would end as a verdict on it."""
    if (due := limit.when()) is not None and not limit.expired():
        limit.reschedule(due + seconds)


def _written(tool: str, server: str) -> tuple[str, ...]:
    """How a request may name a tool: as a function, or in the description of a code-running tool.

    Codex writes every character that is no letter and no digit as an underscore: `get-time` is shown as `get_time`.
    """
    plain_tool, plain_server = (_NO_NAME.sub("_", name) for name in (tool, server))
    functions = [f'"name": {json.dumps(name)}' for name in (tool, plain_tool)]
    return (*functions, f"mcp__{plain_server}__{plain_tool}")
