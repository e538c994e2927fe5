"""The one place that reads the environment, and secrets from files; everyone else is handed a `Settings`.

`docs/reference/settings.md` describes each variable for the reader who sets it.
"""

import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr, ValidationError

from evalfarm.contracts.base import Contract
from evalfarm.errors import UsageError
from evalfarm.plain_files import read_plain

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_USERINFO = re.compile(r"://[^/@\s]*@")
_QUERY = re.compile(r"\?\S*")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _url(hosted: tuple[str, ...], local: tuple[str, ...], expected: str) -> AfterValidator:
    def checked(value: str) -> str:
        if not _is_url(value, hosted, local):
            raise ValueError(expected)
        return value.rstrip("/")

    return AfterValidator(checked)


def _is_url(value: str, hosted: tuple[str, ...], local: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    if parts.scheme in local:  # three slashes: in file://store/x the folder would be a host's name
        return not parts.netloc and parts.path.strip("/") != ""
    return parts.scheme in hosted and parts.netloc != ""


RedisUrl = Annotated[
    str, _url(("redis", "rediss"), ("unix",), "redis://host:6379/0, rediss://host:6379/0 or unix:///path/of/a.sock")
]
StoreUrl = Annotated[
    str,
    _url(
        ("s3", "gs", "az"),
        ("file",),
        "file:///a/folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix",
    ),
]
HttpUrl = Annotated[str, _url(("http", "https"), (), "an address such as https://api.openai.com/v1")]
LocalPath = Annotated[Path, AfterValidator(_absolute)]


class Settings(Contract):
    """What the environment says, checked. Made by `load_settings`, then passed down by argument."""

    model_config = ConfigDict(populate_by_name=True)

    home: LocalPath = Field(default=Path(".evalfarm"), alias="EVALFARM_HOME", validate_default=True)
    redis_url: RedisUrl | None = Field(default=None, alias="EVALFARM_REDIS_URL", repr=False)  #: None: the embedded one
    store_url: StoreUrl = Field(
        default_factory=lambda data: (data["home"] / "store").as_uri(), alias="EVALFARM_STORE_URL", repr=False
    )
    codex_bin: LocalPath | None = Field(default=None, alias="EVALFARM_CODEX_BIN")  #: None: the one in the wheel
    prices: LocalPath | None = Field(default=None, alias="EVALFARM_PRICES")  #: None: only the shipped table
    limits: LocalPath | None = Field(default=None, alias="EVALFARM_LIMITS")  #: None: no model is limited
    schedule_file: LocalPath = Field(default=Path("evalfarm.toml"), alias="EVALFARM_FILE", validate_default=True)
    lease_s: float = Field(default=60.0, ge=1.0, alias="EVALFARM_LEASE_S")  #: how long a silent worker keeps its trial
    secrets: LocalPath | None = Field(default=None, alias="EVALFARM_SECRETS")  #: None: no secret comes from a file
    openai_api_key: SecretStr | None = Field(default=None, alias="OPENAI_API_KEY")
    openai_base_url: HttpUrl = Field(default=DEFAULT_BASE_URL, alias="OPENAI_BASE_URL", repr=False)


def variables() -> dict[str, str]:
    """The field of each environment variable, in the order of the class."""
    return {field.alias: name for name, field in Settings.model_fields.items() if field.alias}


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in an environment (none given: the process's own, secrets from files put into it first).

    A blank value counts as unset. Raises UsageError naming the variable, its value (credentials taken out) and what is
    expected, or the secret's file that cannot be read.
    """
    if environ is None:
        take_secrets()
    given = os.environ if environ is None else environ
    said = {name: given[name].strip() for name in variables() if given.get(name, "").strip()}
    try:
        return Settings.model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise UsageError(
            f"{name} is {public_url(said[name])!r}; expected: {first['msg'].removeprefix('Value error, ')}",
            hint=f"unset {name} for its default, or see docs/reference/settings.md",
        ) from None


def environment() -> Mapping[str, str]:
    """The process's environment, for the one other use of it: the values that a suite's `env_from` names."""
    return os.environ


def secret_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that stand for variables, each named as its own; of a folder that is not there, none.

    Raises UsageError where the folder cannot be looked into.
    """
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unread("EVALFARM_SECRETS", folder, error) from error
    return {file.name: file for file in found if _VARIABLE.fullmatch(file.name)}


def take_secrets(environ: MutableMapping[str, str] | None = None) -> None:
    """Put what the files of EVALFARM_SECRETS say into an environment (none given: this process's own, for itself).

    What a process sets for itself is not where `ps` and `docker inspect` look, and `inherited` leaves it out of what
    children are given. An empty file says nothing. Raises UsageError for a file that cannot be read.
    """
    into = os.environ if environ is None else environ
    into.update(_said_in_files(into))


def inherited(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a process of evalfarm's own: without the secrets from files, which it reads for itself."""
    given = os.environ if environ is None else environ
    from_files = _said_in_files(given)
    return {name: value for name, value in given.items() if name not in from_files}


def _said_in_files(environ: Mapping[str, str]) -> dict[str, str]:
    folder = environ.get("EVALFARM_SECRETS", "").strip()
    files = secret_files(_absolute(Path(folder))) if folder else {}
    said = {}
    for name, file in files.items():
        try:
            said[name] = read_plain(file).decode("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise _unread(name, file, error) from error
        if "\0" in said[name]:  # which no variable can hold
            raise _unread(name, file, ValueError())
    return {name: value for name, value in said.items() if value}


def _unread(name: str, path: Path, error: Exception) -> UsageError:
    why = getattr(error, "strerror", None) or "it is not plain text in UTF-8"
    return UsageError(
        f"the secret {name} cannot be read from {path}: {why}",
        hint="let the user that evalfarm runs as read it, or see docs/reference/settings.md for EVALFARM_SECRETS",
    )


def public_url(text: str) -> str:
    """A URL, or a message with URLs in it, without what may be secret: user and password, and the query."""
    return _QUERY.sub("", _USERINFO.sub("://", text))
