"""A few plain pages over HTTP, beside whatever else a process does: what is watched of it, and its probes."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from evalfarm.errors import UsageError

_IDLE_S = 30.0  # Prometheus keeps its connection between scrapes; whoever says nothing for longer is let go


class Page(NamedTuple):
    """An answer."""

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[], Page]]


@dataclass
class Pulse:
    """When something last went well, and whether that is long ago."""

    clock: Callable[[], float]
    good_for_s: float
    last: float | None = None  #: None: not yet

    def beat(self) -> None:
        """It went well just now."""
        self.last = self.clock()

    def page(self) -> Page:
        """200 while the last beat is young enough, else 503 with its age."""
        if self.last is None:
            return Page("not yet\n", 503)
        age_s = self.clock() - self.last
        return Page("ok\n") if age_s <= self.good_for_s else Page(f"last well {age_s:.0f} s ago\n", 503)


def alive() -> Page:
    """That the process answers: what a liveness probe asks. No outage of Redis or of the store must end it."""
    return Page("ok\n")


@contextmanager
def served(host: str, port: int, pages: Pages) -> Iterator[int]:
    """Answer GET for these paths in threads of their own while the block lasts; gives the port (0: a free one).

    Raises UsageError where the port cannot be had.
    """
    try:
        server = ThreadingHTTPServer((host, port), _handler(pages))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", "choose another port, or see who has this one"
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _IDLE_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            self._answer(pages[path]() if path in pages else Page(f"there are {', '.join(pages)}\n", 404))

        do_HEAD = do_GET

        def _answer(self, page: Page) -> None:
            body = page.body.encode()
            self.send_response(page.status)
            self.send_header("content-type", page.content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes and probes are no news."""

    return Handler
