"""A document to a webhook. Its address is a secret, and is in no message of ours."""

import time
from collections.abc import Callable
from typing import Any

import httpx
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

#: Seconds for one request, and the requests in all: a receiver that restarts is back within them.
TIMEOUT_S, MOST_TRIES = 10.0, 4


class _Refused(Exception):
    """The receiver did not take it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _NotNow(_Refused):
    """It may take it in a while."""


def post(url: str, document: dict[str, Any], sleep: Callable[[float], None] = time.sleep) -> str | None:
    """Send a document as JSON; None: it was taken, else why not, without the address.

    Tried again after a broken connection, a timeout, 429 and 5xx. A receiver whose answer was lost may get it twice.
    """
    tries = Retrying(
        stop=stop_after_attempt(MOST_TRIES),
        wait=wait_random_exponential(multiplier=0.5, max=8.0),
        retry=retry_if_exception_type(_NotNow),
        sleep=sleep,
    )
    try:
        tries(_send, url, document)
    except RetryError as error:
        return f"{error.last_attempt.exception()}, {MOST_TRIES} times"
    except _Refused as error:
        return error.why
    return None


def _send(url: str, document: dict[str, Any]) -> None:
    try:
        answer = httpx.post(url, json=document, timeout=TIMEOUT_S, follow_redirects=False)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError):
        raise _Refused("its address is no http or https address") from None
    except httpx.HTTPError as error:
        raise _NotNow(f"it cannot be reached ({type(error).__name__})") from None
    if answer.is_success:
        return
    kind = _NotNow if answer.status_code == 429 or answer.is_server_error else _Refused
    raise kind(f"it answered {answer.status_code}")
