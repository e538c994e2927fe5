import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from scheduler.nightly.webhook import MOST_TRIES, post


@dataclass
class Team:
    """A webhook on this machine that answers as it is told to."""

    answers: list[int]
    port: int = 0
    heard: list[object] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/secret"


@pytest.fixture
def team() -> Iterator[Team]:
    told = Team([])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(told.answers.pop(0) if told.answers else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield told
        server.shutdown()
        thread.join()


def test_a_document_is_sent_once_to_whoever_takes_it(team: Team) -> None:
    waits: list[float] = []
    assert post(team.url, {"text": "REGRESSED"}, waits.append) is None
    assert (team.heard, waits) == ([{"text": "REGRESSED"}], [])


def test_one_who_is_busy_is_tried_again_after_longer_and_longer_waits(team: Team) -> None:
    waits: list[float] = []
    team.answers = [503, 429]
    assert post(team.url, {"text": "x"}, waits.append) is None
    assert len(team.heard) == 3
    assert all(0 <= wait <= 8 for wait in waits)


def test_one_who_stays_down_is_given_up_and_its_address_is_not_told(team: Team) -> None:
    team.answers = [500] * MOST_TRIES
    assert post(team.url, {"text": "x"}, lambda _: None) == "it answered 500, 4 times"
    assert len(team.heard) == MOST_TRIES


def test_one_who_refuses_is_not_asked_again(team: Team) -> None:
    team.answers = [404]
    assert post(team.url, {"text": "x"}, lambda _: None) == "it answered 404"
    assert len(team.heard) == 1


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9/secret", "it cannot be reached (ConnectError), 4 times"),
        ("hooks.example/secret", "its address is no http or https address"),
        ("http://", "its address is no http or https address"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_without_it(url: str, why: str) -> None:
    assert post(url, {"text": "x"}, lambda _: None) == why
