"""What earlier versions stored stays readable; what a later one stored is told as such."""

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from evalfarm import __version__
from evalfarm.errors import UsageError
from evalfarm.store import Store

STORED = Path(__file__).parent / "stored" / "version-1"
RUN = "bls-20261130-194056"


def test_a_run_of_version_1_reads_to_its_last_document() -> None:
    store = Store(STORED.as_uri())
    plan, manifest, summary = store.get_plan(RUN), store.get_manifest(RUN), store.get_summary(RUN)
    assert (plan.run, plan.size, manifest.label, [known.run for known in store.runs()]) == (RUN, 10, "version-1", [RUN])
    assert summary is not None
    assert (summary.planned, summary.passed, summary.failed, summary.attempts) == (10, 10, 0, 10)
    results = {result.trial.index: result for result in store.results(RUN)}
    assert sorted(results) == list(range(10))
    for index in range(10):
        assert plan.trial(index) == results[index].trial
        trace = store.get_trace(RUN, index, 1)
        assert (trace.trial, trace.outcome) == (plan.trial(index), "finished")
        assert [call.name for call in trace.served_calls][:1] == ["resolve"]


@pytest.mark.parametrize("document", ["manifest.json", "summary.json", "attempts/0000003/1.json.zst"])
def test_a_document_of_a_later_version_is_named_with_what_to_do(tmp_path: Path, document: str) -> None:
    shutil.copytree(STORED, tmp_path / "store")
    path = tmp_path / "store" / "runs" / RUN / document
    data = path.read_bytes()
    packed = path.suffix == ".zst"
    later = json.loads(zstandard.decompress(data) if packed else data) | {"schema_version": 2, "unheard_of": True}
    path.write_bytes(zstandard.compress(json.dumps(later).encode()) if packed else json.dumps(later).encode())
    store = Store((tmp_path / "store").as_uri())
    read = {
        "manifest.json": lambda: store.get_manifest(RUN),
        "summary.json": lambda: store.get_summary(RUN),
        "attempts/0000003/1.json.zst": lambda: store.get_trace(RUN, 3, 1),
    }
    with pytest.raises(UsageError) as caught:
        read[document]()
    assert caught.value.message == (
        f"runs/{RUN}/{document} in {store.url} is of schema version 2; evalfarm {__version__} reads 1"
    )
    assert caught.value.hint == "use the version of evalfarm that made it, or start a new run"
