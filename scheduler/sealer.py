"""Results leave Redis for object storage in segments; a run that is closed is summarised and sealed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.summary.aggregate import summarize_run
from evalfarm.analysis.summary.rows import Rows, rows_of_run
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.errors import InfrastructureError
from evalfarm.runstate import ArchivePosition, Event, Ledger
from evalfarm.store import Store
from scheduler.judging import with_judging
from scheduler.rebuilder import restore
from scheduler.spending import with_money

#: Events of the ledger's stream in one segment, most of them results; a few megabytes before compression.
SEGMENT_EVENTS = 5_000


def archive(ledger: Ledger, store: Store, plan: Plan, *, rest: bool, full: int = SEGMENT_EVENTS) -> None:
    """Write every segment of `full` events to the store, results alone; with `rest`, the last, shorter one too.

    Safe to repeat and to run twice at once: segments are cut by the order of the ledger's stream, so two
    archivers write the same bytes under the same key, and only one of them wins.
    """
    while True:
        position = ledger.archive_position()
        events = ledger.events(position.archived_id, full)
        if not events or (len(events) < full and not rest):
            return
        rows = [row for event in events for row in _results(plan, event)]
        segments = _put(ledger, store, plan, position.segments, rows)
        ledger.advance_archive(position, ArchivePosition(segments, events[-1].id))
        ledger.trim(events[-1].id)


def _put(ledger: Ledger, store: Store, plan: Plan, k: int, rows: list[Result]) -> int:
    """Store what no segment from the k-th on holds yet; the number of the next segment.

    One that is there is another archiver's, or was written before Redis lost its last second: then the trials in it
    are closed, whatever Redis says, and their results are not written twice.
    """
    while rows and not store.put_segment(plan.run, k, rows):
        stored = store.segment(plan.run, k)
        restore(ledger, store, plan, stored)
        known = {result.trial.index for result in stored}
        rows = [row for row in rows if row.trial.index not in known]
        k += 1
    return k + 1 if rows else k


def seal(ledger: Ledger, store: Store, plan: Plan) -> RunSummary:
    """Archive what is left, keep the rows, summarise, and let go of the run's place in Redis. Safe to repeat."""
    counted = ledger.progress().closed
    archive(ledger, store, plan, rest=True)
    progress = ledger.progress()
    manifest = store.get_manifest(plan.run)
    with rows_of_run(plan, store.result_documents(plan.run)) as rows:
        kept = rows.records("SELECT count(*) FROM rows WHERE verdict <> 'not_run'")[0][0]
        if kept < counted:
            raise InfrastructureError(
                f"{store.url} holds {kept} of the {counted} results of run {plan.run!r} that were counted",
                "somebody has deleted from it; put back what was under "
                f"runs/{plan.run}/segments and resume the run, or start a new one",
            )
        store.put_rows(plan.run, _as_parquet(rows))
        summary = summarize_run(manifest, plan, rows, attempts=progress.attempts, finished=not progress.cancelled)
    summary = with_judging(with_money(summary, ledger.money(len(plan.arms))), plan, store)
    store.put_summary(summary)
    ledger.delete()
    return summary


def _as_parquet(rows: Rows) -> bytes:
    with TemporaryDirectory() as folder:
        parquet = Path(folder, "rows.parquet")
        rows.write(parquet)
        return parquet.read_bytes()


def _results(plan: Plan, event: Event) -> Iterator[Result]:
    """The result that a closing event carries; one is made for a trial whose last attempt was lost."""
    if event.row:
        yield Result.model_validate_json(event.row)
        return
    if event.kind != "infra_failed":
        return
    failure = (
        f"attempt {event.attempt} was lost: its worker stopped renewing the lease (killed, out of memory, or cut off)"
    )
    yield Result(
        trial=plan.trial(event.index),
        attempt=event.attempt,
        outcome="infra_failed",
        verdict="infra_failed",
        failure=failure,
    )
