"""A look at the ledger and the store. What cannot change is read once, so a scrape costs a list and a few heads."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from evalfarm.analysis.judgement.judge_faults import identical_judge
from evalfarm.broker import ALL_QUEUES
from evalfarm.contracts.calibration import Calibration
from evalfarm.contracts.gate import GateRecord
from evalfarm.contracts.run import Manifest
from evalfarm.contracts.tally import RunTally
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import BrokerUnavailable, StoreUnavailable, UsageError
from evalfarm.exporter.owing import LOOKED_BACK, owed_since
from evalfarm.exporter.seen import Judge, Night, NightOf, Owed, Seen, Source, Took
from evalfarm.judgings import Judgings
from evalfarm.nights import Nights
from evalfarm.outcomes import Outcomes
from evalfarm.runstate import Client, FarmView, Limits, OpenRun, view_farm
from evalfarm.store import Store

FORGOTTEN_S = 7 * 86_400.0
"""A suite that nobody ran for so long is no longer told of as one that has nights."""

_LOOKED_BACK = 10  # runs, for the newest that is finished and the newest that was judged
_MOST_LABELS = 20  # of a suite in a queue, the newest: schedules are told apart by them
_AGAIN_S = 60.0  # between looks whether a run that no ledger holds was sealed after all
_SUMMARIES_KEPT = 100  # a large one has some megabytes
_CONFIRM = "confirm/"  # begins the label of a confirm run


class Reader:
    """Whoever looks. Safe in several threads, which look one after the other."""

    def __init__(self, store: Store, client: Client, limits: Limits, clock: Callable[[], float]) -> None:
        self._store, self._outcomes, self._judgings = store, Outcomes(store.objects), Judgings(store.objects)
        self._schedules = Nights(store.objects)
        self._client, self._limits, self._clock = client, limits, clock
        self._lock = Lock()
        self._manifests: dict[str, Manifest | None] = {}  # None: of another version, not to be read again
        self._tallies: dict[str, RunTally] = {}  # of runs that are sealed
        self._going_on: dict[str, RunTally] = {}  # of runs that are, or were when last looked at, in the ledger
        self._asked: dict[str, float] = {}  # run -> when it was last looked whether it is sealed
        self._summaries: dict[str, tuple[str, RunSummary]] = {}  # run -> its version, as of the last look
        self._gates: dict[tuple[str, str], GateRecord] = {}
        self._calibrations: tuple[list[str], list[Calibration]] = ([], [])
        self._nights: tuple[Night, ...] = ()
        self._owed: tuple[Owed, ...] = ()
        self._judges: tuple[Judge, ...] = ()
        self._read_at: dict[Source, float] = {}

    def look(self) -> Seen:
        """The farm now. Raises nothing that a source can cause: `Seen.failed` says what could not be read."""
        with self._lock:
            failed: dict[Source, str] = {}
            farm = self._look_at_ledger(failed)
            try:
                self._look_at_store({view.run for view in farm.runs} if farm else set(self._going_on))
                self._read_at["store"] = self._clock()
            except (StoreUnavailable, UsageError) as error:
                failed["store"] = error.message
            if farm is not None:
                self._note(farm.runs)
            known = {run: manifest for run, manifest in self._manifests.items() if manifest is not None}
            return Seen(
                nights=self._nights,
                owed=self._owed,
                judges=self._judges,
                took=tuple(self._took(known)),
                farm=farm,
                manifests=known,
                untended=0 if farm is None else sum(self._untended(known.values(), {view.run for view in farm.runs})),
                limits=self._limits,
                read_at=dict(self._read_at),
                failed=failed,
            )

    # ---- the ledger

    def _look_at_ledger(self, failed: dict[Source, str]) -> FarmView | None:
        try:
            farm = view_farm(self._client, self._limits, ALL_QUEUES)
        except BrokerUnavailable as error:
            failed["ledger"] = error.message
            return None
        self._read_at["ledger"] = self._clock()
        return farm

    def _note(self, runs: tuple[OpenRun, ...]) -> None:
        for view in runs:
            if (manifest := self._manifests.get(view.run)) is not None:
                arms = (view.arm_tally(place, arm.model_dump()) for place, arm in enumerate(manifest.arms))
                self._going_on[view.run] = RunTally(run=view.run, attempts=view.attempts, arms=tuple(arms))

    def _took(self, known: dict[str, Manifest]) -> Iterator[Took]:
        """A sealed run's tally, else what the ledger last said. Never less than before, as long as we live."""
        for run, manifest in sorted(known.items(), key=lambda item: item[1].created_at, reverse=True):
            tally = self._tallies.get(run) or self._going_on.get(run)
            if tally is not None:
                yield Took(_night_of(manifest), tally)

    def _untended(self, kept: Iterable[Manifest], open_runs: set[str]) -> Iterator[bool]:
        """Of each run of the last week, whether it is neither sealed nor in the ledger."""
        for one in kept:
            recent = self._clock() - one.created_at < FORGOTTEN_S
            yield recent and one.run not in open_runs and one.run not in self._tallies

    # ---- the store

    def _look_at_store(self, open_runs: set[str]) -> None:
        kept = self._outcomes.runs()
        for run in kept:
            if run not in self._manifests:
                self._learn(run)
        for run in kept:
            if run not in open_runs and run not in self._tallies and self._is_due(run):
                self._seek_tally(run)
        there = [manifest for run in kept if (manifest := self._manifests.get(run)) is not None]
        self._nights = tuple(self._last_nights(there, open_runs))
        self._owed = tuple(self._owed_by_schedules(there))
        self._judges = tuple(self._judges_of(self._nights))

    def _learn(self, run: str) -> None:
        try:
            manifest = self._outcomes.manifest(run)
        except UsageError:
            self._manifests[run] = None
            return
        if manifest is not None:
            self._manifests[run] = manifest

    def _is_due(self, run: str) -> bool:
        """Whether to look for a tally: at once where the ledger has just let go of the run, else now and then."""
        return run in self._going_on or self._clock() - self._asked.get(run, -_AGAIN_S) >= _AGAIN_S

    def _seek_tally(self, run: str) -> None:
        self._asked[run] = self._clock()
        if (tally := self._outcomes.tally(run)) is not None:
            self._tallies[run] = tally
            self._going_on.pop(run, None)

    def _last_nights(self, manifests: list[Manifest], open_runs: set[str]) -> Iterator[Night]:
        grouped: dict[tuple[NightOf, str | None], list[Manifest]] = {}
        for manifest in sorted(manifests, key=lambda one: (one.created_at, one.run), reverse=True):
            if not (manifest.label or "").startswith(_CONFIRM):
                grouped.setdefault((_night_of(manifest), manifest.label), []).append(manifest)
        labels: Counter[NightOf] = Counter()
        for (of, _), newest_first in grouped.items():
            labels[of] += 1
            if self._clock() - newest_first[0].created_at < FORGOTTEN_S and labels[of] <= _MOST_LABELS:
                closed = [one.run for one in newest_first[: _LOOKED_BACK + 1] if one.run not in open_runs]
                finished = next(filter(None, map(self._summary, closed)), None)
                yield Night(of, newest_first[0], finished, next(filter(None, map(self._gate, closed)), None))

    def _owed_by_schedules(self, manifests: list[Manifest]) -> Iterator[Owed]:
        """Schedules whose suite is known by a run of theirs, and that were not given up long ago."""
        runs = {manifest.run for manifest in manifests}
        nightly = [one for one in manifests if one.queue == "nightly"]
        suites = {one.label: one.suite for one in sorted(nightly, key=lambda one: one.created_at)}
        for name in self._schedules.schedules():
            if (suite := suites.get(name)) is not None:
                nights = self._schedules.of(name, LOOKED_BACK)
                due_at = owed_since(nights, self._schedules.ends(nights), runs)
                if due_at is not None and self._clock() - due_at < FORGOTTEN_S:
                    yield Owed(NightOf(suite, "nightly"), name, due_at)

    def _summary(self, run: str) -> RunSummary | None:
        """A run's summary if it is finished; read again only where it is another one than before."""
        version = self._outcomes.summary_version(run)
        if version is None:
            return None
        if self._summaries.get(run, ("", None))[0] != version:
            summary = self._store.get_summary(run)
            assert summary is not None
            self._summaries.pop(run, None)
            self._summaries[run] = (version, summary)
            while len(self._summaries) > _SUMMARIES_KEPT:
                del self._summaries[next(iter(self._summaries))]
        summary = self._summaries[run][1]
        return summary if summary.finished else None

    def _gate(self, run: str) -> GateRecord | None:
        names = self._outcomes.gates(run)
        if not names:
            return None
        key = (run, names[-1])
        if key not in self._gates and (record := self._outcomes.gate(*key)) is not None:
            self._gates[key] = record
        return self._gates.get(key)

    def _judges_of(self, nights: tuple[Night, ...]) -> Iterator[Judge]:
        told = set()
        for night in nights:
            digests = night.finished.manifest.digests if night.finished and night.finished.manifest else {}
            for model in (key.removeprefix("judge/") for key in digests if key.startswith("judge/")):
                if (night.of.suite, model) not in told:
                    told.add((night.of.suite, model))
                    held_out = (one for one in self._all_calibrations() if one.purpose == "held-out")
                    newest = next((one for one in held_out if identical_judge(one, model, digests)), None)
                    yield Judge(night.of.suite, model, newest)

    def _all_calibrations(self) -> list[Calibration]:
        names = self._judgings.calibration_names()
        if names != self._calibrations[0]:
            self._calibrations = (names, self._judgings.calibrations())
        return self._calibrations[1]


def _night_of(manifest: Manifest) -> NightOf:
    return NightOf(manifest.suite, manifest.queue)
