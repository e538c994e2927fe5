"""An MCP server with one tool and no library to import: JSON-RPC lines over stdio. It is up in 20 ms."""

import json
import os
import signal
import sys
import time
from typing import Any

TOOL = {
    "name": "look_up",
    "description": "Look a case up.",
    "inputSchema": {"type": "object", "properties": {"case": {"type": "string"}}, "required": ["case"]},
}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """The result, or the error, of one request."""
    match message["method"]:
        case "initialize":
            version, about = message["params"]["protocolVersion"], {"name": "lookup", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            found = {"found": message["params"]["arguments"]["case"]}
            if found["found"] == os.environ["HANGS"]:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(3_600)
            return {"result": {"content": [], "structuredContent": found}}
        case unknown:
            return {"error": {"code": -32601, "message": f"there is no method {unknown}"}}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
