"""Object storage: the truth of every run. A local folder, memory, or a bucket.

    runs/{run}/plan.json                                  Plan, create-only
    runs/{run}/manifest.json                              Manifest, create-only
    runs/{run}/attempts/{index:07d}/{attempt}.json.zst    Trace, create-only
    runs/{run}/segments/{k:06d}.jsonl.zst                 Results in commit order, create-only
    runs/{run}/rows.parquet                               every planned trial as a flat row, the newest wins
    runs/{run}/summary.json                               RunSummary, the newest wins
    runs/{run}/regrades/{grader digest, hex}.jsonl.zst    Results, the newest wins
    blobs/{sha256 hex}                                    a suite's files by content, create-only

Create-only writes are what makes a count exact: of two writers of one key one learns that it came second.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from evalfarm.contracts.base import Name, digest_bytes
from evalfarm.contracts.run import Manifest, Plan, Trace
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.errors import StoreUnavailable, UnknownName, UsageError
from evalfarm.objects import Objects

C = TypeVar("C", bound=BaseModel)
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_SHOWN_RUNS = 5


class Store:
    """One place of object storage, and every key in it. Safe in several threads at once, not across a fork.

    Every method raises StoreUnavailable when the backend fails or holds something that does not read.
    """

    def __init__(self, url: str) -> None:
        """Open `file:///folder` (made when missing), `memory://` or `s3://`, `gs://`, `az://` with a prefix."""
        self._objects = Objects(url)

    @property
    def url(self) -> str:
        """Where this store is, without credentials."""
        return self._objects.url

    # ---- a run's documents

    def put_plan(self, plan: Plan) -> None:
        """Keep a plan. Raises UsageError when the run has another one already; the same one again is fine."""
        key = _run_key(plan.run, "plan.json")
        if not self._objects.write(key, _json(plan)) and self._load(Plan, key) != plan:
            raise UsageError(
                f"run {plan.run!r} exists already in {self.url}, with another plan",
                hint="choose another run id, or resume that run without changing its suite or its axes",
            )

    def get_plan(self, run: str) -> Plan:
        """Raises UnknownName when there is no such run."""
        return self._of_run(Plan, run, "plan.json")

    def put_manifest(self, manifest: Manifest) -> bool:
        """Keep a manifest; False: the run has one already, which stays."""
        return self._objects.write(_run_key(manifest.run, "manifest.json"), _json(manifest))

    def get_manifest(self, run: str) -> Manifest:
        """Raises UnknownName when there is no such run."""
        return self._of_run(Manifest, run, "manifest.json")

    def runs(self) -> list[Manifest]:
        """Every run's manifest, newest first."""
        found = (self._load(Manifest, f"runs/{run}/manifest.json") for run in self._objects.names("runs"))
        return sorted((m for m in found if m is not None), key=lambda m: (m.created_at, m.run), reverse=True)

    def put_rows(self, run: str, parquet: bytes) -> None:
        """Keep a run's trials as one Parquet file, in place of an earlier one."""
        self._objects.write(_run_key(run, "rows.parquet"), parquet, create=False)

    def get_rows(self, run: str) -> bytes | None:
        """The run's trials as Parquet; None: it is not sealed yet."""
        return self._objects.read(_run_key(run, "rows.parquet")) if _is_name(run) else None

    def put_summary(self, summary: RunSummary) -> None:
        """Keep a run's summary, in place of an earlier one."""
        self._objects.write(_run_key(summary.run, "summary.json"), _json(summary), create=False)

    def get_summary(self, run: str) -> RunSummary | None:
        """The summary; None: the run is not summed up yet. Raises UnknownName when there is no such run."""
        summary = self._load(RunSummary, _run_key(run, "summary.json")) if _is_name(run) else None
        if summary is None:
            self.get_plan(run)
        return summary

    # ---- attempts and results

    def put_trace(self, trace: Trace) -> bool:
        """Keep what one attempt saw; False: this attempt's trace is there already, and stays."""
        return self._objects.write(_trace_key(trace.run, trace.trial.index, trace.attempt), _json(trace))

    def get_trace(self, run: str, index: int, attempt: int) -> Trace:
        """Raises UnknownName when there is no such run, trial or attempt."""
        trace = self._load(Trace, _trace_key(run, index, attempt)) if _is_name(run) else None
        if trace is None:
            kept = self.attempts_of(run, index)
            raise UnknownName(
                f"trial {index} of run {run!r} has no attempt {attempt}",
                hint=f"attempts kept: {', '.join(map(str, kept)) or 'none'}",
            )
        return trace

    def attempts_of(self, run: str, index: int) -> list[int]:
        """The attempts whose traces are kept, ascending. Raises UnknownName when there is no such run or trial."""
        attempts = self._objects.names(_run_key(run, f"attempts/{index:07d}")) if _is_name(run) else []
        if not attempts and not 0 <= index < (size := self.get_plan(run).size):
            raise UnknownName(f"run {run!r} has no trial {index}", hint=f"its trials are numbered from 0 to {size - 1}")
        return sorted(int(name.split(".")[0]) for name in attempts)

    def put_segment(self, run: str, k: int, results: Sequence[Result]) -> bool:
        """Keep the k-th stretch of committed results; False: that segment is there already, and stays."""
        return self._objects.write(_run_key(run, f"segments/{k:06d}.jsonl.zst"), _lines(results))

    def segments(self, run: str) -> int:
        """How many segments the run has, which is the number of its next one."""
        return len(self._objects.names(_run_key(run, "segments")))

    def result_documents(self, run: str) -> Iterator[str]:
        """Every committed result as the JSON document that it is kept as, in commit order."""
        for name in self._objects.names(_run_key(run, "segments")):
            data = self._objects.read(_run_key(run, f"segments/{name}")) or b""
            for line in data.splitlines():  # of bytes: as text it would be cut at U+2028 in a reason too
                yield line.decode()

    def results(self, run: str) -> Iterator[Result]:
        """Every committed result, segment by segment, in commit order."""
        for name in self._objects.names(_run_key(run, "segments")):
            yield from self._load_lines(_run_key(run, f"segments/{name}")) or ()

    def put_regrade(self, run: str, grader_digest: str, results: Sequence[Result]) -> None:
        """Keep a run's results under other graders, in place of earlier ones under the same graders."""
        self._objects.write(_run_key(run, f"regrades/{_hex(grader_digest)}.jsonl.zst"), _lines(results), create=False)

    def get_regrade(self, run: str, grader_digest: str) -> tuple[Result, ...] | None:
        """The run's results under these graders; None: it was not regraded with them."""
        return self._load_lines(_run_key(run, f"regrades/{_hex(grader_digest)}.jsonl.zst"))

    # ---- files by content

    def put_blob(self, data: bytes) -> str:
        """Keep bytes under their own digest, `sha256:<hex>`, which is returned."""
        content = digest_bytes(data)
        self._objects.write(f"blobs/{_hex(content)}", data)
        return content

    def get_blob(self, content: str) -> bytes:
        """The bytes with this digest. Raises StoreUnavailable when they are missing or damaged."""
        data = self._objects.read(f"blobs/{_hex(content)}")
        if data is None or digest_bytes(data) != content:
            raise StoreUnavailable(
                f"the blob {content} is {'missing from' if data is None else 'damaged in'} {self.url}",
                hint="plan the run again: that stores the suite's files anew",
            )
        return data

    def check(self) -> None:
        """Write, read and remove a probe, and prove that a create-only write refuses a key that exists."""
        key = f"probes/{uuid4().hex}"  # its own key: two machines may check at once
        created, again = self._objects.write(key, b"probe"), self._objects.write(key, b"other")
        kept = self._objects.read(key)
        self._objects.delete(key)
        if (created, again, kept) != (True, False, b"probe"):
            raise StoreUnavailable(
                f"{self.url} does not refuse to overwrite on a create-only write, so trials could be counted twice",
                hint="use a store that honours If-None-Match: a local folder, S3, Google Cloud Storage or Azure",
            )

    # ---- reading and writing

    def _of_run(self, model: type[C], run: str, name: str) -> C:
        found = self._load(model, _run_key(run, name)) if _is_name(run) else None
        if found is None:
            newest = ", ".join(manifest.run for manifest in self.runs()[:_SHOWN_RUNS])
            raise UnknownName(
                f"no run {run!r} in {self.url}",
                hint=f"the newest runs: {newest}" if newest else "there is no run yet: start one with `evalfarm run`",
            )
        return found

    def _load(self, model: type[C], key: str) -> C | None:
        data = self._objects.read(key)
        return None if data is None else self._parse(model, key, data)

    def _load_lines(self, key: str) -> tuple[Result, ...] | None:
        data = self._objects.read(key)
        return None if data is None else tuple(self._parse(Result, key, line) for line in data.splitlines())

    def _parse(self, model: type[C], key: str, data: bytes) -> C:
        try:
            return model.model_validate_json(data)
        except ValidationError as error:
            raise self._objects.unreadable(key, f"is no {model.__name__}: {error.errors()[0]['msg']}") from error


def _is_name(run: str) -> bool:
    try:
        return bool(_NAME.validate_python(run))
    except ValidationError:
        return False


def _run_key(run: str, rest: str) -> str:
    return f"runs/{run}/{rest}"


def _trace_key(run: str, index: int, attempt: int) -> str:
    return _run_key(run, f"attempts/{index:07d}/{attempt}.json.zst")


def _hex(content: str) -> str:
    return content.removeprefix("sha256:")


def _json(record: BaseModel) -> bytes:
    try:
        return record.model_dump_json().encode()
    except PydanticSerializationError:
        # half of a surrogate pair, which models do write in JSON escapes: it becomes "?", and the rest is kept
        return json.dumps(record.model_dump(), ensure_ascii=False).encode("utf-8", "replace")


def _lines(results: Sequence[Result]) -> bytes:
    return b"\n".join(_json(result) for result in results)
