"""A farm over TLS: every service as its own user, the certificate checked by each of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalfarm.broker import make_app, queue_depth
from evalfarm.cli.upkeep.secrecy import exposures
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import check_server, connect, line_to
from tests.deploy.redis_servers import PATIENCE_S, Certificates, Server, make_certificates, server_with_users, until

pytestmark = pytest.mark.slow
EVALFARM = (sys.executable, "-m", "evalfarm")


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path / "certificates")


@pytest.fixture
def server(tmp_path: Path, certificates: Certificates) -> Iterator[Server]:
    with server_with_users(tmp_path, certificates) as server:
        yield server


def environment(server: Server, user: str, tmp_path: Path) -> dict[str, str]:
    """As a service is given it, its secret by file."""
    secrets = tmp_path / f"secrets-{user}"
    secrets.mkdir(mode=0o700, exist_ok=True)
    (secrets / "EVALFARM_REDIS_URL").write_text(server.url(user), encoding="utf-8")
    return os.environ | {
        "EVALFARM_HOME": str(tmp_path / f"home-{user}"),
        "EVALFARM_STORE_URL": f"file://{tmp_path}/store",
        "EVALFARM_SECRETS": str(secrets),
    }


def test_a_run_goes_through_worker_and_scheduler_over_tls_each_as_its_own_user(server: Server, tmp_path: Path) -> None:
    began = [
        subprocess.Popen([*EVALFARM, *words], env=environment(server, user, tmp_path))
        for user, words in (("worker", ("worker", "--slots", "1")), ("scheduler", ("scheduler",)))
    ]
    try:
        run = [*EVALFARM, "run", "bls", "--model", "sim-careful", "--harness", "loop"]
        env = environment(server, "scheduler", tmp_path)
        ended = subprocess.run(run, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert list(exposures({"password": server.password("worker")}, Path("/proc"))) == []
        until(lambda: {"worker", "scheduler"} <= {one["user"] for one in server.admin.client_list()})
    finally:
        for process in began:
            process.terminate()
        for process in began:
            process.wait(PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    assert server.refused() == []


def test_a_certificate_of_another_authority_is_refused_by_ledger_and_queue(server: Server, tmp_path: Path) -> None:
    other = make_certificates(tmp_path / "other")
    url = server.url("worker").partition("?")[0] + f"?ssl_ca_certs={other.authority}"
    with connect(url) as client, pytest.raises(BrokerUnavailable, match="certificate verify failed"):
        check_server(client)
    with pytest.raises(BrokerUnavailable, match="certificate verify failed"):
        queue_depth(make_app(url))


def test_a_certificate_for_another_address_is_refused_by_ledger_and_queue(tmp_path: Path) -> None:
    elsewhere = make_certificates(tmp_path / "certificates", address="127.0.0.2")
    with server_with_users(tmp_path, elsewhere) as server:
        url = server.url("worker")
        with connect(url) as client, pytest.raises(BrokerUnavailable, match="certificate verify failed"):
            check_server(client)
        with pytest.raises(BrokerUnavailable, match="certificate verify failed"):
            queue_depth(make_app(url))


def test_a_port_with_tls_answers_nobody_without(server: Server) -> None:
    plain = server.url("worker").partition("?")[0].replace("rediss:", "redis:")
    with connect(plain) as client, pytest.raises(BrokerUnavailable):
        check_server(client)
    with connect(server.url("worker")) as client:
        assert line_to(client).kind == "tls"
        assert client.ping()
