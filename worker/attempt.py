"""One attempt: open the cell, drive the harness, write down what every witness saw. It never judges."""

import asyncio
import shutil
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from evalfarm.contracts.run import ModelRequest, Outcome, Trace, Trial
from evalfarm.errors import InfrastructureError
from evalfarm.prices import Prices
from worker.cell import lay_out, open_cell
from worker.codex_home import adapt, server_entry
from worker.harnesses import Ending, Notes, OpenAttempt, codex, direct, loop
from worker.model_gateway import ModelGateway
from worker.station import Prepared, Station
from worker.tool_gateway import ToolGateway
from worker.witnesses import compare

#: Endings in mid-turn: the harness's account may lack its last calls without contradicting the gateway's.
_CUT_OFF: tuple[Outcome, ...] = ("timed_out", "crashed", "infra_failed")


async def observe(station: Station, prepared: Prepared, trial: Trial, number: int) -> Trace:
    """Run one attempt of a trial and return its trace; the cell is gone when this returns.

    Never raises for what the attempt meets: an infrastructure failure is a trace with that outcome.
    """
    return await _Observation(station, prepared, trial, number).run()


@dataclass
class _Observation:
    """The witnesses of one attempt, and what they hold when it ends, however it ends."""

    station: Station
    prepared: Prepared
    trial: Trial
    number: int
    started_at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    notes: Notes = field(default_factory=Notes)
    tools: ToolGateway | None = None
    model: ModelGateway | None = None

    async def run(self) -> Trace:
        timeout_s = self.prepared.plan.suite.attempt_timeout_s
        try:
            async with AsyncExitStack() as stack, asyncio.timeout(timeout_s):
                ending = await self._drive(stack)
        except TimeoutError:
            ending = Ending("timed_out", f"not finished after {timeout_s:g} s, the suite's limit for an attempt")
        except InfrastructureError as error:
            ending = Ending("infra_failed", error.message)
        return self._trace(self._outweighed(ending), time.monotonic() - self.started)

    async def _drive(self, stack: AsyncExitStack) -> Ending:
        suite, arm = self.prepared.plan.suite, self.trial.arm
        server = await self.station.server(self.prepared, arm.variant, stack)
        self.tools = tools = ToolGateway(server, self.started)
        if arm.harness == "direct":
            return await direct.drive(self._open(tools))
        must_show = {tool.name: _written(tool.name, server_entry(suite.plugin)) for tool in tools.tools}
        upstream = await self.station.upstream(self.prepared, arm.model)
        self.model = model = ModelGateway(upstream, seed=self.trial.seed, started=self.started, must_show=must_show)
        if arm.harness == "loop":
            return await loop.drive(self._open(tools))
        room = self.station.rooms / uuid.uuid4().hex[:12]
        stack.callback(shutil.rmtree, room, ignore_errors=True)
        lay_out(room, await asyncio.to_thread(self.station.template, self.prepared, arm.variant))
        isolation = self.prepared.plan.isolation
        cell = await stack.enter_async_context(
            open_cell(self.station.codex, isolation, room=room, model=model.app(), tools=tools.app(), rewrite=adapt)
        )
        return await codex.drive(self._open(tools), cell)

    def _open(self, tools: ToolGateway) -> OpenAttempt:
        suite = self.prepared.plan.suite
        return OpenAttempt(suite, suite.case(self.trial.case), self.trial, tools, self.model, self.started, self.notes)

    def _outweighed(self, ending: Ending) -> Ending:
        """What the gateways know outweighs what the harness made of it: an outage is never the agent's failing."""
        if self.model is not None and self.model.unseen:
            missing = ", ".join(self.model.unseen)
            return Ending("infra_failed", f"preflight: {self.trial.arm.harness} did not show the model {missing}")
        if self.model is not None and self.model.outage:
            return Ending("infra_failed", self.model.outage)
        return ending

    def _trace(self, ending: Ending, duration_s: float) -> Trace:
        served = tuple(self.tools.calls) if self.tools else ()
        requests = tuple(self.model.requests) if self.model else ()
        return Trace(
            run=self.prepared.plan.run,
            trial=self.trial,
            attempt=self.number,
            outcome=ending.outcome,
            failure=ending.failure,
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
            duration_s=duration_s,
            cost_usd=cost_usd(self.station.prices, self.trial.arm.model, requests),
        )


def cost_usd(prices: Prices, model: str, requests: tuple[ModelRequest, ...]) -> float | None:
    """What an attempt's requests cost together; None as soon as one is unknown, zero only where none was made."""
    total = 0.0
    for request in requests:
        cost = prices.cost_usd(
            model,
            input_tokens=request.input_tokens,
            cached_tokens=request.cached_tokens,
            output_tokens=request.output_tokens,
        )
        if cost is None:
            return None
        total += cost
    return total


def _written(tool: str, server: str) -> tuple[str, ...]:
    """How a request may name a tool: as a function, or in the description of a code-running tool."""
    return (f'"name": "{tool}"', f"mcp__{server}__{tool}")
