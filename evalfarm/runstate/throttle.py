"""What the farm asks of each model at the moment: pauses, lowered caps and the pace of requests, by the server's clock.

Keys of one model, for all runs: `f:m:{model}:sem` ZSET "run/trial:attempt" -> deadline in ms, the trials in flight,
renewed and forgotten with their leases; `f:m:{model}:ctl` HASH of `paused` (until, ms), `cap` (lowered by a 429),
`streak` (attempts that ended well since the cap last moved), `requests` and `tokens` (GCRA's theoretical arrival, ms).
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.limits import Limits, ModelLimits
from evalfarm.runstate.scripts import script

MINUTE_MS = 60_000.0

LONGEST_PAUSE_S = 900.0
"""A provider that wants to be left alone for longer is asked again after so many seconds."""

SHORTEST_PAUSE_S = 1.0
"""After a 429 that names no time, or none to speak of: long enough to be one pause for all that meet it."""

_LOOK_S = 0.25
"""How long a process trusts what it last knew of a pause."""

_NEVER = (-math.inf, 0.0)


class Throttle:
    """What one process keeps to. Safe to share between threads; every method raises BrokerUnavailable."""

    def __init__(self, client: Client, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._client = client
        self._clock = clock
        self._paused: dict[str, tuple[float, float]] = {}  # model -> when looked at, paused until; by our clock

    def must_ask(self, model: str) -> bool:
        """Whether `book` asks Redis for this model now, or knows the answer: every request of a metered one does."""
        looked_at, _ = self._paused.get(model, _NEVER)
        return self.limits.of(model).metered or self._clock() - looked_at > _LOOK_S

    def book(self, model: str, tokens: int, longest_s: float) -> float:
        """Take a place for one request of about so many tokens: seconds until it may be sent.

        Less than 0: there is none within `longest_s`, and none was taken.
        """
        limits = self.limits.of(model)
        if not limits.metered:
            wait_s = self.paused_s(model)
            return wait_s if wait_s <= longest_s else -wait_s
        args = [*request_pace(limits), *token_pace(limits), tokens, math.floor(longest_s * 1000)]
        return int(self._run("admit", model, *args)) / 1000

    def correct(self, model: str, more_tokens: int) -> None:
        """Say by how many tokens the estimate of an earlier `book` was too small (less than 0: too large)."""
        limits = self.limits.of(model)
        if limits.tokens_per_minute is not None and more_tokens:
            self._run("correct", model, token_pace(limits)[0], more_tokens)

    def pause(self, model: str, retry_after_s: float | None) -> None:
        """The provider answered 429: nobody asks for this model until then, and by half as many trials after."""
        pause_s = min(max(retry_after_s or 0.0, SHORTEST_PAUSE_S), LONGEST_PAUSE_S)
        self._run("pause", model, round(pause_s * 1000), self.limits.of(model).concurrency or 0)
        self._paused.pop(model, None)

    def paused_s(self, model: str) -> float:
        """Seconds for which the model is paused, as known a moment ago."""
        now = self._clock()
        looked_at, paused_until = self._paused.get(model, _NEVER)
        if now - looked_at > _LOOK_S:
            with answered(self._client), self._client.pipeline(transaction=False) as pipe:
                pipe.time()
                pipe.hget(control_key(model), "paused")
                (seconds, micros), paused = pipe.execute()
            paused_until = now + max(0.0, int(paused or 0) / 1000 - seconds - micros / 1e6)
            self._paused[model] = (now, paused_until)
        return max(0.0, paused_until - now)

    def _run(self, name: str, model: str, *args: float) -> Any:
        with answered(self._client):
            return self._client.run_script(script(f"model/{name}"), (control_key(model),), args)


def room(client: Client, limits: Limits, models: Iterable[str]) -> dict[str, float]:
    """How many more trials of each model may start now: none while it is paused, infinite without a cap.

    Raises BrokerUnavailable.
    """
    names = list(dict.fromkeys(models))
    with answered(client):
        seconds, micros = client.time()
        now_ms = seconds * 1000 + micros / 1000
        with client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hmget(control_key(name), ["paused", "cap"])
                pipe.zcount(f"f:m:{name}:sem", now_ms, "+inf")
            found = pipe.execute()
    return {
        name: _room(limits.of(name), paused=float(control[0] or 0) > now_ms, lowered=control[1], in_flight=in_flight)
        for name, control, in_flight in zip(names, found[::2], found[1::2], strict=True)
    }


def _room(limits: ModelLimits, *, paused: bool, lowered: bytes | None, in_flight: int) -> float:
    if paused:
        return 0
    if limits.concurrency is None:
        return math.inf
    cap = limits.concurrency if lowered is None else min(limits.concurrency, int(lowered))
    return max(0, cap - in_flight)


def request_pace(limits: ModelLimits) -> tuple[float, float]:
    """GCRA for requests: ms for each, and ms of requests that may be early. 0, 0: no limit.

    A tenth of a minute's requests may come at once and the rest are spread over it, so that no minute, wherever it
    begins, sees more than the limit: at most (b - 1) + 60 s / step of them, with b - 1 = floor(r / 10).
    """
    rate = limits.requests_per_minute
    if rate is None:
        return 0.0, 0.0
    early = math.floor(rate / 10)
    step_ms = MINUTE_MS / (rate - early)
    return step_ms, early * step_ms


def token_pace(limits: ModelLimits) -> tuple[float, float]:
    """The same for tokens. A request larger than what may be early is let through, and those after it wait longer."""
    rate = limits.tokens_per_minute
    if rate is None:
        return 0.0, 0.0
    step_ms = MINUTE_MS / (0.9 * rate)
    return step_ms, 0.1 * rate * step_ms


def control_key(model: str) -> str:
    """Where a model's pause, lowered cap and pace are kept."""
    return f"f:m:{model}:ctl"
