"""The Lua scripts, put together from their parts, and the keys of one run that they work on."""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from evalfarm.runstate.client import Client, Script
from evalfarm.runstate.connection import answered

KEYS = ("win", "att", "fl", "own", "rq", "cnt", "past", "out", "meta", "hold", "ids", "sent", "arms", "pace")
"""As prelude.lua names them."""

Of = Literal["run", "judging"]
"""The folder of those that work on the keys of one run."""

_PLACED = ("claim", "renew", "end")
"""Those that take, keep or leave a model's place, and are preceded by places.lua too."""


class Scripts:
    """The scripts of one run, of its trials or of its judging. Cheap to make, safe to share between threads."""

    def __init__(self, client: Client, run: str, of: Of = "run") -> None:
        self._client = client
        self._of = of
        self._prefix = f"f:{{{run}}}:"
        self.keys = {name: self._prefix + name for name in KEYS}

    def run(self, name: str, *args: int | str | bytes, more_keys: tuple[str, ...] = ()) -> Any:
        """Run one script over the run's keys and those that are named besides. Raises BrokerUnavailable."""
        with answered(self._client):
            return self._client.run_script(script_of_run(self._of, name), (self._prefix, *more_keys), args)


@cache
def script(name: str) -> Script:
    """One that stands alone, by its path below the folder of all."""
    return Script(_source(name))


def milliseconds(seconds: float) -> int:
    """Seconds as the scripts take them."""
    return round(seconds * 1000)


@cache
def script_of_run(of: Of, name: str) -> Script:
    """One that works on the keys of one run."""
    if name == "end_and_claim":
        both = _function("end_", "run/end") + _function("claim", "run/claim")
        return Script(_source("prelude", "places") + both + _source("run/end_and_claim"))
    places, common = ["places"] * (name in _PLACED), ["judging/common"] * (of == "judging")
    return Script(_source("prelude", *places, *common, f"{of}/{name}"))


def _source(*parts: str) -> str:
    folder = files("evalfarm") / "lua"
    return "".join((folder / f"{part}.lua").read_text() for part in parts)


def _function(name: str, part: str) -> str:
    """A script as a function of what it is told."""
    return f"local function {name}(ARGV)\n{_source(part)}\nend\n"
