"""Nights under a real Prometheus and a real Alertmanager: who is woken, and when it is over.

A night's verdict is judged, scraped, evaluated and sent as in production, with minutes made seconds.
"""

import json
import re
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from cases.loader import shipped_suites
from tests.prometheus_tools import program

pytestmark = pytest.mark.slow

DEPLOYED = Path(__file__).parents[2] / "deploy/prometheus"
SECONDS = re.compile(r"^(\s*(?:for|keep_firing_for): \d+)m$", re.MULTILINE)
NIGHT = (
    "--harness",
    "loop",
    "--model",
    "sim-flaky",
    "--variant",
    "guided",
    "--repeats",
    "3",
    "--queue",
    "nightly",
)
#: Seeds, by what the simulated model draws from them; the first two are the baseline.
ACCEPTED, NOISY, BAD, GOOD = ("1", "2"), "5", "7", "4"

Until = Callable[[Callable[[], Any], str], Any]


@dataclass
class Receiver:
    """What was sent to whom, in order."""

    port: int
    sent: list[tuple[str, Any]] = field(default_factory=list)

    def told(self, path: str) -> list[tuple[str, str]]:
        """Each alert's name and status, in the order in which it came here."""
        return [
            (alert["labels"]["alertname"], alert["status"])
            for at, notice in self.sent
            if at == path
            for alert in notice["alerts"]
        ]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A webhook receiver on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.sent.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield receiver
        server.shutdown()


@contextmanager
def running(log: Path, *argv: str) -> Iterator[None]:
    """A program while the block lasts."""
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out, cwd=log.parent) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def asked(url: str) -> Any:
    """A JSON answer; none where nobody answers yet."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return json.loads(answer.read())
    return None


@dataclass(frozen=True)
class Watched:
    """A farm with its watchers."""

    place: Any
    prometheus: str
    until: Until

    def begin(self, suite: Path, seed: str) -> tuple[str, Any]:
        """A nightly run at work: its name, and the command."""
        started = self.place.start("run", str(suite), *NIGHT, "--seed", seed)
        return started.run_id(), started

    def end(self, begun: tuple[str, Any]) -> str:
        """The run's name, once it has ended."""
        run, started = begun
        ended = started.end()
        assert ended.code == 0, ended.err
        return run

    def gate(self, run: str, accepted: list[str], *words: str) -> int:
        """A night's verdict, as the alert rules have seen it: the gate's exit code."""
        before = self.value("evalfarm_gate_timestamp_seconds") or 0.0
        baselines = [word for night in accepted for word in ("--baseline", night)]
        ended = self.place.run("gate", run, *baselines, "--set", "least_nights=2", *words)
        self.until(lambda: (self.value("evalfarm_gate_timestamp_seconds") or 0.0) > before, "a scrape of the verdict")
        seen_at = self.evaluated_at()
        self.until(lambda: self.evaluated_at() > seen_at + 2.0, "that the rules were evaluated, for longer than `for`")
        return int(ended.code)

    def value(self, query: str) -> float | None:
        """What Prometheus says now, of a query with one answer."""
        answer = asked(f"{self.prometheus}/api/v1/query?query={quote(query)}")
        found = answer["data"]["result"] if answer else []
        return float(found[0]["value"][1]) if found else None

    def evaluated_at(self) -> float:
        """When the rules on quality were last evaluated."""
        answer = asked(f"{self.prometheus}/api/v1/rules?type=alert")
        groups = {group["name"]: group for group in answer["data"]["groups"]} if answer else {}
        told = groups["evalfarm-quality"]["lastEvaluation"] if groups else "1970-01-01T00:00:00Z"
        return datetime.fromisoformat(re.sub(r"\.\d+", "", told)).timestamp()


def configure(folder: Path, exporter: int, alertmanager: int, receiver: int) -> None:
    """The deployed files, at these ports, in seconds instead of minutes."""
    (folder / "rules").mkdir(parents=True)
    for rules in (DEPLOYED / "rules").glob("*.yml"):
        (folder / "rules" / rules.name).write_text(SECONDS.sub(r"\1s", rules.read_text(encoding="utf-8")))
    scraping = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text(encoding="utf-8"))
    scraping["global"] = {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"}
    scraping["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{exporter}"]
    scraping["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{alertmanager}"]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(scraping))
    alerting = yaml.safe_load((DEPLOYED / "alertmanager.yml").read_text(encoding="utf-8"))
    for route in (alerting["route"], *alerting["route"]["routes"]):
        route |= {"group_wait": "0s", "group_interval": "1s"}
    for told in alerting["receivers"]:
        for webhook in told["webhook_configs"]:
            webhook["url"] = webhook["url"].replace(":9095/", f":{receiver}/")
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(alerting))


@contextmanager
def watchers(folder: Path, exporter: int, receiver: int, until: Until) -> Iterator[str]:
    """Prometheus and Alertmanager while the block lasts: where Prometheus answers."""
    prometheus, alertmanager = free_port(), free_port()
    configure(folder, exporter, alertmanager, receiver)
    sends = running(
        folder / "alertmanager.log",
        program("prometheus-alertmanager", "alertmanager"),
        "--config.file=alertmanager.yml",
        "--storage.path=alerts",
        f"--web.listen-address=127.0.0.1:{alertmanager}",
        "--cluster.listen-address=",
    )
    scrapes = running(
        folder / "prometheus.log",
        program("prometheus"),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=series",
        f"--web.listen-address=127.0.0.1:{prometheus}",
    )
    url = f"http://127.0.0.1:{prometheus}"
    with sends, scrapes:
        until(lambda: asked(f"{url}/api/v1/status/buildinfo"), "that Prometheus answers")
        yield url


@contextmanager
def exporting(place: Any) -> Iterator[int]:
    """The exporter of a place while the block lasts: its port."""
    started = place.start("exporter", "--port", "0")
    try:
        yield int(re.search(r":(\d+)/metrics", started.hear("/metrics"))[1])  # type: ignore[index]
    finally:
        started.process.terminate()
        assert started.end().code == 0


@contextmanager
def working(place: Any) -> Iterator[None]:
    """A worker for all nights of a place while the block lasts."""
    started = place.start("worker", "--slots", "2")
    try:
        yield
    finally:
        started.process.terminate()
        started.end()


@pytest.fixture
def watched(
    another_place: Callable[..., Any], client: object, redis_url: str, tmp_path: Path, wait_until: Until
) -> Iterator[tuple[Watched, Receiver]]:
    place = another_place("farm", EVALFARM_REDIS_URL=redis_url)
    with (
        receiving() as receiver,
        working(place),
        exporting(place) as port,
        watchers(tmp_path / "watchers", port, receiver.port, wait_until) as url,
    ):
        yield Watched(place, url, wait_until), receiver


def broken(suite: Path) -> Path:
    """A suite's copy whose server understands no question."""
    copy = Path(copytree(suite.parent, suite.parent.with_name("broken"))) / suite.name
    server = copy.parent / "server.py"
    whole = server.read_text(encoding="utf-8")
    server.write_text(whole.replace("casefold().split()", "casefold().split()[:0]"), encoding="utf-8")
    return copy


def test_a_bad_night_wakes_somebody_and_a_noisy_one_nobody_and_a_good_one_ends_it(
    watched: tuple[Watched, Receiver], tmp_path: Path, wait_until: Until
) -> None:
    farm, receiver = watched
    suite = Path(copytree(shipped_suites()["bls"].parent, tmp_path / "whole")) / "suite.yaml"
    # One after the other, as their order is that of their start, and each at work while the next one begins. None of
    # them is news before somebody has judged it.
    begun = [farm.begin(suite, seed) for seed in (*ACCEPTED, NOISY)]
    begun += [farm.begin(broken(suite), BAD), farm.begin(suite, GOOD)]
    *accepted, noisy, bad, good = map(farm.end, begun)

    # Eight of fifteen instead of eleven: a lower point, which a rerun may well show, and nothing was changed.
    assert farm.gate(noisy, accepted) == 3
    assert farm.value("evalfarm_gate_change_ratio") == pytest.approx(-0.2)
    assert receiver.told("/pages") == []

    assert farm.gate(bad, accepted, "--confirm") == 1
    wait_until(lambda: receiver.told("/pages"), "that somebody is woken")

    assert farm.gate(good, accepted) == 0
    wait_until(lambda: len(receiver.told("/pages")) > 1, "that it is said to be over")
    assert receiver.told("/pages") == [("QualityRegressed", "firing"), ("QualityRegressed", "resolved")]
    (page, *_) = [notice for path, notice in receiver.sent if path == "/pages"]
    assert page["commonLabels"] == {
        "alertname": "QualityRegressed",
        "harness": "loop",
        "instance": page["commonLabels"]["instance"],
        "job": "evalfarm",
        "model": "sim-flaky",
        "queue": "nightly",
        "severity": "page",
        "suite": "bls",
        "variant": "guided",
    }
    assert page["commonAnnotations"]["summary"] == "bls: sim-flaky in loop (guided) regressed"
    # A model that flips a coin is steady news for the morning, and no reason to wake anybody.
    wait_until(lambda: ("UnsteadyPlugin", "firing") in receiver.told("/tickets"), "a ticket for the unsteady model")


@pytest.mark.parametrize("service", [("worker", "--slots", "1"), ("scheduler",)], ids=["worker", "scheduler"])
def test_a_service_says_that_it_lives_and_that_it_is_ready(
    place: Any, service: tuple[str, ...], wait_until: Until
) -> None:
    port = free_port()
    started = place.start(*service, "--health-port", str(port))

    def said(path: str) -> str | None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
        return None

    wait_until(lambda: said("/readyz") == "ok\n", "that it is ready")
    assert said("/healthz") == "ok\n"
    started.process.terminate()
    started.end()
    place.falls_quiet()
