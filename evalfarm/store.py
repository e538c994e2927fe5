"""Object storage: the truth of every run. A local folder, memory, or a bucket.

    runs/{run}/plan.json                                  Plan, create-only
    runs/{run}/manifest.json                              Manifest, create-only
    runs/{run}/attempts/{index:07d}/{attempt}.json.zst    Trace, create-only
    runs/{run}/segments/{k:06d}.jsonl.zst                 Results in commit order, create-only
    runs/{run}/rows.parquet                               every planned trial as a flat row, the newest wins
    runs/{run}/judged.jsonl.zst                           Results of the trials that judges looked at, create-only
    runs/{run}/summary.json                               RunSummary, the newest wins
    runs/{run}/regrades/{grader digest, hex}.jsonl.zst    Results, the newest wins
    blobs/{sha256 hex}                                    a suite's files by content, create-only

Create-only writes are what makes a count exact: of two writers of one key one learns that it came second.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evalfarm.contracts.base import Name, digest_bytes
from evalfarm.contracts.run import Manifest, Plan, Trace
from evalfarm.contracts.verdict import Result, RunSummary
from evalfarm.documents import load, load_lines, to_json, to_lines
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
        self.objects = Objects(url)  #: for those who keep keys of their own in the same place

    @property
    def url(self) -> str:
        """Where this store is, without credentials."""
        return self.objects.url

    # ---- a run's documents

    def put_plan(self, plan: Plan) -> None:
        """Keep a plan. Raises UsageError when the run has another one already; the same one again is fine."""
        if not self.claim_plan(plan) and load(self.objects, Plan, _run_key(plan.run, "plan.json")) != plan:
            raise UsageError(
                f"run {plan.run!r} exists already in {self.url}, with another plan",
                hint="choose another run id, or resume that run without changing its suite or its axes",
            )

    def claim_plan(self, plan: Plan) -> bool:
        """Keep a plan under a name that no other run has. False: one has it."""
        return self.objects.write(_run_key(plan.run, "plan.json"), to_json(plan))

    def drop_claim(self, run: str) -> None:
        """Let go of the name of a run that was not begun; one that has a manifest is left as it is."""
        if self.objects.version(_run_key(run, "manifest.json")) is None:
            self.objects.delete_under(f"runs/{run}", ())

    def names_of_runs(self) -> frozenset[str]:
        """The names of all runs, and of those that are about to begin."""
        return frozenset(self.objects.names("runs"))

    def get_plan(self, run: str) -> Plan:
        """Raises UnknownName when there is no such run."""
        return self._of_run(Plan, run, "plan.json")

    def put_manifest(self, manifest: Manifest) -> bool:
        """Keep a manifest; False: the run has one already, which stays."""
        return self.objects.write(_run_key(manifest.run, "manifest.json"), to_json(manifest))

    def get_manifest(self, run: str) -> Manifest:
        """Raises UnknownName when there is no such run."""
        return self._of_run(Manifest, run, "manifest.json")

    def runs(self) -> list[Manifest]:
        """Every run's manifest, newest first; those that another version of evalfarm made are left out."""
        found = []
        for run in self.objects.names("runs"):
            with suppress(UsageError):
                found.append(load(self.objects, Manifest, f"runs/{run}/manifest.json"))
        return sorted((m for m in found if m is not None), key=lambda m: (m.created_at, m.run), reverse=True)

    def put_rows(self, run: str, parquet: bytes) -> None:
        """Keep a run's trials as one Parquet file, in place of an earlier one."""
        self.objects.write(_run_key(run, "rows.parquet"), parquet, create=False)

    def get_rows(self, run: str) -> bytes | None:
        """The run's trials as Parquet; None: it is not sealed yet."""
        return self.objects.read(_run_key(run, "rows.parquet")) if _is_name(run) else None

    def put_summary(self, summary: RunSummary) -> None:
        """Keep a run's summary, in place of an earlier one."""
        self.objects.write(_run_key(summary.run, "summary.json"), to_json(summary), create=False)

    def get_summary(self, run: str) -> RunSummary | None:
        """The summary; None: the run is not summed up yet. Raises UnknownName when there is no such run."""
        summary = load(self.objects, RunSummary, _run_key(run, "summary.json")) if _is_name(run) else None
        if summary is None:
            self.get_plan(run)
        return summary

    # ---- attempts and results

    def put_trace(self, trace: Trace) -> bool:
        """Keep what one attempt saw; False: this attempt's trace is there already, and stays."""
        return self.objects.write(_trace_key(trace.run, trace.trial.index, trace.attempt), to_json(trace))

    def get_trace(self, run: str, index: int, attempt: int) -> Trace:
        """Raises UnknownName when there is no such run, trial or attempt."""
        trace = self.find_trace(run, index, attempt) if _is_name(run) else None
        if trace is None:
            kept = ", ".join(map(str, self.attempts_of(run, index))) or "none"
            raise UnknownName(f"trial {index} of run {run!r} has no attempt {attempt}", f"attempts kept: {kept}")
        return trace

    def find_trace(self, run: str, index: int, attempt: int) -> Trace | None:
        """What one attempt saw; None: it stored nothing, or not yet."""
        return load(self.objects, Trace, _trace_key(run, index, attempt))

    def begun(self, run: str) -> Iterator[int]:
        """The trials of which a trace of some attempt is kept, ascending."""
        for name in self.objects.names(_run_key(run, "attempts")):
            yield int(name)

    def attempts_of(self, run: str, index: int) -> list[int]:
        """The attempts whose traces are kept, ascending. Raises UnknownName when there is no such run or trial."""
        attempts = self.objects.names(_run_key(run, f"attempts/{index:07d}")) if _is_name(run) else []
        if not attempts and not 0 <= index < (size := self.get_plan(run).size):
            raise UnknownName(f"run {run!r} has no trial {index}", hint=f"its trials are numbered from 0 to {size - 1}")
        return sorted(int(name.split(".")[0]) for name in attempts)

    def attempts(self, run: str) -> Iterator[tuple[int, int]]:
        """Every attempt of which a trace is kept, as its trial and its number, in no order; by one look at all keys."""
        for key in self.objects.keys(_run_key(run, "attempts")):
            index, _, name = key.rpartition("/attempts/")[2].partition("/")
            yield int(index), int(name.partition(".")[0])

    def put_segment(self, run: str, k: int, results: Sequence[Result]) -> bool:
        """Keep the k-th stretch of committed results; False: that segment is there already, and stays."""
        return self.objects.write(_run_key(run, f"segments/{k:06d}.jsonl.zst"), to_lines(results))

    def segment(self, run: str, k: int) -> tuple[Result, ...]:
        """The results of the k-th segment; none where there is no such segment."""
        return load_lines(self.objects, Result, _run_key(run, f"segments/{k:06d}.jsonl.zst")) or ()

    def segments(self, run: str) -> int:
        """How many segments the run has, which is the number of its next one."""
        return len(self.objects.names(_run_key(run, "segments")))

    def put_judged(self, run: str, results: Sequence[Result]) -> bool:
        """Keep the results of the trials that judges looked at; they stand in the place of those in the segments."""
        return self.objects.write(_run_key(run, "judged.jsonl.zst"), to_lines(results))

    def judged(self, run: str) -> tuple[Result, ...] | None:
        """The results that judges looked at; None: the run was not judged, or is not yet."""
        return load_lines(self.objects, Result, _run_key(run, "judged.jsonl.zst"))

    def result_documents(self, run: str) -> Iterator[str]:
        """Every committed result as the JSON document that it is kept as, in commit order, judged ones as judged."""
        judged = {result.trial.index: to_json(result).decode() for result in self.judged(run) or ()}
        for name in self.objects.names(_run_key(run, "segments")):
            data = self.objects.read(_run_key(run, f"segments/{name}")) or b""
            for line in data.splitlines():  # of bytes: as text it would be cut at U+2028 in a reason too
                yield judged.get(json.loads(line)["trial"]["index"], line.decode()) if judged else line.decode()

    def results(self, run: str) -> Iterator[Result]:
        """Every committed result, segment by segment, in commit order, judged ones as judged."""
        judged = {result.trial.index: result for result in self.judged(run) or ()}
        for name in self.objects.names(_run_key(run, "segments")):
            for result in load_lines(self.objects, Result, _run_key(run, f"segments/{name}")) or ():
                yield judged.get(result.trial.index, result)

    def put_regrade(self, run: str, grader_digest: str, results: Sequence[Result]) -> None:
        """Keep a run's results under other graders, in place of earlier ones under the same graders."""
        self.objects.write(_regrade_key(run, grader_digest), to_lines(results), create=False)

    def get_regrade(self, run: str, grader_digest: str) -> tuple[Result, ...] | None:
        """The run's results under these graders; None: it was not regraded with them."""
        return load_lines(self.objects, Result, _regrade_key(run, grader_digest))

    def delete_run(self, run: str) -> int:
        """Remove all that is kept of a run, for good, but the files of its suite; how many objects that were.

        What it is found by goes last, so that a removal that was cut off can be repeated. Raises UnknownName.
        """
        self.get_manifest(run)
        last = [_run_key(run, name) for name in ("plan.json", "manifest.json", "summary.json")]
        return self.objects.delete_under(f"runs/{run}", last)

    # ---- files by content

    def put_blob(self, data: bytes) -> str:
        """Keep bytes under their own digest, `sha256:<hex>`, which is returned."""
        content = digest_bytes(data)
        self.objects.write(f"blobs/{content.removeprefix('sha256:')}", data)
        return content

    def get_blob(self, content: str) -> bytes:
        """The bytes with this digest. Raises StoreUnavailable when they are missing or damaged."""
        data = self.objects.read(f"blobs/{content.removeprefix('sha256:')}")
        if data is None or digest_bytes(data) != content:
            raise StoreUnavailable(
                f"the blob {content} is {'missing from' if data is None else 'damaged in'} {self.url}",
                hint="plan the run again: that stores the suite's files anew",
            )
        return data

    def check(self) -> None:
        """Prove with a probe that the store writes, reads, and refuses to overwrite what it was told to create."""
        self.objects.check()

    def _of_run(self, model: type[C], run: str, name: str) -> C:
        found = load(self.objects, model, _run_key(run, name)) if _is_name(run) else None
        if found is None:
            newest = ", ".join(manifest.run for manifest in self.runs()[:_SHOWN_RUNS])
            raise UnknownName(
                f"no run {run!r} in {self.url}",
                hint=f"the newest runs: {newest}" if newest else "there is no run yet: start one with `evalfarm run`",
            )
        return found


def _is_name(run: str) -> bool:
    try:
        return bool(_NAME.validate_python(run))
    except ValidationError:
        return False


def _run_key(run: str, rest: str) -> str:
    return f"runs/{run}/{rest}"


def _trace_key(run: str, index: int, attempt: int) -> str:
    return _run_key(run, f"attempts/{index:07d}/{attempt}.json.zst")


def _regrade_key(run: str, grader_digest: str) -> str:
    return _run_key(run, f"regrades/{grader_digest.removeprefix('sha256:')}.jsonl.zst")
