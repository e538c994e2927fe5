import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from evalfarm.errors import UsageError
from evalfarm.exporter.serving import Page, Pulse, alive, served


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_pages_are_served_and_what_is_none_is_404() -> None:
    with served("127.0.0.1", 0, {"/healthz": alive, "/metrics": lambda: Page("a 1\n")}) as port:
        assert asked(port, "/healthz?x=1") == (200, "ok\n")
        assert asked(port, "/metrics") == (200, "a 1\n")
        assert asked(port, "/secrets") == (404, "there are /healthz, /metrics\n")


def test_a_pulse_is_good_for_a_while_and_says_for_how_long_it_is_not() -> None:
    now = [100.0]
    pulse = Pulse(lambda: now[0], good_for_s=8.0)
    assert pulse.page() == Page("not yet\n", 503)
    pulse.beat()
    now[0] += 8.0
    assert pulse.page() == Page("ok\n")
    now[0] += 1.0
    assert pulse.page() == Page("last well 9 s ago\n", 503)


def test_a_port_that_is_taken_is_said_so() -> None:
    taken = ExitStack()
    with served("127.0.0.1", 0, {}) as port, pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
        taken.enter_context(served("127.0.0.1", port, {}))
