"""`evalfarm exporter`: what Prometheus reads of the farm."""

import threading
import time
from contextlib import suppress

import click

from evalfarm.cli.connecting import open_redis
from evalfarm.cli.standing import interruptible
from evalfarm.exporter.families import CONTENT_TYPE
from evalfarm.exporter.page import page
from evalfarm.exporter.reading import Reader
from evalfarm.exporter.serving import Page, Pages, Pulse, alive, served
from evalfarm.runstate import load_limits
from evalfarm.settings import load_settings
from evalfarm.store import Store

#: Seconds for which the exporter is ready after the store and the ledger were last read, both of them.
_READY_S = 120.0


@click.command(epilog="Example: EVALFARM_REDIS_URL=redis://queue:6379/0 evalfarm exporter --host 0.0.0.0")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=9464, show_default=True, help="0: a free one.")
def exporter(host: str, port: int) -> None:
    """Show Prometheus the farm, at /metrics, until stopped.

    Reads the ledger and the store at each scrape and writes nothing. /healthz and /readyz are for probes.
    """
    settings = load_settings()
    store = Store(settings.store_url)
    with suppress(KeyboardInterrupt), interruptible(), open_redis(settings) as (_, client):
        reader = Reader(store, client, load_limits(settings.limits), time.time)
        reader.look()  # what a first look reads is much, and a scrape should not wait for it
        with served(host, port, pages(reader)) as bound:
            click.echo(f"Showing {store.url} at http://{host}:{bound}/metrics", err=True)
            threading.Event().wait()


def pages(reader: Reader) -> Pages:
    """The exporter's paths."""
    pulse = Pulse(time.monotonic, _READY_S)

    def metrics() -> Page:
        seen = reader.look()
        if not seen.failed:
            pulse.beat()
        return Page(page(seen), content_type=CONTENT_TYPE)

    def ready() -> Page:
        if pulse.page().status != 200:  # nobody scrapes it, or what it reads was away: look now
            metrics()
        return pulse.page()

    return {"/metrics": metrics, "/healthz": alive, "/readyz": ready}
