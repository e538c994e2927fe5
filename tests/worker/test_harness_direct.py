from typing import Any

import pytest

from evalfarm.contracts.run import ToolCall, Turn
from worker.harnesses import FINISHED, direct

pytestmark = pytest.mark.anyio


async def test_the_structured_input_goes_straight_to_the_tool(open_shop: Any, attempt: Any) -> None:
    async with open_shop() as server:
        at_work = attempt(server, harness="direct")
        assert await direct.drive(at_work) == FINISHED
    notes = at_work.notes
    assert notes.turns == [Turn(query='look({"at": "the shelf"})', answer='{"seen":"the shelf"}')]
    assert notes.tool_calls == [ToolCall(name="look", arguments={"at": "the shelf"}, result={"seen": "the shelf"})]
    assert [(call.name, call.arguments, call.result) for call in at_work.tools.calls] == [
        ("look", {"at": "the shelf"}, {"seen": "the shelf"})
    ]


async def test_a_tool_that_fails_is_a_result_and_not_an_ending(open_shop: Any, attempt: Any) -> None:
    cases = [{"id": "refused", "direct": {"tool": "refuse", "arguments": {"why": "out of stock"}}}]
    async with open_shop() as server:
        at_work = attempt(server, harness="direct", cases=cases)
        assert await direct.drive(at_work) == FINISHED
    assert at_work.notes.tool_calls == [
        ToolCall(name="refuse", arguments={"why": "out of stock"}, error="out of stock")
    ]
    assert at_work.notes.turns == [Turn(query='refuse({"why": "out of stock"})', answer="out of stock")]


async def test_a_case_without_a_direct_form_must_not_be_planned(open_shop: Any, attempt: Any) -> None:
    async with open_shop() as server:
        with pytest.raises(ValueError, match="case 'told' has no direct form; the planner must not plan it"):
            await direct.drive(attempt(server, harness="direct", cases=[{"id": "told", "query": "Well?"}]))
