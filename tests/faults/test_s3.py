"""The store on a server that speaks S3, on good days and on bad ones."""

from pathlib import Path

import pytest

from evalfarm.contracts.base import digest_bytes
from evalfarm.errors import StoreUnavailable
from evalfarm.objects import Objects
from evalfarm.store import Store
from tests.faults.s3 import SECRET, Bucket, Kind

URL = "s3://bucket/some/prefix"


@pytest.fixture
def objects(bucket: Bucket) -> Objects:
    return Objects(URL)


def sent(bucket: Bucket, method: str, key: str) -> int:
    return sum(request.startswith(f"{method} ") and request.endswith(key) for request in bucket.requests)


def test_a_key_is_created_once_and_the_first_content_stays(objects: Objects) -> None:
    assert objects.write("a/b.json.zst", b"first")
    assert not objects.write("a/b.json.zst", b"second")
    assert objects.read("a/b.json.zst") == b"first"
    assert objects.write("a/b.json.zst", b"third", create=False)
    assert objects.read("a/b.json.zst") == b"third"
    assert objects.read("a/none") is None


def test_folders_and_keys_are_listed_under_the_prefix_alone(objects: Objects) -> None:
    for key in ("runs/r1/plan.json", "runs/r2/plan.json", "runs/r1/attempts/0000000/1.json.zst"):
        objects.write(key, b"{}")
    assert objects.names("runs") == ["r1", "r2"]
    assert objects.names("runs/r1") == ["attempts", "plan.json"]


def test_more_keys_than_one_page_of_a_listing_holds_are_all_listed(objects: Objects) -> None:
    names = [f"{number:04d}" for number in range(1_001)]
    for name in names:
        objects.write(f"many/{name}", b"")
    assert objects.names("many") == names


@pytest.mark.parametrize(
    ("kind", "status", "first"),
    [
        ("answer", 503, True),
        ("answer", 500, True),
        ("answer", 409, True),
        ("answer", 412, True),
        ("answer after effect", 500, False),
        ("answer after effect", 503, False),
        ("cut after effect", 0, False),
        ("silent after effect", 0, False),
        ("slow", 0, True),
    ],
)
def test_a_write_that_a_bad_answer_met_is_there_afterwards(
    bucket: Bucket, objects: Objects, kind: Kind, status: int, first: bool
) -> None:
    """`first` is False where the write met its own first try, whose answer was lost."""
    bucket.break_next(kind, "PUT .*/key", status=status, seconds=0.3 if kind == "slow" else 1.5)
    assert objects.write("key", b"mine") is first
    assert objects.read("key") == b"mine"
    assert sent(bucket, "PUT", "/key") == (1 if kind == "slow" else 2)


@pytest.mark.parametrize("kind", ["answer", "cut after effect", "silent after effect"])
def test_a_read_that_a_bad_answer_met_is_made_again(bucket: Bucket, objects: Objects, kind: Kind) -> None:
    objects.write("key", b"kept")
    bucket.break_next(kind, "GET .*/key", seconds=1.5)
    assert objects.read("key") == b"kept"
    assert sent(bucket, "GET", "/key") == 2


def test_a_store_that_is_busy_for_seconds_is_waited_for(bucket: Bucket, objects: Objects) -> None:
    bucket.break_next("answer", "PUT .*/key", times=4)
    assert objects.write("key", b"mine")
    assert sent(bucket, "PUT", "/key") == 5


def test_a_conflict_that_does_not_end_is_told(bucket: Bucket, objects: Objects) -> None:
    bucket.break_next("answer", "PUT .*/key", times=99, status=409)
    with pytest.raises(StoreUnavailable) as caught:
        objects.write("key", b"mine")
    assert caught.value.message == f"cannot write {URL}: key: another write of it neither succeeded nor failed"
    assert sent(bucket, "PUT", "/key") == 3


def test_a_store_that_stays_silent_is_told_without_a_secret(bucket: Bucket, objects: Objects) -> None:
    bucket.break_next("silent after effect", "PUT .*/key", times=99, seconds=30)
    with pytest.raises(StoreUnavailable, match=f"cannot write {URL}: Generic S3 error") as caught:
        objects.write("key", b"mine")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__cause__)


def test_a_store_that_ignores_conditions_is_refused(bucket: Bucket) -> None:
    bucket.break_next("condition ignored", "PUT .*/probes/", times=99)
    store = Store(URL)
    with pytest.raises(StoreUnavailable) as caught:
        store.check()
    assert (caught.value.message, caught.value.hint) == (
        f"{URL} does not refuse to overwrite on a create-only write, so trials could be counted twice",
        "use a store that honours If-None-Match: a local folder, S3, Google Cloud Storage or Azure",
    )
    assert Objects(URL).names("probes") == []


def test_the_check_bears_a_bad_answer_and_leaves_nothing_behind(bucket: Bucket) -> None:
    store = Store(URL)
    store.check()
    for kind in ("answer", "cut after effect"):
        bucket.break_next(kind, "PUT .*/probes/")
        store.check()
    assert Objects(URL).names("probes") == []


def test_a_blob_whose_write_met_its_own_first_try_is_found(bucket: Bucket) -> None:
    bucket.break_next("answer after effect", "PUT .*/blobs/")
    store = Store(URL)
    assert store.put_blob(b"data") == digest_bytes(b"data")
    assert store.get_blob(digest_bytes(b"data")) == b"data"


def test_a_local_store_keeps_the_same_keys(bucket: Bucket, tmp_path: Path) -> None:
    for url in (URL, tmp_path.as_uri()):
        objects = Objects(url)
        objects.write("runs/r1/attempts/0000001/1.json.zst", b"{}")
        assert objects.names("runs/r1/attempts/0000001") == ["1.json.zst"]
