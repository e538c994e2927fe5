"""A model that costs next to nothing: it answers Responses and chat requests on the loopback, at once or after a delay.

    python -m bench.mock_model PORT

`/v1/…` answers at once, `/d50/v1/…` after 50 ms. A model named `calls-2` asks for the first tool it is shown until it
has seen two results, then answers; any other answers at once. GET /stats tells {requests, in_flight_peak, cpu_s} and
GET /reset begins anew. Standard library only, one core, about 50 µs a request: all sides of a comparison share it.
"""

import asyncio
import json
import re
import resource
import sys
from typing import Any

_ROUTE = re.compile(rb"(GET|POST) (?:/d(\d+))?(/\S*) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CALLS = re.compile(r"calls-(\d+)")
ANSWER = "The answer is 42"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Seen:
    """What was asked since the last reset."""

    def __init__(self) -> None:
        self.requests = self.in_flight = self.in_flight_peak = 0
        self.cpu_at_reset_s = _cpu_s()

    def told(self) -> dict[str, float]:
        cpu_s = _cpu_s() - self.cpu_at_reset_s
        return {"requests": self.requests, "in_flight_peak": self.in_flight_peak, "cpu_s": cpu_s}


class Connection(asyncio.Protocol):
    """One keep-alive connection; a client sends its next request after the answer to the last."""

    seen = Seen()

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end])
        length = int(found[1]) if (found := _LENGTH.search(head)) else 0
        if len(self._received) < head_end + 4 + length:
            return
        body = bytes(self._received[head_end + 4 : head_end + 4 + length])
        self._received.clear()
        route = _ROUTE.match(head + b"\r\n")
        if route is None:
            self._send({"error": {"message": "not understood"}}, b"400 Bad Request")
        elif route[1] == b"GET":
            self._send(self._told(route[3]))
        else:
            self._ask(route[3], body, int(route[2] or 0) / 1000)

    def _told(self, path: bytes) -> dict[str, Any]:
        if path == b"/reset":
            Connection.seen = Seen()
        return Connection.seen.told()

    def _ask(self, path: bytes, body: bytes, delay_s: float) -> None:
        seen = self.seen
        seen.requests += 1
        seen.in_flight += 1
        seen.in_flight_peak = max(seen.in_flight_peak, seen.in_flight)
        answer = _answer(path, json.loads(body), seen.requests)
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._finish, seen, answer)
        else:
            self._finish(seen, answer)

    def _finish(self, seen: Seen, answer: dict[str, Any]) -> None:
        seen.in_flight -= 1
        self._send(answer)

    def _send(self, value: dict[str, Any], status: bytes = b"200 OK") -> None:
        body = json.dumps(value).encode()
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        self._transport.write(head + body)


def _answer(path: bytes, asked: dict[str, Any], number: int) -> dict[str, Any]:
    model = str(asked.get("model"))
    if path.endswith(b"/chat/completions"):
        usage = {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26}
        message = {"role": "assistant", "content": ANSWER, "refusal": None}
        choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
        told = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": model}
        return {**told, "choices": [choice], "usage": usage}
    return {
        **_ALWAYS,
        "id": f"resp_{number}",
        "model": model,
        "tools": asked.get("tools") or [],
        "instructions": asked.get("instructions"),
        "output": [_item(asked, model, number)],
    }


def _item(asked: dict[str, Any], model: str, number: int) -> dict[str, Any]:
    """A call while the model's name asks for more of them than results were sent, then the answer."""
    wanted = int(found[1]) if (found := _CALLS.search(model)) else 0
    items = asked.get("input")
    done = sum(i.get("type") == "function_call_output" for i in items) if isinstance(items, list) else 0
    if done < wanted:
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
        return {**call, "name": asked["tools"][0]["name"], "arguments": json.dumps({"key": f"key-{done}"})}
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [text]}


#: The fields of a response that are the same in each.
_ALWAYS: dict[str, Any] = {
    **{"object": "response", "created_at": 1, "status": "completed", "error": None, "incomplete_details": None},
    **{"max_output_tokens": None, "parallel_tool_calls": True, "previous_response_id": None, "store": False},
    **{"reasoning": {"effort": None, "summary": None}, "temperature": 1.0, "text": {"format": {"type": "text"}}},
    **{"tool_choice": "auto", "top_p": 1.0, "truncation": "disabled", "user": None, "metadata": {}},
    "usage": {
        **{"input_tokens": 20, "input_tokens_details": {"cached_tokens": 0}},
        **{"output_tokens": 6, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 26},
    },
}


async def serve(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
