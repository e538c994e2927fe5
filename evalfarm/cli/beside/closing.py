"""A run's end, in the process beside a command (`orders.py`): summed up, its report drawn, its conversations scored.

Apart, so that DuckDB and the statistics are imported when a run is to be closed, and the ledger and the store not
before a server's tools are listed, which every run waits for.
"""

from evalfarm.cli.beside import reporting, scored
from evalfarm.runstate import Ledger, connect
from evalfarm.settings import load_settings
from evalfarm.store import Store
from scheduler import sealer


def seal(run: str, redis_url: str) -> None:
    """Seal a run whose last trial is closed. Raises as `scheduler.sealer.seal` does."""
    store = _store()
    with connect(redis_url) as redis:
        sealer.seal(Ledger(redis, run), store, store.get_plan(run))


def report(run: str) -> None:
    """Draw the report of a sealed run into files under the home."""
    summary = _store().get_summary(run)
    if summary is None:
        raise ValueError(f"there is no summary of run {run!r} to report")
    reporting.write_files(summary, load_settings().home)


def score(run: str) -> None:
    """Score the conversations of a sealed run, unless that is done. Raises RulesDisagree."""
    scored.score_run(_store(), run)


def _store() -> Store:
    return Store(load_settings().store_url)
