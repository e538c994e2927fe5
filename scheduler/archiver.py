"""Results leave Redis for object storage in segments, while a run is at work."""

from collections.abc import Iterator

from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Result
from evalfarm.runstate import ArchivePosition, Event, Ledger
from evalfarm.store import Store
from scheduler.rebuilder import restore

#: Events of the ledger's stream in one segment, most of them results; a megabyte before compression. Conversations are
#: scored segment by segment while a run is at work.
SEGMENT_EVENTS = 1_000


def archive(ledger: Ledger, store: Store, plan: Plan, *, rest: bool, full: int = SEGMENT_EVENTS) -> None:
    """Write every segment of `full` events to the store, results alone; with `rest`, the last, shorter one too.

    Safe to repeat and to run twice at once: segments are cut by the order of the ledger's stream, so two
    archivers write the same bytes under the same key, and only one of them wins.
    """
    while rest or ledger.kept_events() >= full:  # asked first: to read them all takes 20 ms, ten times a second
        position = ledger.archive_position()
        events = ledger.events(position.archived_id, full)
        if ledger.archive_position() != position:
            continue  # another archiver was at work in between, and may have trimmed what these began with
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
