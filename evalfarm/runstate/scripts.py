"""The keys of one run, and the Lua scripts over them."""

from functools import cache
from importlib.resources import files
from typing import Any

import redis

from evalfarm.runstate.connection import answered

KEYS = ("win", "att", "fl", "own", "rq", "cnt", "past", "out", "meta", "hold", "ids", "sent", "arms", "pace")
"""As prelude.lua names them."""

_SCRIPTS = (
    "create", "take", "claim", "renew", "end", "end_and_claim", "give_back", "overdue", "reap", "resend", "cancel",
    "archive", "restore", "rebuilt", "drop",
)  # fmt: skip

_PLACED = ("claim", "renew", "end", "judging_claim", "judging_renew", "judging_end")
"""Those that take, keep or leave a model's place, and are preceded by places.lua too."""


class Scripts:
    """The scripts of one run. Cheap to make, safe to share between threads."""

    def __init__(self, client: redis.Redis, run: str, names: tuple[str, ...] = _SCRIPTS) -> None:
        self._client = client
        self._prefix = f"f:{{{run}}}:"
        self.keys = {name: self._prefix + name for name in KEYS}
        self._scripts: dict[str, Any] = {name: client.register_script(_lua(name)) for name in names}

    def run(self, name: str, *args: int | str | bytes, more_keys: tuple[str, ...] = ()) -> Any:
        """Run one script over the run's keys and those that are named besides. Raises BrokerUnavailable."""
        with answered(self._client):
            return self._scripts[name](keys=[self._prefix, *more_keys], args=args)


def milliseconds(seconds: float) -> int:
    """Seconds as the scripts take them."""
    return round(seconds * 1000)


@cache
def _lua(name: str) -> str:
    if name == "end_and_claim":
        return _source("prelude", "places") + _function("end_", "end") + _function("claim", "claim") + _source(name)
    parts = ["prelude", *(["places"] if name in _PLACED else []), *(["judging"] if "judging_" in name else []), name]
    return _source(*parts)


def _source(*parts: str) -> str:
    folder = files("evalfarm") / "lua"
    return "".join((folder / f"{part}.lua").read_text() for part in parts)


def _function(name: str, part: str) -> str:
    """A script as a function of what it is told."""
    return f"local function {name}(ARGV)\n{_source(part)}\nend\n"
