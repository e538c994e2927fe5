"""Where runs are sealed. What it takes is imported no sooner than it is needed: it is half of a tender's memory."""

from importlib import import_module
from typing import Protocol

from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.runstate import Ledger
from evalfarm.store import Store

#: With so many trials left to be closed it is time to make ready: two slots need about a second for them.
SOON = 400


class Sealing(Protocol):
    """Seals runs, in this process or another."""

    def make_ready(self) -> None:
        """A run is about to be closed. Called again and again."""

    def seal(self, ledger: Ledger, store: Store, plan: Plan) -> RunSummary:
        """Do what `scheduler.sealer.seal` promises."""


class SealingHere:
    """In this process."""

    def make_ready(self) -> None:
        """Nothing to do beforehand."""

    def seal(self, ledger: Ledger, store: Store, plan: Plan) -> RunSummary:
        """Seal a run whose trials are closed."""
        summary: RunSummary = import_module("scheduler.sealer").seal(ledger, store, plan)
        return summary
