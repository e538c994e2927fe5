"""Where secrets lie: in files of their owner's alone, and in no process's environment."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evalfarm.cli.upkeep.findings import Missing
from evalfarm.cli.upkeep.secrecy import SecretFile, check_secrets, exposures, look_at, secrets_of
from evalfarm.errors import InfrastructureError
from evalfarm.settings import load_settings

KEY = "sk-planted-0123456789"


def file(mode: int, *, apart: bool = False, reachable: bool = True) -> SecretFile:
    return SecretFile(path=Path("/s/KEY"), mode=mode, apart=apart, reachable=reachable)


@pytest.mark.parametrize(
    ("secret", "fault"),
    [
        (file(0o400), None),
        (file(0o440), None),
        (file(0o644), "everybody may read /s/KEY (mode 0644)"),
        (file(0o644, apart=True), None),
        (file(0o644, reachable=False), None),
        (file(0o660), "others may change /s/KEY (mode 0660)"),
        (file(0o666, apart=True), "others may change /s/KEY (mode 0666)"),
    ],
)
def test_a_secret_s_file_is_its_owner_s_alone(secret: SecretFile, fault: str | None) -> None:
    assert secret.fault() == fault


def test_a_secret_s_file_is_looked_at_where_it_really_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "real/KEY").write_text("x")
    (tmp_path / "real/KEY").chmod(0o644)
    (tmp_path / "KEY").symlink_to("real/KEY")
    assert look_at(tmp_path / "KEY") == SecretFile(path=tmp_path / "KEY", mode=0o644, apart=False, reachable=False)
    with pytest.raises(InfrastructureError, match="cannot be looked at: No such file"):
        look_at(tmp_path / "none")


def test_secrets_are_the_key_passwords_of_addresses_and_what_is_in_files() -> None:
    environ = {
        "OPENAI_API_KEY": KEY,
        "EVALFARM_REDIS_URL": "rediss://worker:planted%2Dpassword@redis:6379/0",
        "EVALFARM_STORE_URL": "s3://bucket/farm",
        "AWS_SECRET_ACCESS_KEY": "planted-of-the-store",
        "TEAM_WEBHOOK": "https://hooks.example/planted",
        "AWS_REGION": "eu-central-1",
    }
    assert secrets_of(load_settings(environ), environ, ("TEAM_WEBHOOK", "EVALFARM_REDIS_URL")) == {
        "AWS_SECRET_ACCESS_KEY": "planted-of-the-store",
        "TEAM_WEBHOOK": "https://hooks.example/planted",
        "OPENAI_API_KEY": KEY,
        "EVALFARM_REDIS_URL": "planted-password",
    }


def test_a_secret_in_the_environment_of_a_process_is_found_and_not_told(tmp_path: Path) -> None:
    for pid in (7, 30, 100, 101):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(f"PATH=/bin\0OPENAI_API_KEY={KEY}\0".encode())
        (tmp_path / str(pid) / "comm").write_text("python\n")
    (tmp_path / "8").mkdir()  # another user's: nothing of it can be read
    assert list(exposures({"OPENAI_API_KEY": KEY, "TEAM_WEBHOOK": "https://hooks.example"}, tmp_path)) == [
        "OPENAI_API_KEY is in the environment of python (7), python (30), python (100) and 1 more"
    ]


def test_without_any_secret_there_is_none_to_look_at() -> None:
    told = check_secrets(load_settings({}), {}, Path("/nowhere"))
    assert isinstance(told, Missing)
    assert told.found == "none is set: no password, no key"


@pytest.mark.slow
def test_a_secret_belongs_into_a_file_and_into_no_environment(tmp_path: Path) -> None:
    environ, command = environment_of_a_service(tmp_path), [sys.executable, "-m", "evalfarm", "doctor", "--json"]
    told = [
        secrets_told(
            subprocess.run([*command, "--deployment", "web"], env=env, capture_output=True, text=True, check=False)
        )
        for env in (environ | {"OPENAI_API_KEY": KEY}, environ | {"EVALFARM_SECRETS": str(tmp_path / "secrets")})
    ]
    (in_environment, in_file) = told
    assert in_environment[0] == 4
    assert in_environment[1].startswith("OPENAI_API_KEY is in the environment of python")
    assert in_file == (0, f"OPENAI_API_KEY: in files of {tmp_path}/secrets, and in no process's environment")


def environment_of_a_service(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/OPENAI_API_KEY").write_text(KEY)
    (tmp_path / "secrets/OPENAI_API_KEY").chmod(0o440)
    return {**os.environ, "EVALFARM_STORE_URL": f"file://{tmp_path}/store"}


def secrets_told(done: "subprocess.CompletedProcess[str]") -> tuple[int, str]:
    assert done.stderr == ""
    assert KEY not in done.stdout
    (told,) = [one["found"] for one in json.loads(done.stdout)["findings"] if one["check"] == "secrets"]
    return done.returncode, told


def test_a_file_that_everybody_may_read_is_named() -> None:
    # The system's own temporary folder: everybody may enter it, and pytest's is its owner's alone.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "OPENAI_API_KEY").write_text(KEY)
        (folder / "OPENAI_API_KEY").chmod(0o644)
        settings = load_settings({"EVALFARM_SECRETS": name})
        with pytest.raises(InfrastructureError) as caught:
            check_secrets(settings, {"OPENAI_API_KEY": KEY}, Path("/nowhere"))
    assert caught.value.message == f"everybody may read {name}/OPENAI_API_KEY (mode 0644)"
    assert caught.value.hint.startswith("put each into a file named as its variable, in a folder that EVALFARM_SECRETS")
