"""Connections to a provider, against a server that answers in bytes of the test's own."""

import asyncio
import gc
import gzip
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from worker.gateways.line import IDLE_S, Lines, target

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CUT = b""
"""In place of bytes: the server closes the connection."""


@dataclass
class Server:
    """Answers each request with the next of its answers, the last one for ever, and keeps what it was sent."""

    answers: list[tuple[bytes, ...]]
    asked: list[bytes] = field(default_factory=list)
    on: list[int] = field(default_factory=list)  #: for each request, the number of its connection
    connections: int = 0
    closed: list[asyncio.Event] = field(default_factory=list)  #: of each connection: the client has closed it
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    hold: asyncio.Event = field(default_factory=asyncio.Event)  #: answers wait for it
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, closed = self.connections, asyncio.Event()
        self.connections += 1
        self.closed.append(closed)
        self.writers.append(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                self.asked.append(head + await reader.readexactly(length))
                self.on.append(number)
                self.was_asked.set()
                await self.hold.wait()
                for part in self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]:
                    if part == CUT:
                        return
                    writer.write(part)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            closed.set()
        finally:
            writer.close()


@asynccontextmanager
async def provider(
    *answers: tuple[bytes, ...], read_timeout_s: float = 10.0, clock: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[tuple[Lines, Server]]:
    server = Server(list(answers))
    server.hold.set()
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        base = httpx2.URL(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        async with aclosing(Lines(base, read_timeout_s, 10.0, clock=clock)) as lines:
            yield lines, server


async def ask(lines: Lines, body: bytes = b"{}", **headers: str) -> tuple[int, dict[str, str], bytes]:
    answer = await lines.post("/responses", headers, body)
    return answer.status_code, dict(answer.headers), await answer.aread()


async def test_a_request_is_sent_as_it_is_with_host_and_length_and_nothing_more() -> None:
    async with provider((OK,)) as (lines, server):
        assert await ask(lines, b'{"a": 1}', accept="x/y") == (200, {"content-length": "2"}, b"{}")
    head = f"POST /v1/responses HTTP/1.1\r\nhost: {lines.base.netloc.decode()}\r\naccept: x/y\r\ncontent-length: 8"
    assert server.asked == [head.encode() + b'\r\n\r\n{"a": 1}']


async def test_a_connection_carries_one_request_after_another() -> None:
    async with provider((OK,)) as (lines, server):
        assert [(await ask(lines))[0] for _ in range(3)] == [200] * 3
    assert server.on == [0, 0, 0]


async def test_requests_side_by_side_have_a_connection_each_and_the_next_takes_one_of_them() -> None:
    async with provider((OK,)) as (lines, server):
        await asyncio.gather(ask(lines), ask(lines))
        await ask(lines)
    assert (sorted(server.on[:2]), server.on[2] in {0, 1}, server.connections) == ([0, 1], True, 2)


@pytest.mark.parametrize(
    ("answer", "headers", "body"),
    [
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n"), {}, b"abc"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", OK), {"content-length": "2"}, b"{}"),
        ((b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n",), {"x-a": "1, 2"}, b""),
        ((b"HTTP/1.1 200 OK\r\n\r\nto the end", CUT), {}, b"to the end"),
        ((b"HTTP/1.1 200 OK\r\nx-name: J\xf6rg\r\ncontent-length: 0\r\n\r\n",), {"x-name": "J\u00f6rg"}, b""),
    ],
    ids=["chunked", "continue", "twice", "until-closed", "latin"],
)
async def test_answers_of_every_form_are_read(answer: tuple[bytes, ...], headers: dict[str, str], body: bytes) -> None:
    async with provider(answer) as (lines, _):
        status, told, data = await ask(lines)
    assert (status, headers.items() <= told.items(), data) == (200, True, body)


async def test_a_body_that_was_compressed_all_the_same_is_told_plain() -> None:
    packed = gzip.compress(b"plain")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    async with provider((head, packed), (OK,)) as (lines, server):
        assert [(await ask(lines))[2] for _ in range(2)] == [b"plain", b"{}"]
    assert server.on == [0, 0]


async def test_a_large_body_is_taken_as_fast_as_it_is_read_and_arrives_whole() -> None:
    body = bytes(range(256)) * 20_000
    async with provider((b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body)) as (lines, _):
        answer = await lines.post("/responses", {}, b"{}")
        got = bytearray()
        async for part in answer.aiter_bytes():
            got += part
            await asyncio.sleep(0)
    assert bytes(got) == body


async def test_a_connection_that_the_provider_does_not_keep_is_not_used_again() -> None:
    last = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"
    async with provider((last,), (OK,)) as (lines, server):
        await ask(lines)
        await ask(lines)
    assert server.on == [0, 1]


async def test_a_connection_that_the_provider_closed_meanwhile_is_not_used_again() -> None:
    async with provider((OK, CUT), (OK,)) as (lines, server):
        await ask(lines)
        (line,) = lines._idle
        await line.stream.closed
        assert (await ask(lines))[0] == 200
    assert server.on == [0, 1]


async def test_what_nobody_asked_for_is_no_answer_to_the_next_request(eventually: Any) -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"
    async with provider((OK,)) as (lines, server):
        await ask(lines)
        (line,) = lines._idle
        server.writers[0].write(late)
        await eventually(lambda: not line.stream.is_quiet())
        assert (await ask(lines))[0] == 200
    assert server.on == [0, 1]


async def test_what_comes_with_the_end_of_an_answer_is_no_answer_to_the_next_request() -> None:
    another = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nanother's"
    async with provider((OK + another,), (OK,)) as (lines, server):
        assert [(await ask(lines))[2] for _ in range(2)] == [b"{}", b"{}"]
    assert server.on == [0, 1]


def test_a_connection_rests_for_less_than_uvicorn_keeps_it() -> None:
    assert uvicorn.Config("no:app", log_config=None).timeout_keep_alive > IDLE_S


@pytest.mark.parametrize(("rested_s", "used"), [(IDLE_S - 1, [0, 0]), (IDLE_S, [0, 1])])
async def test_a_connection_that_rested_for_long_is_not_used_again(rested_s: float, used: list[int]) -> None:
    now = [100.0]
    async with provider((OK,), clock=lambda: now[0]) as (lines, server):
        await ask(lines)
        now[0] += rested_s
        await ask(lines)
    assert server.on == used


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((CUT,), "RemoteProtocolError: Server disconnected without sending a response."),
        ((b"SSH-2.0-x\r\n\r\n",), "RemoteProtocolError: illegal status line: bytearray(b'SSH-2.0-x')"),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", CUT), "RemoteProtocolError: peer closed connection"),
    ],
    ids=["nothing", "no-http", "cut"],
)
async def test_an_answer_that_is_none_is_an_error_and_the_connection_is_gone(
    answer: tuple[bytes, ...], error: str
) -> None:
    async with provider(answer, (OK,)) as (lines, server):
        with pytest.raises(httpx2.RemoteProtocolError) as caught:
            await ask(lines)
        assert (await ask(lines))[0] == 200
    assert f"{type(caught.value).__name__}: {caught.value}".startswith(error)
    assert server.on == [0, 1]


async def test_a_provider_that_falls_silent_is_given_up_and_the_connection_closed() -> None:
    async with provider((OK,), read_timeout_s=0.05) as (lines, server):
        server.hold.clear()
        with pytest.raises(httpx2.ReadTimeout, match=r"^nothing came for 0\.05 s$"):
            await ask(lines)
        server.hold.set()
        await server.closed[0].wait()


async def test_a_request_that_is_cancelled_takes_its_connection_with_it() -> None:
    async with provider((OK,)) as (lines, server):
        server.hold.clear()
        asking = asyncio.create_task(ask(lines))
        await server.was_asked.wait()
        asking.cancel()
        await asyncio.wait((asking,))
        server.hold.set()
        await server.closed[0].wait()
        assert (await ask(lines))[0] == 200
    assert (asking.cancelled(), server.on) == (True, [0, 1])


async def test_an_answer_that_is_left_half_read_takes_its_connection_with_it() -> None:
    async with provider((b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",), (OK,)) as (lines, server):
        answer = await lines.post("/responses", {}, b"{}")
        async with aclosing(answer.aiter_bytes()) as parts:
            assert await anext(parts) == b"ab"
        await server.closed[0].wait()
        assert ((await ask(lines))[0], [part async for part in answer.aiter_bytes()]) == (200, [])


@pytest.mark.parametrize("status", [200, 500])
async def test_a_packed_answer_that_nobody_reads_takes_its_connection_with_it(status: int, eventually: Any) -> None:
    head = b"HTTP/1.1 %d X\r\ncontent-encoding: gzip\r\ncontent-length: 99\r\n\r\n" % status
    async with provider((head,)) as (lines, server):
        answer = await lines.post("/responses", {}, b"{}")
        await answer.aclose()
        await eventually(server.closed[0].is_set)


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(eventually: Any) -> None:
    gc.disable()  # which would close what is forgotten, some day
    try:
        async with provider((OK,)) as (lines, server):
            for steps in range(1, 15):
                asking = asyncio.create_task(ask(lines))
                for _ in range(steps):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait((asking,))
            await lines.aclose()
            await ask(lines)  # its connection is accepted after all others
            await eventually(lambda: [event.is_set() for event in server.closed].count(False) == 1)
    finally:
        gc.enable()


@pytest.mark.parametrize("key", ["sk-of\nsk-two", "sk-\u201cquoted\u201d", "sk-\0"])
async def test_a_header_that_cannot_be_sent_is_in_no_error(key: str) -> None:
    async with provider((OK,)) as (lines, server):
        with pytest.raises(httpx2.LocalProtocolError) as caught:
            await ask(lines, authorization=f"Bearer {key}")
    assert str(caught.value) == "the request's path or one of its headers cannot be sent"
    assert (caught.value.__cause__, caught.value.__suppress_context__, server.asked) == (None, True, [])


@pytest.mark.parametrize(
    ("base", "asked"),
    [
        ("http://h", b"/responses"),
        ("http://h/v1", b"/v1/responses"),
        ("http://h/a%2Fb/v1/", b"/a%2Fb/v1/responses"),
        ("http://h/v1/?api-version=2&x=/", b"/v1/responses?api-version=2&x=/"),
    ],
)
def test_what_is_asked_for_comes_after_the_path_of_the_base_and_before_its_query(base: str, asked: bytes) -> None:
    assert target(httpx2.URL(base), "/responses") == asked


async def test_what_is_no_name_of_a_host_cannot_be_connected_to() -> None:
    async with aclosing(Lines(httpx2.URL(f"http://{'a' * 70}.test/v1"), 10.0, 10.0)) as lines:
        with pytest.raises(httpx2.ConnectError):
            await ask(lines)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signed itself, with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "provider.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


@pytest.mark.parametrize("trusted", [True, False])
async def test_over_tls_only_a_provider_with_a_trusted_certificate_is_asked(certificate: Path, trusted: bool) -> None:
    server, ours = Server([(OK,), (b"HTTP/1.1 200 OK\r\n\r\nto the end", CUT)]), ssl.create_default_context()
    server.hold.set()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificate)
    if trusted:
        ours.load_verify_locations(certificate)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=theirs) as listening:
        base = httpx2.URL(f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        async with aclosing(Lines(base, 10.0, 10.0, ours)) as lines:
            if trusted:
                assert [(await ask(lines))[2] for _ in range(2)] == [b"{}", b"to the end"]
            else:
                with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                    await ask(lines)
    assert server.on == ([0, 0] if trusted else [])
