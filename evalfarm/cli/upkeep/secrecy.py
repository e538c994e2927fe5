"""Where a service's secrets lie: files that others cannot change or read, and no process's environment."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evalfarm.cli.upkeep.findings import Missing
from evalfarm.contracts.base import Contract
from evalfarm.errors import InfrastructureError
from evalfarm.settings import Settings, secret_files, variables

#: Variables of the stores' providers that hold a secret.
_OF_STORES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_SAS_TOKEN",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
#: A shorter value would be found in texts that have nothing to do with it.
_SHORTEST = 8
_SHOWN_PROCESSES = 3
_HINT = (
    "put each into a file named as its variable, in a folder that EVALFARM_SECRETS names, readable by the services' "
    "user alone (Docker and Kubernetes mount them so); start what holds them anew, and change what others may have read"
)


class SecretFile(Contract):
    """A file that holds a secret, as the file system tells of it."""

    path: Path
    mode: int  #: its permission bits
    apart: bool  #: mounted by itself, as Docker does: only this container has it
    reachable: bool  #: everybody may enter the folders that it lies in

    def fault(self) -> str | None:
        """Who else may get at it; None: nobody."""
        if self.mode & (stat.S_IWGRP | stat.S_IWOTH) and self.reachable:
            return f"others may change {self.path} (mode {self.mode:04o})"
        if self.mode & stat.S_IROTH and self.reachable and not self.apart:
            return f"everybody may read {self.path} (mode {self.mode:04o})"
        return None


def check_secrets(settings: Settings, environ: Mapping[str, str], proc: Path = Path("/proc")) -> str | Missing:
    """Makes sure that secrets lie in files of their own and nowhere else. Raises InfrastructureError naming each fault.

    Looks into the environment of every process under `proc` that this user may look into; never tells a value.
    """
    files = secret_files(settings.secrets) if settings.secrets else {}
    secrets = secrets_of(settings, environ, tuple(files))
    if not secrets:
        return Missing("none is set: no password, no key", "a deployed service is given its own: docs/deployment.md")
    faults = [fault for path in files.values() if (fault := look_at(path).fault())]
    faults += exposures(secrets, proc)
    if faults:
        raise InfrastructureError("; ".join(faults), _HINT)
    return f"{', '.join(secrets)}: in files of {settings.secrets}, and in no process's environment"


def secrets_of(settings: Settings, environ: Mapping[str, str], files: tuple[str, ...]) -> dict[str, str]:
    """The secrets that this process has, by the variable: those in files, and those that are known to be secret."""
    found = {name: environ[name] for name in sorted({*files, *_OF_STORES}) if environ.get(name)}
    if settings.openai_api_key is not None:
        found["OPENAI_API_KEY"] = settings.openai_api_key.get_secret_value()
    for name, field in variables().items():
        said = getattr(settings, field)
        if name.endswith("_URL") and said:
            found.pop(name, None)  # of an address only the password is secret
            if password := urlsplit(said).password:
                found[name] = unquote(password)
    return {name: value for name, value in found.items() if len(value) >= _SHORTEST}


def look_at(path: Path) -> SecretFile:
    """A secret's file. Raises InfrastructureError where it cannot be looked at."""
    try:
        told, real = path.stat(), path.resolve()
        folders = [folder.stat() for folder in real.parents]
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be looked at: {error.strerror}", _HINT) from error
    return SecretFile(
        path=path,
        mode=stat.S_IMODE(told.st_mode),
        apart=told.st_dev != folders[0].st_dev,
        reachable=all(folder.st_mode & stat.S_IXOTH for folder in folders),
    )


def exposures(secrets: Mapping[str, str], proc: Path) -> Iterator[str]:
    """Each secret that stands in the environment of a process, as whoever may look into it reads it, and in which."""
    environs = list(_environs(proc))
    for name, value in secrets.items():
        raw = os.fsencode(value)
        holding = [process for process, environ in environs if raw in environ]
        if holding:
            more = f" and {len(holding) - _SHOWN_PROCESSES} more" if len(holding) > _SHOWN_PROCESSES else ""
            yield f"{name} is in the environment of {', '.join(holding[:_SHOWN_PROCESSES])}{more}"


def _environs(proc: Path) -> Iterator[tuple[str, bytes]]:
    for folder in sorted(proc.glob("[0-9]*"), key=lambda one: int(one.name)):
        try:
            environ = (folder / "environ").read_bytes()
            name = (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue  # it is gone, or another user's
        yield f"{name} ({folder.name})", environ
