import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.verdict import VERDICTS, Result, RunSummary, Verdict
from evalfarm.errors import InfrastructureError, UnknownName
from evalfarm.store import Store
from scheduler.archiver import archive
from scheduler.sealer import seal

LOST = "attempt 1 was lost: its worker stopped renewing the lease (killed, out of memory, or cut off)"


def counts(summary: RunSummary) -> dict[Verdict, int]:
    return {verdict: getattr(summary, verdict) for verdict in VERDICTS}


def test_a_segment_is_written_only_when_it_is_full_and_the_rest_when_asked_for(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    archive(opened.ledger, opened.store, opened.plan, rest=False)
    assert opened.store.segments(opened.plan.run) == 0
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert list(opened.store.results(opened.plan.run)) == opened.worker.done


def test_archiving_twice_changes_nothing(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "failed")
    for _ in range(2):
        archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert opened.store.segments(opened.plan.run) == 1
    assert list(opened.store.results(opened.plan.run)) == opened.worker.done


def test_what_is_archived_leaves_redis(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert [event.index for event in opened.ledger.events("0", 100)] == [11]  # the last one marks the place


def test_results_go_on_in_a_further_segment(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(5), "passed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    opened.worker.decide(opened.hand_out(7), "failed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert opened.store.segments(opened.plan.run) == 2
    assert list(opened.store.results(opened.plan.run)) == opened.worker.done


def test_two_archivers_at_once_write_each_result_once(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    both = [
        threading.Thread(
            target=archive, args=(opened.ledger, opened.store, opened.plan), kwargs={"rest": True, "full": 2}
        )
        for _ in range(2)
    ]
    for archiver in both:
        archiver.start()
    for archiver in both:
        archiver.join()
    assert opened.store.segments(opened.plan.run) == 6
    assert list(opened.store.results(opened.plan.run)) == opened.worker.done


def test_an_archiver_that_died_before_it_noted_its_segment_loses_and_doubles_nothing(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    opened.store.put_segment(opened.plan.run, 0, opened.worker.done)
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    assert list(opened.store.results(opened.plan.run)) == opened.worker.done


def test_a_segment_from_before_redis_lost_its_last_second_is_neither_doubled_nor_overwritten(opened: Any) -> None:
    first, second, third = opened.hand_out(3)
    opened.worker.decide([first], "passed")
    lost = opened.worker.decided(second, "failed")  # Redis knows nothing of it, the store has it
    opened.store.put_segment(opened.plan.run, 0, [*opened.worker.done, lost])
    opened.worker.decide([third], "passed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    kept = [(result.trial.index, result.verdict) for result in opened.store.results(opened.plan.run)]
    assert kept == [(first, "passed"), (second, "failed"), (third, "passed")]
    progress = opened.ledger.progress()
    assert (progress.closed, progress.passed, progress.failed) == (3, 2, 1)
    assert opened.ledger.archive_position().segments == 2
    assert opened.ledger.claim(second, "another", 60).status == "closed"


def test_a_store_that_lost_results_is_never_summed_up_as_if_it_were_whole(opened: Any, tmp_path: Path) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    archive(opened.ledger, opened.store, opened.plan, rest=True)
    emptied = Store("memory://")
    emptied.put_plan(opened.plan)
    emptied.put_manifest(opened.store.get_manifest(opened.plan.run))
    with pytest.raises(InfrastructureError) as caught:
        seal(opened.ledger, emptied, opened.plan)
    assert str(caught.value) == (
        "memory:// holds 0 of the 12 results of run 'shop-1' that were counted\n\nhint: somebody has deleted from it; "
        "put back what was under runs/shop-1/segments and resume the run, or start a new one"
    )
    assert opened.ledger.progress().closed == 12


def test_a_trial_whose_last_attempt_was_lost_gets_a_result_that_says_so(opened: Any) -> None:
    (index,) = opened.hand_out(1)
    opened.worker.claim(index, lease_s=0.0)
    opened.ledger.reap(opened.ledger.overdue(10, 60.0), max_attempts=1, backoff_s=0.0)
    opened.worker.decide(opened.hand_out(11), "passed")
    seal(opened.ledger, opened.store, opened.plan)
    lost = next(result for result in opened.store.results(opened.plan.run) if result.trial.index == index)
    assert lost == Result(
        trial=opened.plan.trial(index), attempt=1, outcome="infra_failed", verdict="infra_failed", failure=LOST
    )


def test_a_sealed_run_is_summed_up_and_leaves_redis(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(6), "passed")
    opened.worker.decide(opened.hand_out(6), "failed")
    summary = seal(opened.ledger, opened.store, opened.plan)
    assert counts(summary) == {"passed": 6, "failed": 6, "inconclusive": 0, "infra_failed": 0, "not_run": 0}
    assert (summary.finished, summary.attempts, summary.planned) == (True, 12, 12)
    assert opened.store.get_summary(opened.plan.run) == summary
    with pytest.raises(UnknownName):
        opened.ledger.progress()


def test_a_sealed_run_keeps_every_planned_trial_as_a_row(opened: Any, tmp_path: Path) -> None:
    opened.worker.decide(opened.hand_out(5), "passed")
    opened.ledger.cancel()
    seal(opened.ledger, opened.store, opened.plan)
    (tmp_path / "rows.parquet").write_bytes(opened.store.get_rows(opened.plan.run))
    with Rows.stored(tmp_path / "rows.parquet") as rows:
        told = rows.records('SELECT "index", "case", repeat, harness, verdict FROM rows')
    decided = {result.trial.index: result.verdict for result in opened.worker.done}
    trials = [opened.plan.trial(index) for index in range(opened.plan.size)]
    assert told == [
        (trial.index, trial.case, trial.repeat, trial.arm.harness, decided.get(trial.index, "not_run"))
        for trial in trials
    ]


def test_a_cancelled_run_is_sealed_as_it_stands_and_says_that_it_is_not_finished(opened: Any) -> None:
    opened.worker.decide(opened.hand_out(4), "passed")
    opened.ledger.cancel()
    summary = seal(opened.ledger, opened.store, opened.plan)
    assert (summary.finished, summary.passed, summary.not_run) == (False, 4, 8)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(verdicts=st.lists(st.sampled_from(VERDICTS), min_size=12, max_size=12))
def test_the_five_counts_add_up_to_what_was_planned(opened: Any, verdicts: list[Verdict]) -> None:
    opened.ledger.delete()
    opened.ledger.create(opened.plan.size, "digest")
    store = Store("memory://")
    store.put_plan(opened.plan)
    store.put_manifest(opened.store.get_manifest(opened.plan.run))
    indices = opened.hand_out(12)
    for index, verdict in zip(indices, verdicts, strict=True):
        if verdict != "not_run":
            opened.worker.decide([index], verdict)
    opened.ledger.cancel()
    summary = seal(opened.ledger, store, opened.plan)
    expected = Counter(verdicts)
    assert counts(summary) == {verdict: expected[verdict] for verdict in VERDICTS}
    assert sum(counts(summary).values()) == summary.planned == opened.plan.size


def test_sealing_twice_gives_the_same_summary(opened: Any, client: redis.Redis) -> None:
    opened.worker.decide(opened.hand_out(12), "passed")
    keys = {key: client.dump(key) for key in client.keys("f:*")}
    first = seal(opened.ledger, opened.store, opened.plan)
    for key, value in keys.items():  # as if the sealer had died just before it let go
        client.restore(key, 0, value or b"", replace=True)
    assert seal(opened.ledger, opened.store, opened.plan) == first
