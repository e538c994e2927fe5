"""`evalfarm doctor --deployment`, held against a real server with the shipped users, faults planted one by one."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalfarm.cli.upkeep.deployment import Place, Service, ask, check_rules, examine_deployment
from evalfarm.cli.upkeep.findings import Finding, Missing
from evalfarm.cli.upkeep.of_redis import check_clock, of_redis
from evalfarm.errors import BrokerUnavailable, InfrastructureError
from evalfarm.exporter.serving import Page, served
from evalfarm.runstate import connect, line_to, rights_of
from evalfarm.settings import load_settings
from tests.deploy.redis_servers import Server, make_certificates, server_with_users
from tests.prometheus_tools import program

ROOT = Path(__file__).parents[2]
WORK = "may do its work and nothing else that was tried"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_with_users(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def admin(server: Server) -> Iterator[Any]:
    """Whoever may plant faults; what they change is put back."""
    yield server.admin
    server.admin.config_set("maxmemory-policy", "noeviction")
    server.admin.config_set("appendonly", "yes")
    server.admin.execute_command("ACL", "LOAD")
    server.admin.flushall()


def found(url: str, service: str, clock: Callable[[], float] = time.time) -> dict[str, Finding]:
    return {one.check: one for one in of_redis(url, service, clock)}


def states(findings: dict[str, Finding]) -> dict[str, str]:
    return {name: one.state for name, one in findings.items()}


ALL_WELL = dict.fromkeys(("redis", "connection", "durability", "user", "strangers", "clock", "messages"), "ok")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "user"),
    [
        ("worker", "worker"),
        ("scheduler", "scheduler"),
        ("beat", "scheduler"),
        ("exporter", "exporter"),
        ("all", "scheduler"),
    ],
)
def test_each_service_is_content_with_the_user_that_is_shipped_for_it(server: Server, service: str, user: str) -> None:
    told = found(server.url(user), service)
    assert states(told) == ALL_WELL
    assert {name: told[name].found for name in ("connection", "durability", "user", "strangers", "messages")} == {
        "connection": f"redis://127.0.0.1:{server.port}/0 is on this machine",
        "durability": "append-only file, being written",
        "user": f"{user} {WORK}",
        "strangers": "nobody is let in without a password",
        "messages": "JSON alone is taken, and all of 0 that wait are",
    }
    assert server.password(user) not in str(told)


@pytest.mark.slow
def test_a_user_of_another_service_may_too_little_or_too_much(server: Server) -> None:
    assert found(server.url("worker"), "scheduler")["user"].found == (
        "the user 'worker' may not use the queue of schedules"
    )
    assert found(server.url("worker"), "exporter")["user"].found == (
        "the user 'worker' may do more than it needs: change the ledger, use the queues of trials, "
        "use the queue of judges, keep what Celery keeps"
    )
    told = found(server.url("exporter"), "worker")["user"]
    assert told.found.startswith("the user 'exporter' may not change the ledger or use the queues of trials or ")
    assert "deploy/redis/users.acl" in told.hint


@pytest.mark.slow
def test_a_user_who_may_do_anything_is_found_out_and_nothing_is_done(server: Server, admin: Any) -> None:
    admin.execute_command("ACL", "SETUSER", "mighty", "on", ">planted-password", "~*", "&*", "+@all")
    admin.mset({"f:kept": "1", "foreign": "2"})
    before = (admin.acl_list(), admin.config_get(), admin.keys(), admin.client_id())
    told = found(
        server.url("worker").replace("worker:", "mighty:").replace(server.password("worker"), "planted-password"),
        "all",
    )
    assert told["user"].state == "broken"
    assert told["user"].found == (
        "the user 'mighty' may do more than it needs: FLUSHALL, CONFIG SET, CONFIG GET, KEYS, ACL SETUSER, ACL LIST, "
        "CLIENT KILL, REPLICAOF, SHUTDOWN, read foreign keys, write foreign keys, speak on foreign channels"
    )
    assert (admin.acl_list(), admin.config_get(), admin.keys(), admin.client_id()) == before
    assert admin.info("replication")["role"] == "master"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "told"),
    [
        ("+flushall", "FLUSHALL"),
        ("+config|set", "CONFIG SET"),
        ("+keys", "KEYS"),
        ("~*", "read foreign keys, write foreign keys, use the queue of schedules"),
        ("&*", "speak on foreign channels"),
    ],
)
def test_one_right_too_many_is_named(server: Server, admin: Any, right: str, told: str) -> None:
    admin.execute_command("ACL", "SETUSER", "worker", right)
    with connect(server.url("worker")) as client:
        assert rights_of(client).user == "worker"
    assert found(server.url("worker"), "worker")["user"].found == f"the user 'worker' may do more than it needs: {told}"


def evicts(admin: Any) -> None:
    admin.config_set("maxmemory-policy", "allkeys-lru")


def forgets(admin: Any) -> None:
    admin.config_set("appendonly", "no")


def lets_everybody_in(admin: Any) -> None:
    admin.execute_command("ACL", "SETUSER", "default", "on", "nopass", "+ping")


def has_a_pickle(admin: Any) -> None:
    message = {"body": "gAR9lC4=", "content-type": "application/x-python-serialize", "headers": {}, "properties": {}}
    admin.lpush("trials.nightly", json.dumps(message))


def has_no_message(admin: Any) -> None:
    admin.lpush("judging", b"\x80\x04")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "check", "told"),
    [
        (evicts, "redis", "may evict run state: its maxmemory-policy is allkeys-lru"),
        (forgets, "durability", "keeps no append-only file: a restart forgets what was counted"),
        (lets_everybody_in, "strangers", "Redis lets everybody in, without a password"),
        (
            has_a_pickle,
            "messages",
            "a message in the queue trials.nightly is application/x-python-serialize, not JSON: ",
        ),
        (has_no_message, "messages", "a message in the queue judging is unreadable, not JSON: "),
    ],
)
def test_a_fault_of_the_server_is_found_and_said_what_to_do_about(
    server: Server, admin: Any, fault: Callable[[Any], None], check: str, told: str
) -> None:
    fault(admin)
    findings = found(server.url("worker"), "worker")
    assert told in findings[check].found
    assert findings[check].hint
    expected = {"redis": "broken"} if check == "redis" else ALL_WELL | {check: "broken"}
    assert states(findings) == expected


@pytest.mark.slow
def test_messages_that_evalfarm_sent_are_what_it_takes(server: Server, admin: Any) -> None:
    admin.lpush("trials.nightly", json.dumps({"body": "", "content-type": "application/json"}))
    assert found(server.url("worker"), "worker")["messages"].found == "JSON alone is taken, and all of 1 that wait are"


@pytest.mark.slow
def test_a_clock_that_is_off_is_found_by_the_server_s(server: Server) -> None:
    told = found(server.url("worker"), "worker", lambda: time.time() + 61.0)["clock"]
    assert (told.state, told.found) == ("broken", "this machine's clock is 61.0 s ahead of Redis's")


def test_a_clock_may_be_a_little_off() -> None:
    assert check_clock(-4.94) == "this machine's clock is 4.9 s behind Redis's"
    with pytest.raises(BrokerUnavailable, match=r"^this machine's clock is 5\.1 s behind Redis's"):
        check_clock(-5.1)


def test_a_redis_that_is_not_named_or_not_there_is_all_that_is_said(tmp_path: Path) -> None:
    (told,) = of_redis(None, "worker", time.time)
    assert (told.check, told.state) == ("redis", "broken")
    (told,) = of_redis(f"unix://{tmp_path}/none.sock", "worker", time.time)
    assert (told.check, told.state) == ("redis", "broken")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("rediss://u:p@redis.example:6379/0", "tls"),
        ("rediss://redis.example:6379/0?ssl_ca_certs=/a/ca.pem", "tls"),
        ("rediss://redis.example:6379/0?ssl_cert_reqs=none", "tls unchecked"),
        ("redis://redis.example:6379/0", "plain"),
        ("redis://localhost:6379/0", "machine"),
        ("redis://127.0.0.1:6379/0", "machine"),
        ("unix:///run/redis.sock", "machine"),
    ],
)
def test_how_a_connection_goes_is_told_by_its_address(url: str, kind: str) -> None:
    with connect(url) as client:
        assert line_to(client).kind == kind


@pytest.mark.slow
def test_over_tls_a_certificate_must_be_checked(tmp_path: Path) -> None:
    with server_with_users(tmp_path, make_certificates(tmp_path / "certificates")) as server:
        told = found(server.url("worker"), "worker")
        assert states(told) == ALL_WELL
        assert told["connection"].found == f"rediss://127.0.0.1:{server.port}/0 over TLS, its certificate checked"
        told = found(server.url("worker").partition("?")[0] + "?ssl_cert_reqs=none", "worker")
        assert states(told) == ALL_WELL | {"connection": "broken"}
        told = found(server.url("worker").partition("?")[0], "worker")
        assert states(told) == {"redis": "broken"}
        assert "certificate verify failed" in told["redis"].found


def doctor(*words: str, **environ: str) -> tuple[int, dict[str, Finding]]:
    """The command as a process of its own, whose environment is what others see of it."""
    argv = [sys.executable, "-m", "evalfarm", "doctor", "--json", *words]
    done = subprocess.run(argv, env=os.environ | environ, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    findings = [Finding.model_validate(one) for one in told["findings"]]
    assert told["ready"] == (done.returncode == 0)
    return done.returncode, {one.check: one for one in findings}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A copy of Prometheus's configuration with its rules, to be spoilt."""
    return Path(shutil.copytree(ROOT / "deploy/prometheus", tmp_path / "prometheus")) / "prometheus.yml"


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_rules_load_or_it_is_said_which_does_not(rules: Path) -> None:
    program("promtool")
    assert check_rules(rules) == f"promtool takes {rules} and its rules"
    spoil(rules.parent / "rules/alerts.yml", "and on (suite", "adn on (suite")
    with pytest.raises(InfrastructureError, match=r"alerts\.yml.*parse error") as caught:
        check_rules(rules)
    assert caught.value.hint == f"mend it, until promtool check config {rules} is content"


def test_without_promtool_rules_are_read_as_far_as_that_goes(rules: Path, tmp_path: Path) -> None:
    told = check_rules(rules, search_path=str(tmp_path))
    assert isinstance(told, Missing)
    assert re.fullmatch(rf"{re.escape(str(rules))} and \d\d rules are YAML", told.found)
    spoil(rules.parent / "rules/alerts.yml", "rules:", "rulse:")
    with pytest.raises(InfrastructureError, match=r"prometheus\.yml or its rules do not read: 'rules'"):
        check_rules(rules, search_path=str(tmp_path))
    with pytest.raises(InfrastructureError, match=r"none\.yml or its rules do not read: .*No such file"):
        check_rules(tmp_path / "none.yml", search_path=str(tmp_path))
    assert isinstance(check_rules(None), Missing)


def test_a_service_is_asked_whether_it_is_ready() -> None:
    pages = {"/readyz": lambda: Page("ok\n"), "/late": lambda: Page("last well 9 s ago\n", 503)}
    pages["/console"] = lambda: Page("a token is needed\n", 401)
    with served("127.0.0.1", 0, pages) as port:
        at = f"http://127.0.0.1:{port}"
        assert ask(f"{at}/readyz") == f"{at}/readyz is ready"
        assert ask(f"{at}/console") == f"{at}/console answers, and asks for a token"
        with pytest.raises(InfrastructureError, match=f"^{at}/late says 503: last well 9 s ago"):
            ask(f"{at}/late")
    with pytest.raises(InfrastructureError, match=f"^{at}/readyz does not answer: "):
        ask(f"{at}/readyz")
    with pytest.raises(InfrastructureError, match=r"^nowhere does not answer: "):
        ask("nowhere")


@pytest.mark.slow
def test_schedules_are_read_as_beat_would_read_them(server: Server, tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "evalfarm.toml"
    shutil.copy(ROOT / "deploy/schedules/evalfarm.toml", file)
    look = partial(schedules, "beat", file, server, monkeypatch)
    assert look(TEAM_WEBHOOK="https://hooks.example/x") == ("ok", f"bls-nightly, as {file} declares")
    assert look() == ("missing", "bls-nightly; receiver 'team' cannot be told")
    spoil(file, 'suite = "bls"', 'suite = "blz"')
    state, told = look()
    assert state == "broken"
    assert told.startswith(f"{file}:2: schedules.bls-nightly: ")
    file.unlink()
    assert look() == ("broken", f"there is no {file}")
    assert schedules("all", file, server, monkeypatch)[0] == "missing"


def schedules(service: Service, file: Path, server: Server, monkeypatch: Any, **environ: str) -> tuple[str, str]:
    monkeypatch.delenv("TEAM_WEBHOOK", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    given = {"EVALFARM_HOME": os.environ["EVALFARM_HOME"], "EVALFARM_FILE": str(file)}
    place = Place(load_settings(given | {"EVALFARM_REDIS_URL": server.url("scheduler")}), service, time.time)
    (told,) = [one for one in examine_deployment(place) if one.check == "schedules"]
    return told.state, told.found


@pytest.mark.slow
def test_a_deployment_that_holds_ends_with_0(server: Server, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "EVALFARM_REDIS_URL").write_text(server.url("worker"), encoding="utf-8")
    configuration = ROOT / "deploy/prometheus/prometheus.yml"
    with served("127.0.0.1", 0, {"/readyz": lambda: Page("ok\n")}) as port:
        words = ("--probe", f"http://127.0.0.1:{port}/readyz", "--prometheus", str(configuration))
        code, told = doctor("--deployment", "worker", *words, EVALFARM_SECRETS=str(secrets))
    assert code == 0, told
    assert states(told) | {"rules": "ok"} == {"codex": "ok", "isolation": "ok"} | ALL_WELL | dict.fromkeys(
        ("store", "secrets", "rules", "probe"), "ok"
    )


def test_a_deployment_that_does_not_hold_ends_with_4_and_a_line_for_each_check(evalfarm: Callable[..., Any]) -> None:
    ended = evalfarm("doctor", "--deployment", "scheduler")
    lines = ended.out.splitlines()
    assert (ended.code, ended.err) == (4, "")
    checks = [line.split()[:2] for line in lines[:-2] if not line.startswith(" ")]
    assert checks == [
        ["broken", "redis"],
        ["ok", "store"],
        ["missing", "secrets"],
        ["missing", "rules"],
        ["missing", "probe"],
    ]
    assert all(line.startswith(f"{'':19}→ ") for line in lines[:-2] if line.startswith(" "))
    assert lines[-1] == "As far as can be seen from here, the farm cannot work yet."


def test_what_belongs_to_a_deployment_is_refused_without_it(evalfarm: Callable[..., Any]) -> None:
    ended = evalfarm("doctor", "--probe", "http://web:8080/")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "Error: --probe and --prometheus belong to a deployment\n\nhint: add --deployment\n"
