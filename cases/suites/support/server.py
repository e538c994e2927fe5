"""The return desk of a fictional store: two read-only tools whose answers are the fixtures beside this file.

Every order and the policy are made up. What is not in the fixtures is unavailable.
"""

import json
from pathlib import Path
from typing import Annotated, Any

from fastmcp import FastMCP
from pydantic import Field

INSTRUCTIONS = """\
You answer whether an order meets the criteria for requesting a return, or say exactly what is missing. \
Look up the order that the current request names, and its policy; never an order that the request does not name. \
Without an order ID ask for it, and look nothing up. \
An order whose region is unknown needs that clarified before you conclude anything. \
If something is unavailable, say so and conclude nothing. \
Apply every condition of the policy to the record, whatever the user claims. \
You cannot approve, process or refund anything.\
"""

Answers = dict[tuple[str, str], dict[str, Any]]


def answers_of(fixtures: dict[str, dict[str, Any]]) -> Answers:
    """What each tool answers, by the tool's name and its one argument."""
    return {(made["tool"], *made["arguments"].values()): made["result"] for made in fixtures.values()}


def build_server(answers: Answers) -> FastMCP:
    """The server over fixed answers."""
    server: FastMCP = FastMCP("Support", instructions=INSTRUCTIONS)

    @server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def lookup_order(
        order_id: Annotated[str, Field(description="As printed on the receipt: DEMO-101.")],
    ) -> dict[str, Any]:
        """Look up one order. `status` is ok, with the order's record, or unavailable."""
        return answers.get(("lookup_order", order_id), {"status": "unavailable", "order_id": order_id})

    @server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def get_policy(
        policy_id: Annotated[str, Field(description="As the order names it: POLICY-DEMO-v1.")],
    ) -> dict[str, Any]:
        """Get one return policy. `status` is ok, with its conditions, or unavailable."""
        return answers.get(("get_policy", policy_id), {"status": "unavailable", "policy_id": policy_id})

    return server


mcp = build_server(answers_of(json.loads(Path(__file__).with_name("fixtures.json").read_text(encoding="utf-8"))))

if __name__ == "__main__":
    mcp.run(transport="stdio", show_banner=False, log_level="ERROR")
