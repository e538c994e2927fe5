import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import LocalStore

from evalfarm.contracts.run import Arm, Manifest, Plan, Telemetry, ToolCall, Trace
from evalfarm.contracts.suite import Suite
from evalfarm.contracts.verdict import Label, Result, RunSummary
from evalfarm.errors import StoreUnavailable, UnknownName, UsageError
from evalfarm.objects import Objects
from evalfarm.store import Store
from tests.faults.s3 import SECRET, Bucket, bucket_of, s3_server

ARM = Arm(model="sim-careful", harness="loop", variant="plain")
SUITE = Suite.model_validate(
    {
        "suite": "s",
        "version": "1",
        "plugin": {"name": "p"},
        "server": {"python": "server.py"},
        "cases": [{"id": "c1", "query": "q"}, {"id": "c2", "query": "q"}],
    }
)


def plan(run: str = "r1", repeats: int = 2) -> Plan:
    return Plan(run=run, suite=SUITE, arms=(ARM,), cases=("c1", "c2"), repeats=repeats)


def manifest(run: str = "r1", created_at: float = 1.0) -> Manifest:
    return Manifest(
        run=run,
        created_at=created_at,
        evalfarm="0.1.0",
        suite="s",
        suite_version="1",
        simulated=True,
        synthetic=True,
        isolation="cell",
        arms=(ARM,),
        cases=2,
        repeats=2,
        seed=0,
        planned=4,
        digests={},
        versions={},
    )


def trace(index: int = 0, attempt: int = 1, failure: str | None = None) -> Trace:
    return Trace(
        run="r1",
        trial=plan().trial(index),
        attempt=attempt,
        outcome="finished",
        failure=failure,
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=1.0,
    )


def result(index: int = 0) -> Result:
    label = Label(grader="g", version="1", value="FAIL", reasons=("a\nb\u2028c",))
    return Result(
        trial=plan().trial(index), attempt=1, outcome="finished", verdict="failed", labels=(label,), cost_usd=0.1
    )


def summary(finished: bool) -> RunSummary:
    return RunSummary(
        run="r1",
        suite="s",
        label=None,
        simulated=True,
        synthetic=True,
        isolation="cell",
        finished=finished,
        planned=4,
        passed=4,
        failed=0,
        inconclusive=0,
        infra_failed=0,
        not_run=0,
        attempts=4,
        cells=(),
        slices=(),
        cases=(),
        breaks=(),
        manifest=manifest(),
    )


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with bucket_of(s3) as bucket:
        for name, value in bucket.environ.items():
            monkeypatch.setenv(name, value)
        yield bucket


@pytest.fixture(params=["file", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "s3":
        request.getfixturevalue("bucket")
        return Store("s3://bucket/some/prefix")
    return Store("memory://" if request.param == "memory" else f"{(tmp_path / 'not yet' / 'there').as_uri()}")


def test_a_plan_is_kept_once(store: Store) -> None:
    kept = plan()
    kept.trial(0)  # fills the plan's cache, which is no part of its content
    store.put_plan(kept)
    store.put_plan(plan())
    assert store.get_plan("r1") == plan()
    with pytest.raises(UsageError) as caught:
        store.put_plan(plan(repeats=3))
    assert caught.value.message == f"run 'r1' exists already in {store.url}, with another plan"
    assert store.get_plan("r1") == plan()


def test_the_first_manifest_stays(store: Store) -> None:
    assert store.put_manifest(manifest())
    assert not store.put_manifest(manifest(created_at=2.0))
    assert store.get_manifest("r1") == manifest()


def test_runs_come_newest_first_and_need_a_manifest(store: Store) -> None:
    assert store.runs() == []
    for run, created_at in (("a", 2.0), ("b", 3.0), ("c", 1.0)):
        store.put_manifest(manifest(run, created_at))
    store.put_plan(plan("half"))
    assert store.runs() == [manifest("b", 3.0), manifest("a", 2.0), manifest("c", 1.0)]


def test_the_newest_summary_wins(store: Store) -> None:
    store.put_plan(plan())
    assert store.get_summary("r1") is None
    store.put_summary(summary(finished=False))
    store.put_summary(summary(finished=True))
    assert store.get_summary("r1") == summary(finished=True)


def test_the_newest_rows_win(store: Store) -> None:
    assert store.get_rows("r1") is None
    store.put_rows("r1", b"older")
    store.put_rows("r1", b"newer")
    assert store.get_rows("r1") == b"newer"


def test_results_come_as_the_documents_that_were_stored(store: Store) -> None:
    store.put_segment("r1", 0, [result(0), result(1)])
    store.put_segment("r1", 1, [result(2)])
    documents = store.result_documents("r1")
    assert [Result.model_validate_json(document) for document in documents] == [result(0), result(1), result(2)]


def test_the_first_trace_of_an_attempt_stays(store: Store) -> None:
    assert store.put_trace(trace())
    assert not store.put_trace(trace(failure="late"))
    assert store.get_trace("r1", 0, 1) == trace()


def test_attempts_are_listed_as_numbers(store: Store) -> None:
    store.put_plan(plan())
    for attempt in (10, 9, 1):
        store.put_trace(trace(3, attempt))
    assert store.attempts_of("r1", 3) == [1, 9, 10]
    assert store.attempts_of("r1", 0) == []


def test_results_come_in_commit_order_over_all_segments(store: Store) -> None:
    assert list(store.results("r1")) == []
    assert store.put_segment("r1", 0, [result(2), result(0)])
    assert store.put_segment("r1", 1, [])
    assert store.put_segment("r1", 2, [result(1)])
    assert not store.put_segment("r1", 2, [result(3)])
    assert store.segments("r1") == 3
    assert list(store.results("r1")) == [result(2), result(0), result(1)]


def test_a_regrade_is_kept_under_its_graders(store: Store) -> None:
    assert store.get_regrade("r1", "sha256:aa") is None
    store.put_regrade("r1", "sha256:aa", [result(0)])
    store.put_regrade("r1", "sha256:aa", [result(1)])
    assert store.get_regrade("r1", "sha256:aa") == (result(1),)
    assert store.get_regrade("r1", "sha256:bb") is None


def test_a_blob_is_found_by_its_digest(store: Store) -> None:
    content = store.put_blob(b"print()")
    assert content == store.put_blob(b"print()")
    assert store.get_blob(content) == b"print()"
    with pytest.raises(StoreUnavailable) as caught:
        store.get_blob("sha256:00")
    assert caught.value.message == f"the blob sha256:00 is missing from {store.url}"


def test_the_check_leaves_nothing_behind(store: Store) -> None:
    store.check()
    store.check()
    assert store.runs() == []


def test_an_unknown_run_is_told_with_the_newest_ones(store: Store) -> None:
    with pytest.raises(UnknownName) as caught:
        store.get_plan("r9")
    assert caught.value.message == f"no run 'r9' in {store.url}"
    assert caught.value.hint == "there is no run yet: start one with `evalfarm run`"
    for at in range(7):
        store.put_manifest(manifest(f"r{at}", float(at)))
    with pytest.raises(UnknownName) as caught:
        store.get_manifest("r9")
    assert caught.value.hint == "the newest runs: r6, r5, r4, r3, r2"


@pytest.mark.parametrize("run", ["../r1", "a/b", "", "r 1", "-r"])
def test_what_is_no_name_is_an_unknown_run(store: Store, run: str) -> None:
    for ask in (
        store.get_plan,
        store.get_manifest,
        store.get_summary,
        lambda name: store.get_trace(name, 0, 1),
        lambda name: store.attempts_of(name, 0),
    ):
        with pytest.raises(UnknownName, match="no run"):
            ask(run)


def test_an_unknown_trial_or_attempt_is_told_with_what_there_is(store: Store) -> None:
    store.put_plan(plan())
    store.put_trace(trace(1, 2))
    with pytest.raises(UnknownName) as caught:
        store.get_trace("r1", 4, 1)
    assert (caught.value.message, caught.value.hint) == (
        "run 'r1' has no trial 4",
        "its trials are numbered from 0 to 3",
    )
    with pytest.raises(UnknownName) as caught:
        store.get_trace("r1", 1, 1)
    assert (caught.value.message, caught.value.hint) == ("trial 1 of run 'r1' has no attempt 1", "attempts kept: 2")
    with pytest.raises(UnknownName, match="has no attempt 1"):
        store.get_trace("r1", 0, 1)


def test_of_many_writers_of_one_key_exactly_one_is_first(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        firsts = list(pool.map(lambda at: store.put_trace(trace(failure=str(at))), range(16)))
    assert firsts.count(True) == 1
    assert store.get_trace("r1", 0, 1).failure == str(firsts.index(True))


WORDS = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(
    call=st.builds(ToolCall, name=WORDS, arguments=JSON, result=JSON, error=st.none() | WORDS),
    events=st.lists(JSON, max_size=3),
    failure=st.none() | WORDS,
)
def test_a_trace_comes_back_as_it_was(call: ToolCall, events: list[object], failure: str | None) -> None:
    put = Trace.model_validate({**dict(trace(failure=failure)), "served_calls": (call,), "events": events})
    store = Store("memory://")
    store.put_trace(put)
    assert store.get_trace("r1", 0, 1) == put


def test_half_a_surrogate_pair_does_not_lose_the_trace() -> None:
    store = Store("memory://")
    call = ToolCall(name="resolve", arguments={"text": "\ud83d!"})
    assert store.put_trace(trace().model_copy(update={"served_calls": (call,)}))
    assert store.get_trace("r1", 0, 1).served_calls == (ToolCall(name="resolve", arguments={"text": "?!"}),)


def test_what_does_not_read_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path.as_uri())
    (tmp_path / "runs/r1/segments").mkdir(parents=True)
    (tmp_path / "runs/r1/plan.json").write_text("{")
    (tmp_path / "runs/r1/segments/000000.jsonl.zst").write_bytes(b"no zstd")
    content = store.put_blob(b"data")
    (tmp_path / "blobs" / content.removeprefix("sha256:")).write_bytes(b"date")
    with pytest.raises(StoreUnavailable, match=r"runs/r1/plan.json in file:///.* is no Plan: Invalid JSON"):
        store.get_plan("r1")
    with pytest.raises(StoreUnavailable, match=r"segments/000000.jsonl.zst in file:///.* does not decompress"):
        list(store.results("r1"))
    with pytest.raises(StoreUnavailable, match=f"the blob {content} is damaged in file:///"):
        store.get_blob(content)


def test_a_store_that_cannot_be_opened_or_reached_says_what_to_check(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUnavailable, match="cannot open file:///proc/none/there: No such file"):
        Store("file:///proc/none/there")
    with pytest.raises(StoreUnavailable, match="cannot open ftp://host/x: Generic URL error") as caught:
        Store("ftp://me:hidden@host/x")
    assert "hidden" not in str(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(StoreUnavailable, match="cannot write s3://bucket: Generic S3 error") as caught:
        Store("s3://bucket").check()
    assert caught.value.hint.startswith("check EVALFARM_STORE_URL and the provider's credentials")
    assert SECRET not in str(caught.value)


@pytest.mark.slow
def test_a_store_used_before_a_fork_refuses_to_be_used_after_it(tmp_path: Path) -> None:
    script = """
import os, sys
from evalfarm.errors import StoreUnavailable
from evalfarm.store import Store
from tests.faults.s3 import SECRET, Bucket, bucket_of, s3_server
store = Store(sys.argv[1])
store.check()
if os.fork() == 0:
    try:
        store.check()
    except StoreUnavailable as error:
        print(error.message, flush=True)
    os._exit(0)
os.wait()
"""
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path.as_uri()],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    told = f"cannot write {tmp_path.as_uri()}: object storage was used before this process was forked\n"
    assert (run.stdout, run.stderr) == (told, "")


@pytest.mark.slow
def test_a_disk_that_takes_a_part_of_an_object_keeps_none_of_it(tmp_path: Path) -> None:
    script = """
import resource, sys
from evalfarm.errors import StoreUnavailable
from evalfarm.objects import Objects
objects = Objects(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    print(objects.write("runs/a.json", bytes(5000)))
except StoreUnavailable as error:
    print(error.message)
print(objects.read("runs/a.json"))
"""
    told = subprocess.run(
        [sys.executable, "-c", script, tmp_path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    assert told == f"cannot write {tmp_path.as_uri()}: [Errno 27] File too large\nNone\n"
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_a_killed_writer_left_unfinished_goes_with_its_run(tmp_path: Path) -> None:
    objects = Objects(tmp_path.as_uri())
    for key in ("runs/a/plan.json", "runs/a/attempts/0/1.json", "runs/b/plan.json"):
        objects.write(key, b"{}")
    for unfinished in ("a/attempts/0/2.json#1", "a/rows#12", "b/rows#1"):
        (tmp_path / "runs" / unfinished).write_bytes(b"half")
    assert (objects.delete_under("runs/a", ("runs/a/plan.json",)), objects.names("runs")) == (2, ["b"])
    assert sorted(path.name for path in (tmp_path / "runs").rglob("*")) == ["b", "plan.json", "rows#1"]


def test_what_a_killed_writer_left_unfinished_stands_in_nobodys_way_and_in_no_list(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json#1").write_bytes(b"half")
    objects = Objects(tmp_path.as_uri())
    assert [objects.write("runs/a.json", data) for data in (b"whole", b"other")] == [True, False]
    assert (objects.read("runs/a.json"), objects.names("runs")) == (b"whole", ["a.json"])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a.json", "a.json#1"]


def test_a_local_folder_is_read_and_listed_as_obstore_does(tmp_path: Path) -> None:
    for name in ("runs/a/plan.json", "runs/a/empty.json", "runs/b b/x.json", "runs/c/é.json", "runs/c/left#3"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if "empty" in name else name.encode())
    (tmp_path / "runs/d").mkdir()
    objects, backend = Objects(tmp_path.as_uri()), LocalStore(tmp_path)

    def listed(prefix: str) -> list[str]:
        page = obstore.list_with_delimiter(backend, prefix)
        paths = [*page["common_prefixes"], *(entry["path"] for entry in page["objects"])]
        return sorted(path.rsplit("/", 1)[-1] for path in paths)

    def held(key: str) -> bytes | None:
        try:
            return bytes(obstore.get(backend, key).bytes())
        except FileNotFoundError:
            return None

    folders = ("runs", "runs/a", "runs/c", "runs/d", "runs/a/plan.json", "runs/missing")
    assert [objects.names(folder) for folder in folders] == [listed(folder) for folder in folders]
    keys = ("runs/a/plan.json", "runs/a/empty.json", "runs/b b/x.json", "runs/a", "runs/a/missing.json", "runs")
    assert [objects.read(key) for key in keys] == [held(key) for key in keys]
