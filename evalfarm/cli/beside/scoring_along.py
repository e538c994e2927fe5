"""A run's conversations scored while it is at work, a segment of its results at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from evalfarm.cli.beside.aside import Aside
from scheduler.archiver import SEGMENT_EVENTS

#: Seconds without a new segment after which the process beside is let go of, and with it what it has scored: it takes
#: 150 MB, and all of a run so slow is scored in a fraction of its time when it is over.
_KEPT_S = 60.0


@dataclass
class ScoringAlong:
    """Has the process beside follow one run for as long as segments come often."""

    aside: Aside
    run: str
    clock: Callable[[], float] = time.monotonic
    _segments: int = 0
    _last_at: float | None = None  #: when the last of them was there; None: nothing is held
    _follows: bool = True

    def look(self, closed: int) -> None:
        """Called again and again with the number of closed trials."""
        segments = closed // SEGMENT_EVENTS
        if self._follows and segments > self._segments:
            self._segments, self._last_at = segments, self.clock()
            self.aside.score_so_far(self.run)
        elif self._last_at is not None and self.clock() - self._last_at > _KEPT_S:
            self._follows, self._last_at = False, None
            self.aside.rest()
