"""Processes of this machine under one supervisor: started, started again when they die, stopped together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evalfarm.embedded import ending_with
from evalfarm.errors import InfrastructureError

#: A service that died so often within so many seconds is broken, and is not started again.
MOST_DEATHS, WITHIN_S = 5, 60.0
#: Seconds that a service which was told to stop at once has to clear up.
_CLEARING_UP_S = 10.0
_POLL_S = 0.1


@dataclass(frozen=True)
class Service:
    """One command of evalfarm's that runs until it is stopped."""

    name: str
    words: tuple[str, ...]  #: of its command line, after `evalfarm`


@dataclass
class _Running:
    service: Service
    log: Path
    process: "subprocess.Popen[bytes]"
    deaths: list[float] = field(default_factory=list)


def is_broken(deaths: Sequence[float], now_s: float) -> bool:
    """Whether a service that died at these times is to be given up."""
    return sum(now_s - death < WITHIN_S for death in deaths) >= MOST_DEATHS


class Supervisor:
    """The services that one command runs; their logs are named after them. Each dies with this process."""

    def __init__(self, logs: Path, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._logs = logs
        self._env = dict(env)
        self._say = say
        self._running: list[_Running] = []

    def start(self, service: Service) -> None:
        """Start a service; whatever was in its log is gone."""
        log = self._logs / f"{service.name}.log"
        log.write_bytes(b"")
        self._running.append(_Running(service, log, self._launch(service, log)))

    def watch(self) -> None:
        """Keep them running until somebody interrupts. Raises InfrastructureError for one that dies again and again."""
        while True:
            for one in self._running:
                if one.process.poll() is not None:
                    self._again(one)
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Have them finish what they are at, however long it takes, and leave none behind; interrupted: end them."""
        try:
            self._end(signal.SIGTERM, None)
        finally:
            for firmer in (signal.SIGQUIT, signal.SIGKILL):
                self._end(firmer, _CLEARING_UP_S)

    def _end(self, how: signal.Signals, patience_s: float | None) -> None:
        left = [one.process for one in self._running if one.process.poll() is None]
        for process in left:
            process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            for process in left:
                process.wait(patience_s)

    def _again(self, one: _Running) -> None:
        now_s = time.monotonic()
        one.deaths.append(now_s)
        tail = _tail(one.log)
        if is_broken(one.deaths, now_s):
            raise InfrastructureError(
                f"{one.service.name} has stopped {MOST_DEATHS} times within a minute: {tail}", f"its log is {one.log}"
            )
        self._say(f"{one.service.name} has stopped, and is started again: {tail}")
        one.process = self._launch(one.service, one.log)

    def _launch(self, service: Service, log: Path) -> "subprocess.Popen[bytes]":
        # Ctrl-C is for us: in a session of its own, a service is stopped in the order that we choose.
        with log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "evalfarm", *service.words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._env,
                start_new_session=True,
                preexec_fn=ending_with(os.getpid()),  # noqa: PLW1509  # safe: this process has one thread
            )


def _tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    told = [line for line in lines if line.startswith("Error: ")] or lines
    return told[-1] if told else "it wrote nothing"
