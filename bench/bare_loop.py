"""The floor of the tool loop: the same model requests and MCP calls with the same libraries, and nothing else.

    python -m bench.bare_loop BASE_URL TRIALS

Sixteen conversations at a time in each of two processes, each process with a plugin server of its own, as in the farm.
"""

import asyncio
import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from openai import AsyncOpenAI

PROCESSES, SIDE_BY_SIDE = 2, 16
MODEL = "calls-2"
SERVER = Path(__file__).with_name("plugin_server_fastmcp.py")


async def converse(trials: int, base_url: str) -> None:
    """So many conversations of three requests and two calls. Raises RuntimeError for one that ends otherwise."""
    started = StdioServerParameters(command=sys.executable, args=[str(SERVER)], env={"PYTHONUNBUFFERED": "1"})
    async with (
        AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as model,
        Client(stdio_client(started), cache=None) as plugin,
    ):
        listed = (await plugin.list_tools()).tools
        tools: list[Any] = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.input_schema}
            for t in listed
        ]
        left = iter(range(trials))

        async def one_after_another() -> None:
            for number in left:
                await one(model, plugin, tools, f"Case case-{number % 108:03d}: what is the answer? It is 42.")

        await asyncio.gather(*(one_after_another() for _ in range(SIDE_BY_SIDE)))


async def one(model: AsyncOpenAI, plugin: Client, tools: list[Any], query: str) -> None:
    """One conversation."""
    said: list[Any] = [{"role": "user", "content": query}]
    for _ in range(3):
        response = await model.responses.create(model=MODEL, input=said, tools=tools, store=False)
        said += [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        for call in calls:
            result = await plugin.call_tool(call.name, json.loads(call.arguments))
            output = json.dumps(result.structured_content)
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        if not calls:
            break
    if "42" not in response.output_text or len(said) != 6:
        raise RuntimeError(f"a conversation of {len(said)} items that ended with {response.output_text!r}")


def run(trials: int, base_url: str) -> None:
    """In a process of its own."""
    asyncio.run(converse(trials, base_url))


if __name__ == "__main__":
    share = int(sys.argv[2]) // PROCESSES
    amounts = [share, int(sys.argv[2]) - share]
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.starmap(run, [(amount, sys.argv[1]) for amount in amounts if amount])
