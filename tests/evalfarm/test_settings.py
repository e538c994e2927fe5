import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.errors import UsageError
from evalfarm.settings import Settings, inherited, load_settings, public_url, take_secrets, variables

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_an_empty_environment_gives_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({}) == Settings(
        home=tmp_path / ".evalfarm",
        redis_url=None,
        store_url=f"file://{tmp_path}/.evalfarm/store",
        codex_bin=None,
        prices=None,
        openai_api_key=None,
        openai_base_url="https://api.openai.com/v1",
    )


def test_the_process_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALFARM_REDIS_URL", "redis://broker:6379/0")
    assert load_settings().redis_url == "redis://broker:6379/0"
    assert load_settings() == load_settings(os.environ)


def test_blank_values_count_as_unset_and_foreign_ones_are_ignored() -> None:
    environ = {"EVALFARM_REDIS_URL": "", "OPENAI_API_KEY": " \n", "EVALFARM_OTHER": "1", "PATH": "/bin"}
    assert load_settings(environ) == load_settings({})


def test_paths_become_absolute_and_the_store_follows_the_home(tmp_path: Path) -> None:
    settings = load_settings({"EVALFARM_HOME": str(tmp_path / "a b"), "EVALFARM_CODEX_BIN": "~/codex"})
    assert settings.store_url == f"file://{tmp_path}/a%20b/store"
    assert settings.codex_bin == Path.home() / "codex"


def test_a_trailing_slash_is_taken_off_an_address() -> None:
    assert load_settings({"OPENAI_BASE_URL": "http://localhost:1/v1/"}).openai_base_url == "http://localhost:1/v1"


def test_the_key_is_read_without_its_newline_and_never_shown() -> None:
    settings = load_settings({"OPENAI_API_KEY": "sk-secret\n", "EVALFARM_REDIS_URL": "redis://:pw@host"})
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-secret"
    assert not re.search("sk-secret|pw", repr(settings))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "EVALFARM_REDIS_URL",
            "http://me:pw@host/0",
            "'http://host/0'; expected: redis://host:6379/0, rediss://host:6379/0 or unix:///path/of/a.sock",
        ),
        (
            "EVALFARM_STORE_URL",
            "file://store",
            "'file://store'; expected: file:///a/folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
        ),
        ("OPENAI_BASE_URL", "x?key=1", "'x'; expected: an address such as https://api.openai.com/v1"),
        ("OPENAI_BASE_URL", "http://[x", "'http://[x'; expected: an address such as https://api.openai.com/v1"),
    ],
)
def test_a_bad_value_is_named_with_what_is_expected(name: str, value: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings({name: value})
    assert caught.value.message == f"{name} is {told}"
    assert caught.value.hint == f"unset {name} for its default, or see docs/reference/settings.md"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EVALFARM_STORE_URL", "/data/store"),
        ("EVALFARM_STORE_URL", "s3://"),
        ("EVALFARM_STORE_URL", "file:///"),
        ("EVALFARM_REDIS_URL", "host:6379"),
        ("EVALFARM_REDIS_URL", "unix://a.sock"),
        ("OPENAI_BASE_URL", "api.openai.com"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is "):
        load_settings({name: value})


def test_every_field_is_read_from_a_variable_that_the_reference_describes() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(variables().values()) == set(Settings.model_fields)
    assert rows == list(variables())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:pw@host:6379/0", "redis://host:6379/0"),
        ("https://a/b?sig=secret", "https://a/b"),
        ("file:///a/b@c", "file:///a/b@c"),
        ("PUT https://me:pw@host/b?sig=s failed after 5 tries", "PUT https://host/b failed after 5 tries"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert public_url(url) == shown


def test_settings_cannot_be_changed() -> None:
    settings: Any = load_settings({})
    with pytest.raises(ValueError, match="frozen"):
        settings.home = Path("/")


def test_secrets_are_read_from_files_before_the_environment_and_an_empty_file_says_nothing(tmp_path: Path) -> None:
    given = {"OPENAI_API_KEY": "sk-a b$c\n", "TEAM_WEBHOOK": "", "EVALFARM_LEASE_S": "30\n\n", "users.acl": "user"}
    for name, text in given.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "..data").mkdir()  # as Kubernetes mounts them
    environ = {"EVALFARM_SECRETS": str(tmp_path), "TEAM_WEBHOOK": "old", "EVALFARM_LEASE_S": "20"}
    before = dict(environ)
    take_secrets(environ)
    assert environ == before | {"OPENAI_API_KEY": "sk-a b$c", "EVALFARM_LEASE_S": "30"}
    assert inherited(environ) == {"EVALFARM_SECRETS": str(tmp_path), "TEAM_WEBHOOK": "old"}


def test_the_process_s_own_secrets_are_read_with_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "OPENAI_API_KEY").write_text("sk-from-a-file\n", encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-old")
    monkeypatch.setenv("EVALFARM_SECRETS", str(tmp_path))
    key = load_settings().openai_api_key
    assert key is not None
    assert key.get_secret_value() == os.environ["OPENAI_API_KEY"] == "sk-from-a-file"
    assert "OPENAI_API_KEY" not in inherited()


def test_without_a_folder_of_secrets_nothing_is_taken_out_and_one_that_is_not_there_has_none(tmp_path: Path) -> None:
    environ = {"EVALFARM_SECRETS": str(tmp_path / "none"), "OPENAI_API_KEY": "sk-x"}
    before = dict(environ)
    take_secrets(environ)
    assert (environ, inherited(environ)) == (before, before)
    assert inherited({"OPENAI_API_KEY": "sk-x"}) == {"OPENAI_API_KEY": "sk-x"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, "Is a directory"),
        (lambda place: place.write_bytes(b"\xff"), "it is not plain text in UTF-8"),
        (lambda place: place.write_bytes(b"sk-\0x"), "it is not plain text in UTF-8"),
    ],
)
def test_a_secret_that_cannot_be_read_is_named(tmp_path: Path, make: Callable[[Path], object], why: str) -> None:
    place = tmp_path / "OPENAI_API_KEY"
    make(place)
    with pytest.raises(UsageError) as caught:
        take_secrets({"EVALFARM_SECRETS": str(tmp_path)})
    assert str(caught.value) == (
        f"the secret OPENAI_API_KEY cannot be read from {place}: {why}\n\n"
        "hint: let the user that evalfarm runs as read it, or see docs/reference/settings.md for EVALFARM_SECRETS"
    )
