"""The tries of one model request: how many, how long to wait between them, and the time that takes.

The provider's Retry-After is kept to; without one, each wait is twice as long as the last. A wait that does not fit in
what is left of the time for trying again is not begun: then the provider is out of reach for this attempt.
"""

import time
from collections.abc import Callable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential_jitter

from worker.gateways.reply import Reply

#: Tries of one request, the first included.
MAX_TRIES = 5
#: Seconds of waiting between the tries of one request, all together.
MOST_RESTED_S = 120.0
#: Before the second try, where the provider does not say.
FIRST_WAIT_S = 0.25


class TryAgain(Exception):
    """Raised by a try that failed in a way that is worth another."""

    def __init__(self, what: str, status: int | None, reply: Reply, retry_after_s: float | None = None) -> None:
        """`status` is what the provider answered (None: nothing), `reply` what the harness gets if no try is left."""
        super().__init__(what)
        self.what = what
        self.status = status
        self.reply = reply
        self.retry_after_s = retry_after_s


class Tries:
    """Makes, counts and times them; its times are those of time.monotonic()."""

    def __init__(self, first_wait_s: float, on_wait: Callable[[float], None], *, side: bool = False) -> None:
        """`on_wait` is told of each wait, in seconds, before it begins; `side`: the request is a side call."""
        self.side = side
        self._backoff = wait_exponential_jitter(multiplier=first_wait_s, max=32 * first_wait_s, jitter=first_wait_s)
        self._on_wait = on_wait
        self._waiting = False
        self._rested_s = 0.0
        self.first_at = self.last_at = time.monotonic()
        self.failures: list[str] = []  #: what each failed try met
        self.told = False  #: whether the request is on record

    def each(self) -> AsyncRetrying:
        """A context for every try. A TryAgain inside leads to the next one, and that of the last one is raised."""
        return AsyncRetrying(
            retry=retry_if_exception_type(TryAgain),
            stop=self._enough,
            wait=self._wait_s,
            before=self._begin,
            after=self._fail,
            before_sleep=self._rest,
            reraise=True,
        )

    def hold(self) -> None:
        """The next try waits to be let through, until `send`."""
        self._waiting = True

    def send(self) -> None:
        """The try that was let through begins now; until here it was waiting."""
        self._waiting = False
        self.last_at = time.monotonic()

    def give_up(self) -> None:
        """Nothing more will be tried: where a wait was cut off, it counts as waiting to its end."""
        if self._waiting:
            self.last_at = time.monotonic()

    @property
    def waited_s(self) -> float:
        """Seconds spent on earlier tries, between them and for limits, which is no part of the model's latency."""
        return self.last_at - self.first_at

    def _begin(self, state: RetryCallState) -> None:
        self._waiting = False
        self.last_at = time.monotonic()
        if state.attempt_number == 1:
            self.first_at = self.last_at

    def _fail(self, state: RetryCallState) -> None:
        if failure := _failure(state):
            self.failures.append(failure.what)

    def _wait_s(self, state: RetryCallState) -> float:
        failure = _failure(state)
        if failure is None or failure.retry_after_s is None:
            return self._backoff(state)
        return failure.retry_after_s

    def _enough(self, state: RetryCallState) -> bool:
        return state.attempt_number >= MAX_TRIES or self._rested_s + state.upcoming_sleep > MOST_RESTED_S

    def _rest(self, state: RetryCallState) -> None:
        self._waiting = True
        self._rested_s += state.upcoming_sleep
        self._on_wait(state.upcoming_sleep)


def _failure(state: RetryCallState) -> TryAgain | None:
    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, TryAgain) else None
