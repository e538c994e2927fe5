"""Opens a run and sees it through: reap, feed, archive, until the last trial closes; then seal.

Nothing here needs to be the only one of its kind. The command that started a run and the scheduler service may
both tend it; every step is atomic in the ledger or create-only in the store.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from evalfarm.broker import App
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import BrokerUnavailable, InfrastructureError, StoreUnavailable, UnknownName
from evalfarm.runstate import Client, Ledger, Limits, Progress
from evalfarm.store import Store
from scheduler.archiver import archive
from scheduler.feeder import NO_LIMITS, feed
from scheduler.judging import Judging
from scheduler.reaper import Grade, reap
from scheduler.rebuilder import Rebuilt, rebuild, shape_of
from scheduler.sealing import SOON, Sealing, SealingHere

#: Seconds between two looks at a run.
TICK_S = 0.1
_FIRST_TICK_S = 0.01
#: Seconds between two looks whether the store still has the run.
_STORE_CHECK_S = 5.0
#: Seconds for which Redis or the store may be away before whoever waits for a run gives up.
OUTAGE_PATIENCE_S = 300.0


@dataclass(frozen=True)
class _Known:
    plan: Plan
    manifest: Manifest
    looked_at: float


@dataclass(frozen=True)
class Scheduler:
    """Everything that tending a run needs, handed in."""

    store: Store
    redis: Client
    app: App
    grade: Grade
    limits: Limits = NO_LIMITS
    lease_s: float = 60.0  #: how long a worker that is silent keeps its trial
    say: Callable[[str], None] = lambda _: None  #: told what a person should know
    revive: Callable[[], None] = lambda: None  #: starts Redis again, where that is ours to do
    judging: Judging | None = None  #: None: no run here has judges
    sealing: Sealing = field(default_factory=SealingHere)
    known: dict[str, _Known] = field(default_factory=dict)

    def open_run(self, plan: Plan, manifest: Manifest, files: Mapping[str, bytes]) -> None:
        """Store what the run is made of, then enter it in the ledger. Raises UsageError when the id is taken."""
        for content in files.values():
            self.store.put_blob(content)
        self.store.put_plan(plan)
        self.store.put_manifest(manifest)
        Ledger(self.redis, plan.run).create(plan.size, manifest.digests["plan"], shape_of(plan, manifest))

    def rebuild(self, run: str) -> Rebuilt | None:
        """Build a run's state in Redis anew from the store; None: Redis holds it. Raises UnknownName."""
        known = self._look_up(run)
        return rebuild(Ledger(self.redis, run), self.store, known.plan, known.manifest, self.grade)

    def tick(self, plan: Plan, manifest: Manifest, ledger: Ledger) -> Progress:
        """Look at a run once and do what is due. Raises UnknownName when Redis holds no state of it."""
        if (progress := ledger.progress()).rebuilding:
            return progress
        reap(ledger, self.store, plan, self.grade, lease_s=self.lease_s)
        feed(self.app, self.redis, ledger, plan, manifest.queue, limits=self.limits)
        archive(ledger, self.store, plan, rest=False)
        return ledger.progress()

    def look_at(self, run: str, watch: Callable[[Progress], None] = lambda _: None) -> RunSummary | None:
        """Tend a run once; its summary when that sealed it, or when it was sealed before.

        A run that Redis has lost is rebuilt first. `watch` is shown the progress.
        """
        known, ledger = self._look_up(run), Ledger(self.redis, run)
        try:
            progress = self.tick(known.plan, known.manifest, ledger)
        except UnknownName:
            if (sealed := self.store.get_summary(run)) is not None:  # a sealed run has no state left in Redis
                return sealed
            self._rebuild(run)
            return None
        watch(progress)
        if progress.planned - progress.closed <= SOON:
            self.sealing.make_ready()
        if progress.rebuilding:
            self._rebuild(run)  # whoever began it may be gone
        elif progress.closed == progress.planned or (progress.cancelled and not progress.in_flight):
            return self.sealing.seal(ledger, self.store, known.plan) if self._is_judged(known.plan, ledger) else None
        return None

    def see_through(self, run: str, watch: Callable[[Progress], None]) -> RunSummary:
        """Tend a run until its last trial closes and it is sealed.

        Raises BrokerUnavailable or StoreUnavailable when Redis or the store stay away for five minutes.
        """
        began, away_since = time.monotonic(), None
        while True:
            try:
                if (summary := self.look_at(run, watch)) is not None:
                    return summary
                away_since = None
            except (BrokerUnavailable, StoreUnavailable) as error:
                now = time.monotonic()
                if away_since is None:
                    away_since = now
                    self.say(f"{error.message}; trying again for {OUTAGE_PATIENCE_S / 60:.0f} minutes")
                elif now - away_since > OUTAGE_PATIENCE_S:
                    raise
                self._try_to_revive(error)
            # A run that is over at once is seen to be in a twentieth of its time.
            time.sleep(min(TICK_S, _FIRST_TICK_S + (time.monotonic() - began) / 20))

    def _try_to_revive(self, error: InfrastructureError) -> None:
        if isinstance(error, BrokerUnavailable):
            try:
                self.revive()
            except BrokerUnavailable as still:
                self.say(still.message)

    def _rebuild(self, run: str) -> None:
        self.say(f"Redis holds no state of run {run}: rebuilding it from {self.store.url}")
        if (done := self.rebuild(run)) is not None:
            self.say(f"Rebuilt: {done.closed + done.committed} trials are decided")

    def _is_judged(self, plan: Plan, ledger: Ledger) -> bool:
        """Whether a run whose trials are closed has nothing left for its judges; asks them for what it has."""
        if not plan.judges:
            return True
        if self.judging is None:
            raise ValueError(f"run {plan.run!r} has judges, and nothing here can ask them")
        archive(ledger, self.store, plan, rest=True)
        return self.judging.tend(plan)

    def _look_up(self, run: str) -> _Known:
        """The run as it is stored, looked up now and then: a store that somebody deletes is soon noticed."""
        known, now = self.known.get(run), time.monotonic()
        if known is None or now - known.looked_at > _STORE_CHECK_S:
            try:
                known = _Known(self.store.get_plan(run), self.store.get_manifest(run), now)
            except UnknownName as error:
                if known is None:
                    raise
                raise InfrastructureError(
                    f"run {run!r} is gone from {self.store.url}: its plan was deleted while it ran",
                    f"put it back and `evalfarm resume {run}`, or start a new run",
                ) from error
            self.known[run] = known
        return known
