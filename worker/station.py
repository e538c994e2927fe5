"""What one worker process keeps from attempt to attempt: plans, servers, the way to the models, Codex.

A station is opened once per worker process and serves any trial of any run. Everything in it is rebuilt on
demand, so losing it costs time and never a result.
"""

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cases.policies.offered import policies_of
from evalfarm import __version__
from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Isolation, Plan
from evalfarm.contracts.suite import Plugin, Suite
from evalfarm.errors import InfrastructureError
from evalfarm.prices import Prices, load_prices
from evalfarm.runstate import Limits, Throttle
from evalfarm.settings import Settings
from evalfarm.store import Store
from worker.cell.cell import check_isolation, containment
from worker.cell.codex_home import template_home
from worker.cell.codex_plugin import plugin_source
from worker.cell.codex_runtime import Codex, codex_version, find_codex
from worker.gateways.gate import Gate
from worker.gateways.upstreams import Upstream, is_simulated, provider, simulated
from worker.plugin_server import PluginServer
from worker.rooms import close_room, new_room, open_room


@dataclass(frozen=True)
class Prepared:
    """A run as this worker needs it: its plan, and the suite's files laid out on this machine."""

    plan: Plan
    folder: Path
    key: str  #: what servers and simulated models are kept under


class Station:
    """Opened in a worker process's event loop; closed when the process ends."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        environ: Mapping[str, str],
        throttle: Throttle | None = None,
        graders: str | None = None,
    ) -> None:
        """`environ` provides the values that a suite's `env_from` names; without `throttle` no model is limited.

        `graders`: the digest of those that judge here; a run that was begun under others is refused.
        """
        self._graders = graders
        self.throttle = throttle
        self.settings = settings
        self.store = store
        self._environ = environ
        self._stack = AsyncExitStack()
        self._prepared: dict[str, Prepared] = {}
        self._servers: dict[tuple[str, str], PluginServer] = {}
        self._upstreams: dict[str, Upstream] = {}
        self._opening = asyncio.Lock()
        self.rooms = new_room(settings.home / "cells")

    async def open(self) -> "Station":
        """Make a place for this process's rooms, and clear away those of processes that were killed."""
        self._stack.callback(close_room, self.rooms, open_room(self.rooms))
        return self

    async def close(self) -> None:
        """Stop every server and close every connection."""
        for server in self._servers.values():
            await server.stop()
        await self._stack.aclose()

    @property
    def limits(self) -> Limits:
        """The limits that trials are started under."""
        return self.throttle.limits if self.throttle is not None else Limits()

    @cached_property
    def prices(self) -> Prices:
        """The price table of this worker."""
        return load_prices(self.settings.prices)

    @cached_property
    def codex(self) -> Codex:
        """The Codex that is measured. Raises HarnessUnavailable."""
        return find_codex(self.settings.codex_bin)

    @cached_property
    def codex_version(self) -> str:
        """Its version, asked once."""
        return codex_version(self.codex)

    async def prepare(self, run: str) -> Prepared:
        """The run's plan and files, fetched once. A plan that is not the one in the manifest is refused."""
        if run not in self._prepared:
            self._prepared[run] = await asyncio.to_thread(self._fetch, run)
        return self._prepared[run]

    def _fetch(self, run: str) -> Prepared:
        plan, manifest = self.store.get_plan(run), self.store.get_manifest(run)
        if digest(plan) != manifest.digests["plan"]:
            raise InfrastructureError(
                f"the stored plan of run {run!r} is not the one in its manifest", "start a new run"
            )
        if self._graders is not None and manifest.digests.get("grader") != self._graders:
            raise InfrastructureError(
                f"run {run!r} was begun by evalfarm {manifest.evalfarm} with other graders than this worker's, "
                f"which is of version {__version__}",
                f"start workers of version {manifest.evalfarm}, or cancel the run and start a new one",
            )
        parts = [digest(plan.suite), plan.files, sorted(plan.executables)]
        key = digest(parts).removeprefix("sha256:")[:24]
        folder = self.settings.home / "suites" / key
        if not folder.is_dir():
            building = self.rooms / f"suite-{key}"
            building.mkdir(exist_ok=True)
            for name, blob in plan.files.items():
                target = building / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self.store.get_blob(blob))
                target.chmod(0o755 if name in plan.executables else 0o644)
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                building.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
                shutil.rmtree(building)  # another worker was first, with the same bytes
        return Prepared(plan, folder, key)

    async def server(
        self, prepared: Prepared, variant: str, stack: AsyncExitStack, *, alone: bool = False
    ) -> PluginServer:
        """The variant's MCP server: this worker's own; when `alone` or keeping state, one that ends with `stack`."""
        server = await self._server(prepared, variant, stack, alone=alone)
        server.take()
        stack.callback(server.let_go)
        return server

    async def drop(self, prepared: Prepared, variant: str, server: PluginServer) -> None:
        """Stop a server that does not answer, so that the next attempt starts another."""
        async with self._opening:
            if self._servers.get((prepared.key, variant)) is server:
                del self._servers[prepared.key, variant]
                await server.stop()

    async def _server(self, prepared: Prepared, variant: str, stack: AsyncExitStack, *, alone: bool) -> PluginServer:
        if alone or prepared.plan.suite.server_of(variant).stateful:
            server = await self._start_server(prepared, variant)
            stack.push_async_callback(server.stop)
            return server
        async with self._opening:
            known = self._servers.get((prepared.key, variant))
            if known is not None and await known.is_up():
                return known
            if known is not None:
                await known.stop()
            self._servers[prepared.key, variant] = server = await self._start_server(prepared, variant)
            return server

    async def _start_server(self, prepared: Prepared, variant: str) -> PluginServer:
        return await PluginServer.start(
            prepared.plan.suite.server_of(variant),
            prepared.folder,
            log=self.rooms / f"server-{prepared.key}-{variant}.log",
            environ=self._environ,
            containment=containment(self.codex, prepared.plan.isolation),
        )

    async def upstream(self, prepared: Prepared, model: str) -> Upstream:
        """Where requests for a model go. Raises ModelUnavailable without a key for a real one."""
        name = f"simulated/{prepared.key}" if is_simulated(model) else "provider"
        async with self._opening:
            if name not in self._upstreams:
                self._upstreams[name] = (
                    await simulated(policies_of(prepared.plan.suite, prepared.folder), self._stack)
                    if is_simulated(model)
                    else await provider(self.settings, self._stack)
                )
        return replace(self._upstreams[name], gate=Gate(model, self.throttle))

    def template(self, prepared: Prepared, variant: str) -> Path:
        """The prepared Codex home for a variant's plugin. Blocks while it is built."""
        suite = prepared.plan.suite
        source = plugin_source(suite, variant, prepared.folder)
        return template_home(
            self.codex,
            self.codex_version,
            suite.plugin,
            source,
            isolation=prepared.plan.isolation,
            cache=self.settings.home / "homes",
        )

    def secrets(self, suite: Suite) -> tuple[str, ...]:
        """The secret values that this worker holds: the provider's key, and what the suite's servers are handed."""
        names = {name for variant in suite.variants for name in suite.server_of(variant).env_from}
        held = [self._environ[name] for name in sorted(names) if name in self._environ]
        key = self.settings.openai_api_key
        return (*held, key.get_secret_value()) if key is not None else tuple(held)

    def prove(self, isolation: Isolation) -> None:
        """Raise IsolationUnavailable unless the isolation that was asked for works here."""
        check_isolation(self.codex, isolation)


__all__ = ["Plugin", "Prepared", "Station", "plugin_source"]
