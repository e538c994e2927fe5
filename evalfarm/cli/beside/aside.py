"""A process beside the command that tends a run, for what takes much memory and little time.

It sums up, draws the report and scores the conversations, these also while the run is at work. DuckDB and the
statistics take 100 MB that the command would otherwise hold for hours, and their second of importing passes while
trials run. A worker that is yet to be one is ordered about in the same way: it lists the servers' tools first.
"""

import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from evalfarm import errors
from evalfarm.cli import early
from evalfarm.contracts.base import Contract
from evalfarm.contracts.run import Isolation
from evalfarm.contracts.suite import Suite
from evalfarm.errors import InfrastructureError
from evalfarm.settings import Settings, inherited

#: Seconds that it has to end once nothing more is asked of it.
_ENDING_S = 10.0


class Listing(Contract):
    """What a variant's server shows of itself."""

    tools: tuple[str, ...]
    digest: str  #: over all that a model reads
    marketplace: str | None = None  #: digest of what Codex installs the plugin from; None: it is not to


class Servers(Contract):
    """Servers to be started and asked for their tools."""

    suite: Suite
    folder: Path
    variants: tuple[str, ...]
    log: Path
    isolation: Isolation
    codex: tuple[str, ...] = ()  #: the variants whose plugin Codex is to have installed


class Order(Contract):
    """What it is to do."""

    do: Literal["list servers", "work", "make ready to seal", "seal", "report", "score so far", "score"]
    servers: Servers | None = None
    run: str = ""
    redis_url: str = ""
    slots: int = 0  #: of a worker
    log: Path | None = None  #: of a worker


class Done(Contract):
    """What came of an order: listings by variant; or an error as its class, message and hint; or a fault of ours."""

    listings: dict[str, Listing] = {}
    error: str | None = None
    message: str = ""
    hint: str = ""
    traceback: str = ""  #: of an error that nobody expected, whose message is the one above


class Aside:
    """The process, started with the first order and ended with the block; Ctrl-C does not reach it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running: subprocess.Popen[bytes] | None = None
        self._unanswered = 0
        self._ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rest(at_once=error is not None)

    def rest(self, *, at_once: bool = False) -> None:
        """End the process, and with it all that it holds; the next order starts another."""
        running, self._running, self._unanswered, self._ready = self._running, None, 0, False
        if running is None:
            return
        with running:
            if at_once:
                running.kill()
            else:
                with suppress(BrokenPipeError):  # it died with an order unread
                    running.stdin.close()  # type: ignore[union-attr]  # it was opened with a pipe
                try:
                    running.wait(_ENDING_S)
                except subprocess.TimeoutExpired:
                    running.kill()

    def list_servers(self, servers: Servers) -> dict[str, Listing]:
        """What each variant's server shows. Raises ServerUnavailable."""
        return self._ask(Order(do="list servers", servers=servers)).listings

    def make_ready_to_seal(self) -> None:
        """Say, once is enough, that a run will soon be closed, so that what sums it up is there by then."""
        if not self._ready:
            self._send(Order(do="make ready to seal"))
            self._ready = True

    def seal(self, run: str, redis_url: str) -> None:
        """Seal a run whose last trial is closed. Raises as `scheduler.sealer.seal` does."""
        self._ask(Order(do="seal", run=run, redis_url=redis_url))

    def report(self, run: str) -> None:
        """Draw the report of a sealed run into files under the home."""
        self._ask(Order(do="report", run=run))

    def score_so_far(self, run: str) -> None:
        """Have the conversations scored that a run at work has stored; nobody waits for it.

        What was scored is kept in that process until the run is sealed, and is scored again where it does not live so
        long.
        """
        self._send(Order(do="score so far", run=run), answered=False)

    def score(self, run: str) -> None:
        """Score the conversations of a sealed run, unless that is done. Raises as `scored.score_run`."""
        self._ask(Order(do="score", run=run))

    def _ask(self, order: Order) -> Done:
        running = self._send(order)
        done = Done()
        for _ in range(self._unanswered):
            line = running.stdout.readline()  # type: ignore[union-attr]  # it was opened with a pipe
            if not line:
                ended = running.wait()
                self.rest()
                raise InfrastructureError(
                    f"the process that was to {order.do} has ended with {ended}",
                    "-9 is what a machine does that runs out of memory; what is decided is kept",
                )
            done = Done.model_validate_json(line)
        self._unanswered = 0
        if done.traceback:
            fault = RuntimeError(done.message)
            fault.add_note(done.traceback)
            raise fault
        if done.error is not None:
            raise getattr(errors, done.error)(done.message, done.hint)
        return done

    def _send(self, order: Order, *, answered: bool = True) -> "subprocess.Popen[bytes]":
        if self._running is None:
            self._running = self._started()
        self._unanswered += answered
        with suppress(BrokenPipeError):  # whoever waits for the answer learns of it
            self._running.stdin.write(order.model_dump_json().encode() + b"\n")  # type: ignore[union-attr]
            self._running.stdin.flush()  # type: ignore[union-attr]
        return self._running

    def _started(self) -> "subprocess.Popen[bytes]":
        known = {"EVALFARM_HOME": str(self._settings.home), "EVALFARM_STORE_URL": self._settings.store_url}
        return early.ordered("evalfarm.cli.beside.orders", environ={**inherited(), **known})


class WorkerToBe(Aside):
    """One that lists the servers' tools first and becomes a worker then: both need MCP, which takes long to import."""

    def work(self, slots: int, log: Path) -> "subprocess.Popen[bytes]":
        """Have it run trials until its standard input is closed; it is the caller's from now on."""
        running = self._send(Order(do="work", slots=slots, log=log), answered=False)
        self._running = None
        running.stdout.close()  # type: ignore[union-attr]  # what it says goes to its log
        return running

    def _started(self) -> "subprocess.Popen[bytes]":
        if (waiting := early.take()) is not None:
            return waiting
        return early.worker_to_be(inherited() | {"EVALFARM_HOME": str(self._settings.home)})
