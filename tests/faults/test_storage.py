"""Object storage that fails before and after effect, conflicts, stays silent, is slow; on a server that speaks S3."""

import time
from collections.abc import Callable

import pytest

from tests.faults.farm import LEASE_S, Farm
from tests.faults.invariants import hold
from tests.faults.s3 import Bucket, Kind

pytestmark = [pytest.mark.slow, pytest.mark.faults]

TRACES, SEGMENTS, SUMMARY = "PUT .*/attempts/", "PUT .*/segments/", "PUT .*/summary"


@pytest.mark.parametrize(
    ("what", "kind", "status"),
    [
        (TRACES, "answer", 503),
        (TRACES, "answer", 409),
        (TRACES, "answer after effect", 500),
        (TRACES, "cut after effect", 0),
        (TRACES, "silent after effect", 0),
        (SEGMENTS, "answer", 409),
        (SEGMENTS, "answer after effect", 503),
        (SEGMENTS, "silent after effect", 0),
        (SUMMARY, "answer", 503),
        (SUMMARY, "cut after effect", 0),
    ],
)
def test_writes_that_fail_once_are_written_once(
    start_farm: Callable[..., Farm], bucket: Bucket, what: str, kind: Kind, status: int
) -> None:
    farm = start_farm(bucket=bucket)
    bucket.break_next(kind, what, times=3, status=status, seconds=1.5)
    for _ in range(2):
        farm.work()
    farm.tend()
    assert hold(farm).started == [1] * farm.plan.size


def test_a_store_that_is_slower_than_a_lease_keeps_its_trials(start_farm: Callable[..., Farm], bucket: Bucket) -> None:
    farm = start_farm(bucket=bucket, environ={"AWS_TIMEOUT": "20 seconds"})
    bucket.break_next("slow", TRACES, times=3, seconds=2 * LEASE_S)
    for _ in range(2):
        farm.work()
    farm.tend()
    assert hold(farm).started == [1] * farm.plan.size


def test_a_store_that_is_away_for_many_seconds_loses_nothing(start_farm: Callable[..., Farm], bucket: Bucket) -> None:
    farm = start_farm(bucket=bucket)
    for _ in range(2):
        farm.work()
    farm.tend()
    farm.when_closed(4)
    bucket.break_next("answer", ".", times=10_000)
    time.sleep(4 * LEASE_S)
    bucket.breakages.clear()
    hold(farm)
