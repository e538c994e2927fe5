"""The keys of one run, and the Lua scripts over them."""

from functools import cache
from importlib.resources import files
from typing import Any

import redis

from evalfarm.runstate.connection import answered

KEYS = ("win", "att", "fl", "own", "rq", "cnt", "past", "out", "meta", "hold", "ids", "sent", "arms", "pace")
"""As prelude.lua names them."""

_SCRIPTS = (
    "create", "take", "claim", "renew", "end", "give_back", "overdue", "reap", "resend", "cancel", "archive", "restore",
    "rebuilt", "drop",
)  # fmt: skip


class Scripts:
    """The scripts of one run. Cheap to make, safe to share between threads."""

    def __init__(self, client: redis.Redis, run: str) -> None:
        self._client = client
        self._prefix = f"f:{{{run}}}:"
        self.keys = {name: self._prefix + name for name in KEYS}
        self._scripts: dict[str, Any] = {name: client.register_script(_lua(name)) for name in _SCRIPTS}

    def run(self, name: str, *args: int | str | bytes, more_keys: tuple[str, ...] = ()) -> Any:
        """Run one script over the run's keys and those that are named besides. Raises BrokerUnavailable."""
        with answered(self._client):
            return self._scripts[name](keys=[self._prefix, *more_keys], args=args)


def milliseconds(seconds: float) -> int:
    """Seconds as the scripts take them."""
    return round(seconds * 1000)


@cache
def _lua(name: str) -> str:
    folder = files("evalfarm") / "lua"
    return (folder / "prelude.lua").read_text() + (folder / f"{name}.lua").read_text()
