"""How much may be asked of each model, as one TOML file declares it. What is asked at the moment: `throttle.py`."""

import re
import tomllib
from pathlib import Path

from pydantic import Field, ValidationError

from evalfarm.contracts.base import Contract
from evalfarm.errors import UsageError
from evalfarm.plain_files import read_plain

METERED_WAIT_S = 600.0
"""Seconds that an attempt may wait in all where requests are metered: on top of its own time limit."""

UNMETERED_WAIT_S = 120.0
"""The same where only a provider's own word can make it wait."""

_HINT = "docs/guides/limits-and-money.md shows a file of limits; unset EVALFARM_LIMITS to run without"


class ModelLimits(Contract):
    """What one model may be asked by the whole farm; None: no limit of this kind."""

    concurrency: int | None = Field(default=None, ge=1, strict=True)  #: trials in flight
    requests_per_minute: float | None = Field(default=None, gt=0, strict=True, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, strict=True, allow_inf_nan=False)  #: in and out

    @property
    def metered(self) -> bool:
        """Whether every request has to be let through, not only every trial."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    @property
    def most_waited_s(self) -> float:
        """Seconds that one attempt may wait in all for limits, for pauses and between tries."""
        return METERED_WAIT_S if self.metered else UNMETERED_WAIT_S


UNLIMITED = ModelLimits()


class Limits(Contract):
    """The limits of every model that the file names. A name is a model's own, as in `--model`: no patterns."""

    models: dict[str, ModelLimits] = {}

    def of(self, model: str) -> ModelLimits:
        """The limits of a model; `UNLIMITED` where none are declared."""
        return self.models.get(model, UNLIMITED)


def load_limits(path: Path | None) -> Limits:
    """The limits in a file; none given: no limits.

    Raises UsageError, naming the file and the line, for one that cannot be read and for a limit that is none.
    """
    if path is None:
        return Limits()
    text = ""
    try:
        text = read_plain(path).decode("utf-8")
        return Limits.model_validate(tomllib.loads(text))
    except OSError as error:
        raise _refused(str(path), error.strerror or str(error)) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = [str(part) for part in first["loc"]]
        told = "there is no such limit" if first["type"] == "extra_forbidden" else first["msg"]
        raise _refused(f"{path}:{_line_of(text, where)}", f"{'.'.join(where)}: {told}") from error
    except ValueError as error:  # TOML that does not parse, which names its line, and bytes that are no UTF-8
        raise _refused(str(path), str(error)) from error


def _line_of(text: str, where: list[str]) -> int:
    """The line that holds the last of these names and stands below those before it; TOML keeps no positions."""
    lines = text.splitlines()
    found = 0
    for name in where:
        said = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        found = next((at for at in range(found, len(lines)) if said.search(lines[at])), found)
    return found + 1


def _refused(where: str, why: str) -> UsageError:
    return UsageError(f"the limits in {where} cannot be used: {why}", hint=_HINT)
