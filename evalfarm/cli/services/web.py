"""`evalfarm web`: the console and the exports, over HTTP."""

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import uvicorn

from evalfarm.cli.beside.scoring_apart import score_apart
from evalfarm.cli.standing import interruptible
from evalfarm.errors import EvalFarmError, UsageError
from evalfarm.settings import load_settings
from evalfarm.store import Store
from evalfarm.web.app import make_app
from evalfarm.web.holdings import Holdings
from evalfarm.web.tokens import Tokens

#: Seconds between two looks at the store.
_LOOK_S = 10.0


@click.command(epilog="Example: evalfarm web --port 8124")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="The port; 0: a free one.")
@click.option("--require-token", is_flag=True, help="Ask for a token at the console too, on this machine as well.")
def web(host: str, port: int, require_token: bool) -> None:
    """Serve the console and the exports until stopped.

    On this machine's own address the console needs no token; anywhere else it does, as the API always does. Anywhere
    else put something in front that speaks TLS: a token is worth what it crosses.
    """
    open_here = is_loopback(host) and not require_token
    store = Store(load_settings().store_url)
    # uvicorn raises the signal that stopped it once more: by then it must not kill us before the folder is gone.
    with suppress(KeyboardInterrupt), interruptible(), TemporaryDirectory(prefix="evalfarm-web-") as folder:
        held, spill = Path(folder, "held"), Path(folder, "answers")
        held.mkdir()
        spill.mkdir()
        holdings = Holdings(store, held, score_apart)
        app = make_app(store, holdings, spill, clock=time.time, open_here=open_here)
        # No access log: a query may hold what somebody pasted into it, a token among them.
        # No proxy headers: who sends them names whatever address it likes, and wrong tokens are counted by address.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="off"
        )
        with _listening(host, port) as listening, _looking(holdings):
            _tell(store, host, listening.getsockname()[1], open_here)
            uvicorn.Server(config).run([listening])


def is_loopback(host: str) -> bool:
    """Whether only this machine itself can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}, port {port}: {error.strerror}", "choose another --port") from None


@contextmanager
def _looking(holdings: Holdings) -> Iterator[None]:
    """Look at the store again and again in a thread of its own, while the block lasts."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            try:
                holdings.look()
            except EvalFarmError as error:
                click.echo(f"cannot look at the store: {error.message}", err=True)
            ended.wait(_LOOK_S)

    # A daemon: at work on a large run it is not waited for.
    threading.Thread(target=look, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _tell(store: Store, host: str, port: int, open_here: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Serving {store.url} at http://{shown}:{port}/ until Ctrl-C.", err=True)
    if open_here:
        click.echo("The console needs no token from this machine; the API under /api/v1 does.", err=True)
    else:
        click.echo("Everything needs a token; a browser asks for it as the password, with any name.", err=True)
    if not Tokens(store.objects).all():
        click.echo("There is no token yet. Make one: evalfarm token create my-report", err=True)
