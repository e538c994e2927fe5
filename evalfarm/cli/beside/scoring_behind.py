"""Sealed runs scored one after another, while whoever sealed them goes on tending others."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from evalfarm.cli.beside.aside import Aside
from evalfarm.errors import EvalFarmError
from evalfarm.settings import Settings


class ScoringBehind:
    """Has runs scored in a thread, and there in a process that ends with each run and gives its memory back.

    A run that was not scored when this process ended is scored by the first who asks for its conversations.
    """

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        """`say` is told what came in between, the rows in which the rules disagree above all."""
        self._settings = settings
        self._say = say
        self._waiting: SimpleQueue[str] = SimpleQueue()
        # A daemon: at work on a large run it is not waited for.
        threading.Thread(target=self._work, daemon=True).start()

    def begin(self, run: str) -> None:
        """Have a sealed run scored, after those that wait already."""
        self._waiting.put(run)

    def _work(self) -> None:
        while True:
            run = self._waiting.get()
            try:
                with Aside(self._settings) as aside:
                    aside.score(run)
            except (EvalFarmError, RuntimeError) as error:
                self._say(f"run {run} is sealed, and its conversations are not scored: {error}")
