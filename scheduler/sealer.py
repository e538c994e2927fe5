"""Results leave Redis for object storage in segments; a run that is closed is summarised and sealed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.summary.aggregate import summarize_run
from evalfarm.analysis.summary.rows import Rows, rows_of_run
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.runstate import ArchivePosition, Event, Ledger
from evalfarm.store import Store

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
        store.put_segment(plan.run, position.segments, [row for event in events for row in _results(plan, event)])
        ledger.advance_archive(ArchivePosition(position.segments + 1, events[-1].id))
        ledger.trim(events[-1].id)


def seal(ledger: Ledger, store: Store, plan: Plan) -> RunSummary:
    """Archive what is left, keep the rows, summarise, and let go of the run's place in Redis. Safe to repeat."""
    archive(ledger, store, plan, rest=True)
    progress = ledger.progress()
    manifest = store.get_manifest(plan.run)
    with rows_of_run(plan, store.result_documents(plan.run)) as rows:
        store.put_rows(plan.run, _as_parquet(rows))
        summary = summarize_run(manifest, plan, rows, attempts=progress.attempts, finished=not progress.cancelled)
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
