"""A real S3-speaking server of the tests' own, and a proxy before it that breaks requests on demand."""

import http.client
import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

from moto.server import ThreadedMotoServer

BUCKET = "bucket"
SECRET = "a-secret-of-the-bucket"
KEY_ID = "AKIAOFTHETESTS"

Kind = Literal["answer", "answer after effect", "cut after effect", "silent after effect", "slow", "condition ignored"]


@dataclass
class Breakage:
    """What is done to the next `times` requests whose `METHOD path` matches."""

    kind: Kind
    pattern: str
    times: int = 1
    status: int = 503
    seconds: float = 0.0  #: of silence, or of slowness
    met: int = 0

    def strikes(self, request: str) -> bool:
        """Whether this request is one of them; counted if so. Called under the proxy's lock."""
        if self.met >= self.times or not re.search(self.pattern, request):
            return False
        self.met += 1
        return True


@dataclass
class Bucket:
    """A bucket behind the proxy."""

    endpoint: str  #: of the proxy
    direct: str  #: of the server itself
    breakages: list[Breakage] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  #: `METHOD path`, as they came
    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)  #: cuts every wait short

    def break_next(self, kind: Kind, pattern: str, *, times: int = 1, status: int = 503, seconds: float = 0.0) -> None:
        """Break the next requests that match `METHOD path`."""
        self.breakages.append(Breakage(kind, pattern, times, status, seconds))

    def breakage(self, request: str) -> Breakage | None:
        """What is to be done to this request."""
        with self.lock:
            self.requests.append(request)
            return next((broken for broken in self.breakages if broken.strikes(request)), None)

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs to use it as `s3://bucket/…`."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Proxy"

    def log_message(self, format: str, *args: object) -> None:
        return

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        broken = self.server.bucket.breakage(f"{self.command} {self.path}")
        kind = broken.kind if broken else None
        if broken and kind == "answer":
            return self._answer(broken.status, {}, b"<Error><Code>Injected</Code></Error>")
        if broken and kind == "slow":
            self.server.bucket.over.wait(broken.seconds)
        status, headers, data = self._forwarded(body, unconditional=kind == "condition ignored")
        if broken and kind == "answer after effect":
            return self._answer(broken.status, {}, b"<Error><Code>Injected</Code></Error>")
        if broken and kind in {"cut after effect", "silent after effect"}:
            self.server.bucket.over.wait(broken.seconds)
            self.close_connection = True
            return None
        return self._answer(status, headers, data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    def _forwarded(self, body: bytes, *, unconditional: bool) -> tuple[int, dict[str, str], bytes]:
        upstream = http.client.HTTPConnection(self.server.bucket.direct.removeprefix("http://"))
        dropped = {"host", "if-none-match"} if unconditional else {"host"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        try:
            upstream.request(self.command, self.path, body, headers)
            response = upstream.getresponse()
            return response.status, dict(response.headers), response.read()
        finally:
            upstream.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"connection", "content-length", "transfer-encoding", "date", "server"}:
                self.send_header(name, value)
        # A HEAD's length is that of the body which it does not have.
        length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    bucket: Bucket

    def handle_error(self, request: object, client_address: object) -> None:
        return  # a client that was killed or lost patience


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a moto server in this process, its state empty."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def bucket_of(server: str, name: str = BUCKET) -> Iterator[Bucket]:
    """A bucket of this name on the server, made anew, with a proxy of its own."""
    address = server.removeprefix("http://")
    for method, path in (("POST", "/moto-api/reset"), ("PUT", f"/{name}")):
        connection = http.client.HTTPConnection(address)
        connection.request(method, path)
        assert connection.getresponse().status == 200
        connection.close()
    proxy = _Proxy(("127.0.0.1", 0), _Handler)
    proxy.bucket = Bucket(f"http://127.0.0.1:{proxy.server_port}", server)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy.bucket
    finally:
        proxy.bucket.over.set()
        proxy.shutdown()
        thread.join()
        proxy.server_close()
