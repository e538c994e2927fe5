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
from evalfarm.errors import UnknownName
from evalfarm.runstate import BACKOFF_S, MAX_ATTEMPTS, Client, Ledger, Progress, live_slots
from evalfarm.store import Store
from scheduler.feeder import feed
from scheduler.sealer import archive, seal

#: Seconds between two looks at a run.
TICK_S = 0.1
#: Overdue trials dealt with in one look.
_REAP_LIMIT = 500


@dataclass(frozen=True)
class Scheduler:
    """Everything that tending a run needs, handed in."""

    store: Store
    redis: Client
    app: App
    plans: dict[str, Plan] = field(default_factory=dict)  #: those fetched so far

    def open_run(self, plan: Plan, manifest: Manifest, files: Mapping[str, bytes]) -> None:
        """Store what the run is made of, then enter it in the ledger. Raises UsageError when the id is taken."""
        for content in files.values():
            self.store.put_blob(content)
        self.store.put_plan(plan)
        self.store.put_manifest(manifest)
        Ledger(self.redis, plan.run).create(plan.size, manifest.digests["plan"])

    def tick(self, plan: Plan, ledger: Ledger) -> Progress:
        """Look at a run once and do what is due."""
        ledger.reap(_REAP_LIMIT, max_attempts=MAX_ATTEMPTS, backoff_s=BACKOFF_S)
        feed(self.app, ledger, plan, slots=live_slots(self.redis))
        archive(ledger, self.store, plan, rest=False)
        return ledger.progress()

    def look_at(self, run: str, watch: Callable[[Progress], None] = lambda _: None) -> RunSummary | None:
        """Tend a run once; its summary when that sealed it, or when it was sealed before.

        `watch` is shown the progress.
        """
        plan, ledger = self._plan(run), Ledger(self.redis, run)
        try:
            progress = self.tick(plan, ledger)
        except UnknownName:  # a sealed run has no state left in Redis
            if (sealed := self.store.get_summary(run)) is not None:
                return sealed
            raise
        watch(progress)
        if progress.closed == progress.planned or (progress.cancelled and not progress.in_flight):
            return seal(ledger, self.store, plan)
        return None

    def see_through(self, run: str, watch: Callable[[Progress], None]) -> RunSummary:
        """Tend a run until its last trial closes and it is sealed."""
        while (summary := self.look_at(run, watch)) is None:
            time.sleep(TICK_S)
        return summary

    def _plan(self, run: str) -> Plan:
        if run not in self.plans:
            self.plans[run] = self.store.get_plan(run)
        return self.plans[run]
