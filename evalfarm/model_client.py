"""The only door to the openai library: a Responses client over a transport that the caller provides.

The transport is the model gateway's, which adds the key, retries and records; so the client itself never
holds a key and never retries. The openai library speaks HTTP through httpx2, hence the transport's type.
"""

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from openai.types.responses import Response, ResponseFunctionToolCall

__all__ = [
    "APIConnectionError",
    "APIStatusError",
    "AsyncOpenAI",
    "Response",
    "ResponseFunctionToolCall",
    "responses_client",
]


def responses_client(transport: httpx2.AsyncBaseTransport) -> AsyncOpenAI:
    """A client whose every request goes through the transport."""
    return AsyncOpenAI(
        api_key="added-by-the-gateway",
        base_url="http://gateway/v1",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport, timeout=None),
    )
