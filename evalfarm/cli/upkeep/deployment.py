"""`evalfarm doctor --deployment`: what a service stands on once it is deployed, as seen from that service's place."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
import yaml

from evalfarm.cli.nights.opening import check_schedules
from evalfarm.cli.upkeep.findings import Finding, Missing, finding
from evalfarm.cli.upkeep.of_redis import of_redis
from evalfarm.cli.upkeep.secrecy import check_secrets
from evalfarm.errors import InfrastructureError
from evalfarm.settings import Settings, environment, public_url
from evalfarm.store import Store
from scheduler.nightly.file import read_schedules
from worker.cell.codex_runtime import codex_version, find_codex
from worker.cell.proof import prove_cell

Service = Literal["all", "worker", "scheduler", "beat", "exporter", "web"]
SERVICES: tuple[Service, ...] = ("all", "worker", "scheduler", "beat", "exporter", "web")
"""Whose place it is looked from; `all`: of somebody who may do what each of them may."""

_PATIENCE_S = 10.0
_CELLS = ("all", "worker", "beat")
_SCHEDULES = ("all", "beat")
_READERS = ("exporter",)


@dataclass(frozen=True)
class Place:
    """From where a deployment is looked at, and what of it is named to be looked at."""

    settings: Settings
    service: Service
    clock: Callable[[], float]
    probes: tuple[str, ...] = ()  #: addresses where services say that they are ready
    prometheus: Path | None = None  #: its configuration, whose rules are loaded


def examine_deployment(place: Place) -> Iterator[Finding]:
    """Every check's finding, as it comes. Nothing is changed but a probe in the store, which is removed again."""
    if place.service in _CELLS:
        yield finding("codex", lambda: codex_version(find_codex(place.settings.codex_bin)))
        yield finding("isolation", lambda: prove_cell(find_codex(place.settings.codex_bin)))
    if place.service != "web":
        yield from of_redis(place.settings.redis_url, place.service, place.clock)
    yield finding("store", lambda: _store(place))
    yield finding("secrets", lambda: check_secrets(place.settings, environment()))
    if place.service in _SCHEDULES:
        yield finding("schedules", lambda: _schedules(place))
    yield finding("rules", lambda: check_rules(place.prometheus))
    for url in place.probes:
        yield finding("probe", lambda url=url: ask(url))  # type: ignore[misc]
    if not place.probes:
        yield finding("probe", lambda: Missing("no service was asked", "name where, as in --probe http://web:8080/"))


def _store(place: Place) -> str:
    store = Store(place.settings.store_url)
    if place.service in _READERS:
        store.objects.names("runs")
        return f"can be read: {store.url}"
    store.check()
    return f"create-only writes work in {store.url}"


def _schedules(place: Place) -> str | Missing:
    path = place.settings.schedule_file
    if place.service == "all" and not path.exists():
        return Missing(f"there is no {path}, so nothing runs by itself", "docs/guides/nightly.md shows one")
    declared = read_schedules(path)
    check_schedules(declared)
    named = ", ".join(declared.said.schedules)
    for name, receiver in declared.said.receivers.items():
        variable = receiver.webhook_env
        if variable is not None and not environment().get(variable):
            return Missing(f"{named}; receiver {name!r} cannot be told", f"set {variable}, the address of its webhook")
    return f"{named or 'none'}, as {path} declares"


def check_rules(configuration: Path | None, search_path: str | None = None) -> str | Missing:
    """Makes sure that Prometheus would load a configuration with its rules: by promtool where that is installed.

    Raises InfrastructureError with what promtool says. `search_path` is in the form of PATH, and PATH by default.
    """
    if configuration is None:
        return Missing(
            "not looked at", "name Prometheus's configuration: --prometheus deploy/prometheus/prometheus.yml"
        )
    promtool = shutil.which("promtool", path=search_path)
    if promtool is None:
        rules = _rules_of(configuration)
        return Missing(
            f"{configuration} and {rules} rules are YAML", "install promtool: it reads their expressions too"
        )
    done = subprocess.run(
        [promtool, "check", "config", str(configuration)], capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        told = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise InfrastructureError(
            " ".join(told[-4:]), f"mend it, until promtool check config {configuration} is content"
        )
    return f"promtool takes {configuration} and its rules"


def _rules_of(configuration: Path) -> int:
    try:
        patterns = yaml.safe_load(configuration.read_text(encoding="utf-8")).get("rule_files", [])
        files = [file for pattern in patterns for file in sorted(configuration.parent.glob(pattern))]
        read = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
        return sum(len(group["rules"]) for one in read for group in one["groups"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError) as error:
        told = " ".join(str(error).split())
        raise InfrastructureError(f"{configuration} or its rules do not read: {told}", "mend what it names") from error


def ask(url: str) -> str:
    """Asks a service whether it is ready; one that wants a token answers too. Raises InfrastructureError."""
    shown = public_url(url)
    try:
        answer = httpx.get(url, timeout=_PATIENCE_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InfrastructureError(
            f"{shown} does not answer: {error}", "does the service run, and can it be reached from here?"
        ) from error
    if answer.status_code in (401, 403):
        return f"{shown} answers, and asks for a token"
    if answer.status_code >= 300:
        told = " ".join(answer.text.split())[:200]
        raise InfrastructureError(f"{shown} says {answer.status_code}: {told}", "look into the service's log")
    return f"{shown} is ready"
