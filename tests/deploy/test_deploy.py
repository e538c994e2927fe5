import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from evalfarm.cli.main import cli
from evalfarm.contracts.suite import Suite
from evalfarm.objects import Objects
from evalfarm.settings import load_settings, variables
from scheduler.feeder import SET_UP_S

PACKAGES = ("evalfarm", "cases", "scheduler", "worker", "graders")
OURS = ("worker", "nightly-worker", "scheduler", "beat", "exporter", "web")
#: Those that open cells.
CELLS = {"worker", "nightly-worker", "beat"}
#: What obstore reads of an S3 store; `test_the_store_is_asked_as_the_compose_file_says` shows that it does.
OF_S3 = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"}

Compose = dict[str, Any]
Dockerfile = list[tuple[str, str]]


def parsed(argv: list[str]) -> click.Context:
    """A command line as click reads it, without running anything."""
    name, *rest = argv
    group = click.Context(cli, info_name="evalfarm")
    command = cli.get_command(group, name)
    assert command is not None, f"there is no command {name!r}"
    return command.make_context(name, rest, parent=group)


@pytest.mark.parametrize("service", OURS)
def test_a_service_runs_a_command_that_exists(compose: Compose, service: str) -> None:
    context = parsed(compose["services"][service]["command"])
    assert context.command.name == service.removeprefix("nightly-")


@pytest.mark.parametrize("service", OURS)
def test_a_service_is_given_settings_that_exist_and_can_be_used(compose: Compose, service: str) -> None:
    told = compose["services"][service]
    environment, secrets = told["environment"], {secret["target"] for secret in told["secrets"]}
    assert (set(environment) | secrets) <= set(variables()) | OF_S3 | {"TEAM_WEBHOOK"}
    assert set(environment) & secrets == set()
    assert load_settings(environment).store_url == "s3://evalfarm/farm"


def test_all_services_are_one_image_on_the_same_store(compose: Compose) -> None:
    services = [compose["services"][name] for name in OURS]
    assert all((one["image"], one["build"]) == (services[0]["image"], services[0]["build"]) for one in services)
    shared = {name for name in services[0]["environment"]}
    assert all({name: one["environment"][name] for name in shared} == services[0]["environment"] for one in services)


def holders(compose: Compose, secret: str) -> set[str]:
    """The services that are given a secret."""
    return {
        name
        for name, service in compose["services"].items()
        for given in service.get("secrets", [])
        if (given if isinstance(given, str) else given["source"]) == secret
    }


def test_a_secret_reaches_only_those_that_need_it(compose: Compose) -> None:
    assert {secret: holders(compose, secret) for secret in compose["secrets"]} == {
        "redis_users": {"redis"},
        "redis_worker": {"worker", "nightly-worker"},
        "redis_scheduler": {"scheduler", "beat"},
        "redis_exporter": {"exporter"},
        "store_key": {*OURS, "store"},
        "store_secret": {*OURS, "store"},
        "openai_key": CELLS,
        "team_webhook": {"beat"},
        "grafana_password": {"grafana"},
    }


def test_every_secret_is_a_file_that_can_be_made(compose: Compose, root: Path, tmp_path: Path) -> None:
    made = [sys.executable, str(root / "deploy/make_secrets.py"), str(tmp_path / "secrets")]
    for _ in range(2):
        subprocess.run(made, check=True)
    files = {Path(secret["file"]).name for secret in compose["secrets"].values()}
    assert {path.name for path in (tmp_path / "secrets").iterdir()} == files
    assert "/secrets/" in (root / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_no_secret_is_written_into_the_file(compose: Compose) -> None:
    values = {
        value
        for service in compose["services"].values()
        for name, value in service.get("environment", {}).items()
        if re.search(r"KEY|SECRET|TOKEN|PASSWORD|WEBHOOK", name)
    }
    assert values == {"/run/secrets/grafana_password"}


def test_the_image_reads_the_secrets_where_they_are_mounted(compose: Compose, dockerfile: Dockerfile) -> None:
    assert "EVALFARM_SECRETS=/run/secrets" in dockerfile[-3][1].split()
    targets = {
        secret["target"]
        for name in OURS
        for secret in compose["services"][name]["secrets"]
        if not secret["target"].startswith("/")  # a bare name is one in /run/secrets
    }
    assert targets == {"EVALFARM_REDIS_URL", "OPENAI_API_KEY", "TEAM_WEBHOOK"} | {
        name for name in OF_S3 if name.endswith("KEY_ID") or name.endswith("ACCESS_KEY")
    }


def test_nothing_runs_as_root_can_gain_rights_or_takes_more_than_its_share(compose: Compose) -> None:
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}, name
        assert "stop_grace_period" in service, name
        # The image's own user is nobody in particular; the store of one machine writes where its image says.
        assert name in (*OURS, "store") or not service["user"].startswith("0"), name
        assert service.get("read_only") is True or name == "store", name


def test_what_is_mounted_is_there(compose: Compose, root: Path) -> None:
    mounted = [
        volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])
    ]
    named = {source for source in mounted if not source.startswith("./")}
    assert named == set(compose["volumes"])
    assert [source for source in mounted if source.startswith("./") and not (root / source).exists()] == []


def test_a_service_waits_until_queue_and_store_answer(compose: Compose) -> None:
    for name in OURS:
        awaited = compose["services"][name]["depends_on"]
        assert set(awaited) == {"store"} | ({"redis"} if name != "web" else set())
        assert all(how == {"condition": "service_healthy"} for how in awaited.values())
        assert all("healthcheck" in compose["services"][other] for other in awaited)


def test_redis_never_evicts_and_keeps_what_was_counted(compose: Compose) -> None:
    command = compose["services"]["redis"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert command[command.index("--appendonly") + 1] == "yes"
    assert compose["services"]["redis"]["volumes"] == ["redis:/data"]


def test_the_store_makes_the_bucket_that_evalfarm_uses(compose: Compose) -> None:
    bucket = compose["services"]["worker"]["environment"]["EVALFARM_STORE_URL"].split("/")[2]
    assert compose["services"]["store"]["environment"]["S3_BUCKET"] == bucket


def test_a_stop_waits_longer_than_an_attempt_can_take(compose: Compose) -> None:
    for name in ("worker", "nightly-worker"):
        found = re.fullmatch(r"(\d+)m", compose["services"][name]["stop_grace_period"])
        assert found is not None
        assert int(found[1]) * 60 > Suite.model_fields["attempt_timeout_s"].default + SET_UP_S


def test_a_cell_may_make_its_namespaces_and_its_proc(compose: Compose) -> None:
    loosened = {"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}
    for name, service in compose["services"].items():
        assert loosened & set(service["security_opt"]) == (loosened if name in CELLS else set())


def test_what_the_image_copies_is_there_and_is_let_into_the_build(dockerfile: Dockerfile, root: Path) -> None:
    sources = [
        source
        for instruction, rest in dockerfile
        if instruction == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
        if not source.startswith("--")
    ]
    ignored = (root / "deploy/Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert set(PACKAGES) <= set(sources)
    assert [source for source in sources if not (root / source).exists()] == []
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)


def test_the_image_is_built_from_the_lock_file_and_nothing_else(dockerfile: Dockerfile) -> None:
    installs = [rest for instruction, rest in dockerfile if instruction == "RUN" and "pip install" in rest]
    assert [("--require-hashes" in rest, "--no-deps" in rest) for rest in installs] == [(True, False), (False, True)]
    assert not any("apt" in rest.split() or "apt-get" in rest for _, rest in dockerfile)


def test_the_image_runs_evalfarm_as_nobody_in_particular(dockerfile: Dockerfile) -> None:
    instructions = dict(dockerfile)
    last = {name: rest for name, rest in dockerfile[[name for name, _ in dockerfile].index("USER") :]}
    assert instructions["USER"] == "evalfarm"
    assert json.loads(last["ENTRYPOINT"]) == ["evalfarm"]
    set_here = dict(pair.split("=", 1) for pair in last["ENV"].split())
    assert {name for name in set_here if name.startswith("EVALFARM_")} <= set(variables())
    assert not set_here["EVALFARM_HOME"].startswith("/tmp")


def test_the_lock_file_is_what_is_installed_here(root: Path) -> None:
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([\w.+!-]+)(?= \\| *$)", lock, flags=re.MULTILINE))
    assert len(pinned) > 80
    assert {name: version(name) for name in pinned} == pinned


@pytest.mark.slow
def test_an_installed_evalfarm_has_every_file_of_its_packages(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(root / name, source)
    for package in PACKAGES:
        shutil.copytree(root / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*wheel, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True, timeout=120)
    (built,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(built).namelist() if name.startswith(PACKAGES)}
    files = {
        str(path.relative_to(root))
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - packed == set()


def test_the_store_is_asked_as_the_compose_file_says(compose: Compose, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = compose["services"]["worker"]["environment"]
    with s3_that_has_nothing() as (port, asked):
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ALLOW_HTTP", environment["AWS_ALLOW_HTTP"])
        monkeypatch.setenv("AWS_REGION", environment["AWS_REGION"])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "farmer")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        assert Objects(environment["EVALFARM_STORE_URL"]).read("runs/a") is None
    ((path, authorization),) = asked
    assert path == "/evalfarm/farm/runs/a"
    assert re.search(r"Credential=farmer/\d{8}/us-east-1/s3/", authorization)


@contextmanager
def s3_that_has_nothing() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A server that says of every key that there is none: its port, and who asked for what."""
    asked: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["authorization"]))
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


@pytest.mark.parametrize("target", ["make check", "make test"])
def test_continuous_integration_runs_what_a_contributor_runs(root: Path, target: str) -> None:
    workflow = yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert target in [step.get("run") for step in steps]
    assert target in (root / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert re.search(
        rf"^{target.removeprefix('make ')}:", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert workflow["permissions"] == {"contents": "read"}
