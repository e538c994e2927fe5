"""`evalfarm doctor`: what is installed, what is reachable, and which isolation works on this machine."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import click

from cases.loader import load_suite, shipped_suites
from evalfarm.cli.connecting import open_redis
from evalfarm.cli.output import stdout_console
from evalfarm.cli.running.looking import library_versions
from evalfarm.cli.upkeep.deployment import SERVICES, Place, Service, examine_deployment
from evalfarm.cli.upkeep.findings import Finding, finding, show
from evalfarm.errors import ExitCode, InfrastructureError, UsageError
from evalfarm.runstate import check_server
from evalfarm.settings import Settings, load_settings, public_url
from evalfarm.store import Store
from worker.cell.cell import check_isolation
from worker.cell.codex_runtime import codex_version, find_codex

#: A run of a shipped suite keeps a few megabytes; below this a larger one may end half-way.
_LEAST_FREE_BYTES = 500_000_000


@click.command(epilog="Example: evalfarm doctor --deployment worker --probe http://exporter:9464/readyz")
@click.option(
    "--deployment",
    "service",
    is_flag=False,
    flag_value="all",
    default=None,
    type=click.Choice(SERVICES),
    help="Check a deployed farm from where SERVICE runs or is to run; without SERVICE, all that any of them needs.",
    metavar="[SERVICE]",
)
@click.option(
    "--probe", "probes", metavar="URL", multiple=True, help="With --deployment: ask if it is ready. Repeatable."
)
@click.option(
    "--prometheus",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --deployment: Prometheus's configuration, to be checked with its rules.",
)
@click.option("--json", "as_json", is_flag=True, help="The findings as one JSON document.")
def doctor(service: Service | None, probes: tuple[str, ...], prometheus: Path | None, as_json: bool) -> int:
    """Check what is installed, what is reachable and which isolation works here.

    Ends with 0 when a run with a simulated model can work on this machine, else with 4. With --deployment: with 0 when
    no check of the deployment is broken, else with 4; SERVICE is worker, scheduler, beat, exporter or web. What is
    `missing` is told and held against nobody.
    """
    settings = load_settings()
    if service is None:
        if probes or prometheus is not None:
            raise UsageError("--probe and --prometheus belong to a deployment", "add --deployment")
        return _told(examine(settings), "A run with a simulated model {can} work here{yet}.", as_json=as_json)
    place = Place(settings, service, time.time, probes, prometheus)
    return _told(
        examine_deployment(place), "As far as can be seen from here, the farm {can} work{yet}.", as_json=as_json
    )


def _told(findings: Iterator[Finding], conclusion: str, *, as_json: bool) -> int:
    found = []
    console = stdout_console()
    for one in findings:
        found.append(one)
        if not as_json:
            show(one, console)
    ready = all(one.state != "broken" for one in found)
    if as_json:
        told = {"ready": ready, "findings": [one.model_dump(mode="json") for one in found]}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        words = {"can": "can", "yet": ""} if ready else {"can": "cannot", "yet": " yet"}
        click.echo("\n" + conclusion.format_map(words))
    return int(ExitCode.OK if ready else ExitCode.INFRASTRUCTURE)


def examine(settings: Settings) -> Iterator[Finding]:
    """Every check's finding, as it comes. What the checks start ends with them."""
    checks: tuple[tuple[str, Callable[[Settings], str]], ...] = (
        ("libraries", _libraries),
        ("codex", _codex),
        ("isolation", _isolation),
        ("redis", _redis),
        ("store", _store),
        ("disk", _disk),
        ("suites", _suites),
    )
    for name, look in checks:
        yield finding(name, partial(look, settings))
    yield model_key(settings)


def model_key(settings: Settings) -> Finding:
    """Whether there is a key for a real model; never the key."""
    provider = public_url(settings.openai_base_url)
    if settings.openai_api_key is None:
        return Finding(
            check="key",
            state="missing",
            found="OPENAI_API_KEY is not set, so only simulated models can be run",
            hint="set it where `evalfarm run` and the workers run, and OPENAI_BASE_URL for another provider",
        )
    return Finding(check="key", state="ok", found=f"OPENAI_API_KEY is set, for {provider} (not tried: that would cost)")


def check_space(home: Path, free_bytes: int) -> str:
    """What is free for EVALFARM_HOME. Raises InfrastructureError when it is too little for a run."""
    told = f"{free_bytes / 1e9:.1f} GB free for {home}"
    if free_bytes < _LEAST_FREE_BYTES:
        raise InfrastructureError(
            f"only {told}", f"free at least {_LEAST_FREE_BYTES / 1e9:.1f} GB, or set EVALFARM_HOME to another disk"
        )
    return told


def _libraries(_settings: Settings) -> str:
    try:
        return ", ".join(f"{name} {version}" for name, version in library_versions().items())
    except PackageNotFoundError as error:
        raise InfrastructureError(
            f"the library {error.name!r} is not installed", "install evalfarm again, as in make setup"
        ) from error


def _codex(settings: Settings) -> str:
    codex = find_codex(settings.codex_bin)
    return f"{codex_version(codex)} ({codex.binary})"


def _isolation(_settings: Settings) -> str:
    check_isolation(find_codex(None), "cell")
    return "cell works here"


def _redis(settings: Settings) -> str:
    where = "the embedded server" if settings.redis_url is None else public_url(settings.redis_url)
    with open_redis(settings) as (_, client):
        return f"{check_server(client)} ({where})"


def _store(settings: Settings) -> str:
    store = Store(settings.store_url)
    store.check()
    return f"create-only writes work in {store.url}"


def _disk(settings: Settings) -> str:
    place = settings.home
    while not place.exists():
        place = place.parent
    return check_space(settings.home, shutil.disk_usage(place).free)


def _suites(_settings: Settings) -> str:
    loaded = {name: len(load_suite(name).suite.cases) for name in shipped_suites()}
    return ", ".join(f"{name} ({cases} cases)" for name, cases in loaded.items())
