"""One attempt: open the cell, drive the harness, write down what every witness saw. It never judges."""

import asyncio
import shutil
import time
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass

from evalfarm.contracts.run import Outcome, Plan, Trace, Trial
from evalfarm.errors import InfrastructureError, ServerUnavailable
from worker.cell import lay_out, open_cell
from worker.codex_home import adapt, server_entry
from worker.harnesses import Ending, Notes, OpenAttempt, codex, direct, loop
from worker.model_gateway import ModelGateway
from worker.station import Prepared, Station
from worker.tool_gateway import ToolGateway
from worker.witnesses import compare


@dataclass
class _Seen:
    """What the witnesses hold when the attempt ends, however it ends."""

    notes: Notes
    tools: ToolGateway | None = None
    model: ModelGateway | None = None


async def observe(station: Station, prepared: Prepared, trial: Trial, number: int) -> Trace:
    """Run one attempt of a trial and return its trace; the cell is gone when this returns.

    Never raises for what the attempt meets: an infrastructure failure is a trace with that outcome.
    """
    started_at, started = time.time(), time.monotonic()
    seen = _Seen(Notes())
    timeout_s = prepared.plan.suite.attempt_timeout_s
    try:
        async with AsyncExitStack() as stack, asyncio.timeout(timeout_s):
            ending = await _drive(station, prepared, trial, started, seen, stack)
    except TimeoutError:
        ending = Ending("timed_out", f"not finished after {timeout_s:g} s, the suite's limit for an attempt")
    except InfrastructureError as error:
        ending = Ending("infra_failed", error.message)
    duration_s = time.monotonic() - started
    return _trace(
        station, prepared.plan, trial, number, _final(ending, seen), seen, started_at=started_at, duration_s=duration_s
    )


async def _drive(
    station: Station, prepared: Prepared, trial: Trial, started: float, seen: _Seen, stack: AsyncExitStack
) -> Ending:
    suite, arm = prepared.plan.suite, trial.arm
    seen.tools = tools = ToolGateway(await station.server(prepared, arm.variant, stack), started)
    if arm.harness != "direct":
        upstream = await station.upstream(prepared, arm.model)
        must_show = {tool.name: _written(tool.name, server_entry(suite.plugin)) for tool in tools.tools}
        seen.model = ModelGateway(upstream, seed=trial.seed, started=started, must_show=must_show)
    attempt = OpenAttempt(suite, suite.case(trial.case), trial, tools, seen.model, started, seen.notes)
    if arm.harness == "direct":
        return await direct.drive(attempt)
    if arm.harness == "loop":
        return await loop.drive(attempt)
    room = station.rooms / uuid.uuid4().hex[:12]
    stack.callback(shutil.rmtree, room, ignore_errors=True)
    lay_out(room, await asyncio.to_thread(station.template, prepared, arm.variant))
    assert seen.model is not None
    cell = await stack.enter_async_context(
        open_cell(
            station.codex, prepared.plan.isolation, room=room, model=seen.model.app(), tools=tools.app(), rewrite=adapt
        )
    )
    return await codex.drive(attempt, cell)


def _written(tool: str, server: str) -> tuple[str, ...]:
    """How a request may name a tool: as a function, or in the description of a code-running tool."""
    return (f'"name": "{tool}"', f"mcp__{server}__{tool}")


def _final(ending: Ending, seen: _Seen) -> Ending:
    """What the gateways know outweighs what the harness made of it: an outage is never the agent's failing."""
    if seen.model is not None and seen.model.unseen:
        missing = ", ".join(seen.model.unseen)
        told = ServerUnavailable(f"preflight: the harness did not show the model the plugin's tools ({missing})")
        return Ending("infra_failed", told.message)
    if seen.model is not None and seen.model.outage:
        return Ending("infra_failed", seen.model.outage)
    return ending


def _trace(
    station: Station,
    plan: Plan,
    trial: Trial,
    number: int,
    ending: Ending,
    seen: _Seen,
    *,
    started_at: float,
    duration_s: float,
) -> Trace:
    served = tuple(seen.tools.calls) if seen.tools else ()
    requests = tuple(seen.model.requests) if seen.model else ()
    cut_off: tuple[Outcome, ...] = ("timed_out", "crashed", "infra_failed")
    costs = [
        station.prices.cost_usd(
            trial.arm.model, input_tokens=r.input_tokens, cached_tokens=r.cached_tokens, output_tokens=r.output_tokens
        )
        for r in requests
    ]
    known = [cost for cost in costs if cost is not None]
    return Trace(
        run=plan.run,
        trial=trial,
        attempt=number,
        outcome=ending.outcome,
        failure=ending.failure,
        turns=tuple(seen.notes.turns),
        tool_calls=tuple(seen.notes.tool_calls),
        served_calls=served,
        requests=requests,
        shell_commands=tuple(seen.notes.shell_commands),
        telemetry=compare(seen.notes.tool_calls, served, cut_off=ending.outcome in cut_off),
        events=tuple(seen.notes.events),
        versions=seen.notes.versions,
        simulated=seen.model is not None and seen.model.simulated,
        isolation=plan.isolation,
        started_at=started_at,
        duration_s=duration_s,
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )
