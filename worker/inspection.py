"""What can be found out before a run starts: each variant's tools, and what Codex would install."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Suite
from worker.cell.cell import containment
from worker.cell.codex_plugin import marketplace_digest, plugin_source
from worker.cell.codex_runtime import Codex
from worker.plugin_server import PluginServer


@dataclass(frozen=True)
class ServerListing:
    """What a variant's server shows of itself."""

    tools: tuple[str, ...]
    digest: str  #: over names, descriptions, schemas and instructions: all that a model reads


def marketplaces(suite: Suite, folder: Path, variants: tuple[str, ...]) -> dict[str, str]:
    """A digest of the marketplace that Codex installs each variant's plugin from.

    Raises SuiteError for a folder that describes no server of the plugin.
    """
    return {name: marketplace_digest(suite.plugin, plugin_source(suite, name, folder)) for name in variants}


def list_servers(
    suite: Suite,
    folder: Path,
    variants: tuple[str, ...],
    *,
    log: Path,
    codex: Codex,
    isolation: Isolation,
    environ: Mapping[str, str],
) -> dict[str, ServerListing]:
    """Start each variant's server, ask what it offers, and stop it. Raises ServerUnavailable."""

    async def ask(variant: str) -> ServerListing:
        async with AsyncExitStack() as stack:
            server = await PluginServer.start(
                suite.server_of(variant), folder, log=log, environ=environ, containment=containment(codex, isolation)
            )
            stack.push_async_callback(server.stop)
            described = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in server.tools]
            return ServerListing(tuple(tool.name for tool in server.tools), digest([described, server.instructions]))

    async def ask_all() -> list[ServerListing]:
        return await asyncio.gather(*(ask(variant) for variant in variants))

    return dict(zip(variants, asyncio.run(ask_all()), strict=True))
