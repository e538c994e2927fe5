"""What the model gateway hands back to a harness."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass


@dataclass
class Reply:
    """An HTTP answer: status, headers, and the body as it arrives."""

    status: int
    headers: Mapping[str, str]
    body: AsyncGenerator[bytes]
    data: bytes = b""  #: all of the body, where it is there already


def whole(status: int, headers: Mapping[str, str], data: bytes) -> Reply:
    """A reply whose body is there already."""

    async def body() -> AsyncGenerator[bytes]:
        yield data

    return Reply(status, headers, body(), data)


def refusal(status: int, message: str) -> Reply:
    """An error of the gateway's own, in the form of OpenAI's errors."""
    error = {"message": message, "type": "gateway_error", "code": None, "param": None}
    return whole(status, {"content-type": "application/json"}, json.dumps({"error": error}).encode())
