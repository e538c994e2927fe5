"""Probes of a service: whether it answers, and whether what it stands on answered it lately."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from evalfarm.exporter.serving import Pulse, alive, served

health_port = click.option(
    "--health-port", type=click.IntRange(1, 65535), metavar="PORT", help="Answer /healthz and /readyz at this port."
)


@contextmanager
def probed(port: int | None, pulse: Pulse) -> Iterator[None]:
    """Answer probes while the block lasts; no port: nobody asks. Raises UsageError where the port is taken."""
    if port is None:
        yield
        return
    # On every address, as whoever probes a container comes from outside it; there is nothing to read but "ok".
    with served("0.0.0.0", port, {"/healthz": alive, "/readyz": pulse.page}):  # noqa: S104
        yield
