"""`evalfarm web`: the server as a process, from its start to its end."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from evalfarm.cli.services.web import is_loopback, web
from evalfarm.errors import UsageError

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """The server's address while the block lasts; it ends by Ctrl-C, and well."""
    argv = [sys.executable, "-m", "evalfarm", "web", "--port", "0", *options]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            told = re.search(r"at (http://\S+) until", server.stderr.readline())
            assert told
            yield told[1].rstrip("/")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
    assert server.returncode in (0, 130)


def evalfarm(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "evalfarm", *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "")),
    ],
)
def test_only_this_machine_s_own_addresses_are_its_own(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}: Address already in use"):
            web.main(["--port", str(port)], standalone_mode=False)


@pytest.mark.slow
def test_the_server_shows_a_run_gives_its_rows_and_asks_for_a_token() -> None:
    evalfarm("run", "bls", "--model", "sim-careful", "--harness", "direct", "--label", "first")
    token = evalfarm("token", "create", "test").strip()
    with serving() as url, httpx.Client(base_url=url) as client:
        wait_for(client, "first")
        assert client.get("/api/v1/datasets").status_code == 401
        headers = {"Authorization": f"Bearer {token}"}
        (row, *_) = client.get("/api/v1/datasets/cells?format=json", headers=headers).json()
        assert (row["suite"], row["label"], row["harness"]) == ("bls", "first", "direct")
        assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 403
    with serving("--require-token") as url:
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, auth=("me", token)).status_code == 200
    (kept,) = json.loads(evalfarm("token", "list", "--json"))
    assert kept["used_at"] is not None


def wait_for(client: httpx.Client, text: str) -> None:
    """The first look at the store may take a moment; each try is a request that is answered, and none waits."""
    for _ in range(400):
        if text in client.get("/").text and "not scored yet" not in client.get("/").text:
            return
    raise AssertionError(f"the console does not show {text!r}")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_a_browser_finds_a_failing_case_its_conversation_and_two_versions(tmp_path: Path) -> None:
    evalfarm("run", "bls", "--model", "sim-flaky", "--harness", "loop", "--repeats", "3", "--label", "first")
    with serving() as url, httpx.Client(base_url=url) as client:
        wait_for(client, "first")
        runs = dom(tmp_path, f"{url}/")
        run = dom(tmp_path, url + first_link(runs, "/runs/"))
        assert "Cases that did not pass" in run
        failed = dom(tmp_path, url + first_link(run, "/conversations?run=") + "&failed=1")
        conversation = dom(tmp_path, url + first_link(failed, "/conversations/"))
        assert "badge failed" in conversation
        assert "Three witnesses" in conversation
        versions = dom(tmp_path, url + first_link(run, "/versions/"))
        assert "guided" in versions
        assert " against " in versions
        rows = httpx.get(url + first_link(versions, "/datasets/conversations.csv"))
        assert rows.text.startswith("source,label,version")
        assert computed_background(tmp_path, url, dark=False) != computed_background(tmp_path, url, dark=True)


def first_link(text: str, begin: str) -> str:
    found = re.search(rf'href="({re.escape(begin)}[^"]*)"', text)
    assert found, f"no link to {begin}"
    return found[1].replace("&amp;", "&")


def browse(folder: Path, *options: str) -> bytes:
    assert CHROMIUM is not None
    argv = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'browser'}",
        *options,
    ]
    return subprocess.run(
        argv, capture_output=True, check=True, timeout=90, env={**os.environ, "HOME": str(folder)}
    ).stdout


def dom(folder: Path, url: str) -> str:
    """What the browser makes of a page."""
    return browse(folder, "--dump-dom", url).decode()


def computed_background(folder: Path, url: str, *, dark: bool) -> bytes:
    """A picture of the page, on a phone, in light or in dark."""
    picture = folder / f"{dark}.png"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    browse(folder, "--hide-scrollbars", "--window-size=400,300", scheme, f"--screenshot={picture}", url)
    return picture.read_bytes()
