import asyncio
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from cases.loader import check_tools, load_suite


def value_at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = record[name]
    return record


@pytest.mark.slow
def test_the_public_server_offers_the_tools_and_gives_what_each_direct_call_expects(interpreter: str) -> None:
    loaded = load_suite("time")
    command = loaded.suite.server.command
    assert command is not None
    assert command[0] == "python"
    calls = [case.direct for case in loaded.suite.cases if case.direct]

    async def answers() -> tuple[list[str], list[Any]]:
        async with Client(StdioTransport(interpreter, list(command[1:]))) as client:
            tools = [tool.name for tool in await client.list_tools()]
            results = [await client.call_tool(call.tool, dict(call.arguments)) for call in calls]
            return tools, [result.structured_content for result in results]

    tools, results = asyncio.run(answers())
    check_tools(loaded, "plain", tools)
    for call, result in zip(calls, results, strict=True):
        for check in call.expect.results:
            assert (value_at(result, check.at),) == check.exactly


def test_every_case_has_both_forms() -> None:
    suite = load_suite("time").suite
    assert [(case.id, len(case.turns), case.direct is not None) for case in suite.cases] == [
        ("tokyo-now", 1, True),
        ("utc-to-kathmandu", 1, True),
        ("tokyo-to-kolkata", 1, True),
        ("two-cities", 2, True),
    ]
