"""The attempts of a run that left a trace, with where they come from; also while the run is at work."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from evalfarm.analysis.conversations.origins import of_attempt, version_of
from evalfarm.contracts.conversation import Origin
from evalfarm.contracts.run import Trace
from evalfarm.contracts.verdict import Result
from evalfarm.store import Store

T = TypeVar("T")

Seen = tuple[Trace, Origin]

#: Traces that are read at a time: in a bucket each is a round trip, which nobody should wait for one by one.
_READERS = 8
#: Traces that are read ahead of what is done with them.
_AHEAD = 64
#: Of a trial that is not closed; no attempt has this number.
_OPEN = 65_535


class Attempts:
    """The attempts of a run's closed trials, each given once. Holds two bytes a trial."""

    def __init__(self, store: Store, run: str) -> None:
        """Raises UnknownName when there is no such run."""
        self._store = store
        self.plan = store.get_plan(run)
        self._versions = {
            variant: version_of(self.plan, variant) for variant in {arm.variant for arm in self.plan.arms}
        }
        self._segments = 0  #: that were read
        self._closed_by = array("H", [_OPEN]) * self.plan.size

    def counted(self) -> Iterator[Seen]:
        """The attempts that closed a trial, of all results that were stored since this was last asked."""
        yield from self._read((result, result.attempt) for result in self._new_results())

    def others(self) -> Iterator[Seen]:
        """The attempts of these trials that did not count: superseded ones, which may be stored late."""
        found: dict[int, list[int]] = {}
        for index, attempt in self._store.attempts(self.plan.run):
            if self._closed_by[index] not in (_OPEN, attempt):
                found.setdefault(index, []).append(attempt)
        if found:
            results = (result for result in self._store.results(self.plan.run) if result.trial.index in found)
            yield from self._read((result, n) for result in results for n in sorted(found[result.trial.index]))

    def _new_results(self) -> Iterator[Result]:
        run = self.plan.run
        judged = {result.trial.index: result for result in self._store.judged(run) or ()}
        while self._segments < self._store.segments(run):
            for stored in self._store.segment(run, self._segments):
                self._closed_by[stored.trial.index] = stored.attempt
                yield judged.get(stored.trial.index, stored)
            self._segments += 1

    def _read(self, wanted: Iterable[tuple[Result, int]]) -> Iterator[Seen]:
        yield from (seen for seen in self._at_once(self._seen, wanted) if seen is not None)

    def _at_once(self, read: Callable[[tuple[Result, int]], T], wanted: Iterable[tuple[Result, int]]) -> Iterator[T]:
        if self._store.objects.is_local:  # nothing to wait for
            yield from map(read, wanted)
            return
        left = iter(wanted)
        with ThreadPoolExecutor(_READERS, "reading") as readers:
            while ahead := list(islice(left, _AHEAD)):
                yield from readers.map(read, ahead)

    def _seen(self, wanted: tuple[Result, int]) -> Seen | None:
        result, attempt = wanted
        trial = result.trial
        trace = self._store.find_trace(self.plan.run, trial.index, attempt)
        if trace is None:  # lost with its worker
            return None
        version, case = self._versions[trial.arm.variant], self.plan.suite.case(trial.case)
        return trace, of_attempt(version, case, result, attempt=attempt)
