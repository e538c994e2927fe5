"""A run's end, in the process beside a command (`orders.py`): summed up, its report drawn, its conversations scored.

Apart, so that DuckDB and the statistics are imported when a run is to be closed, and the ledger and the store not
before a server's tools are listed, which every run waits for.
"""

from contextlib import closing
from functools import cache

from evalfarm.cli.beside import reporting
from evalfarm.cli.beside.scored import RunScoring, score_run
from evalfarm.runstate import Ledger, connect
from evalfarm.settings import load_settings
from evalfarm.store import Store
from scheduler import sealer
from worker.rooms import keep_temporary_files

#: What was scored of a run that is at work, until it is sealed. It goes with this process.
_begun: dict[str, RunScoring] = {}


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


def score_so_far(run: str) -> None:
    """Score what a run at work has stored since this was last asked. Raises RulesDisagree."""
    if run not in _begun:
        _take_a_room()
        _begun[run] = RunScoring(_store(), run)
    try:
        _begun[run].go_on()
    except Exception:
        _begun.pop(run).close()
        raise


def score(run: str) -> None:
    """Score the conversations of a sealed run, or what is left of them, unless that is done. Raises RulesDisagree."""
    if run in _begun:
        with closing(_begun.pop(run)) as begun:
            begun.finish()
    else:
        score_run(_store(), run)


@cache
def _take_a_room() -> None:
    keep_temporary_files(load_settings().home / "cells")


def _store() -> Store:
    return Store(load_settings().store_url)
