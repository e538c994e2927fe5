"""The plugin of the benchmark's suites: one tool over stdio, in the standard library alone.

It starts in a few hundredths of a second and answers in a few microseconds, so that what is measured is the farm and
not a server. Where a server's own weight belongs to the work, the tool loop uses FastMCP instead.
"""

import json
import sys
from typing import Any

_TOOL = {
    "name": "lookup",
    "description": "Look a key up",
    "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None: there is no such method."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }
        case "tools/list":
            return {"tools": [_TOOL]}
        case "tools/call":
            text = f"{params['arguments'].get('key')} is 42"
            return {"content": [{"type": "text", "text": text}], "isError": False}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    """Answer line by line until standard input closes."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        ending = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **ending}), flush=True)


if __name__ == "__main__":
    main()
