"""From what a person names to what is compared: a run, a label, or a file of rows."""

from collections.abc import Sequence
from pathlib import Path

from evalfarm.analysis.judgement.comparability import case_digests
from evalfarm.analysis.judgement.notes import Source
from evalfarm.cli.judgement.disagreeing import open_disagreements
from evalfarm.cli.reading.analyze import summary_of_file
from evalfarm.cli.stored import run_of, summary_of
from evalfarm.contracts.verdict import RunSummary
from evalfarm.store import Store

_ROWS = (".jsonl", ".ndjson", ".csv", ".parquet")


def read_source(store: Store, name: str) -> Source:
    """A finished run by its id or its label (the newest that carries it), or a file of rows by its path.

    Raises UnknownName where there is no such run, UsageError where it is not finished or the file cannot be read.
    """
    if is_file_of_rows(name):
        # By its path: two files of one name in two folders are two sources.
        return Source(summary_of_file(Path(name)).model_copy(update={"run": name}), {})
    run = run_of(store, name)
    open_ones = tuple(one.place for one in open_disagreements(store, run))
    summary = summary_of(store, run).model_copy(update={"disagreements": open_ones})
    return Source(summary, case_digests(store.get_plan(run)))


def is_source(store: Store, name: str) -> bool:
    """Whether this is a file of rows by its name, or the id or the label of a run."""
    return is_file_of_rows(name) or any(name in (manifest.run, manifest.label) for manifest in store.runs())


def is_file_of_rows(name: str) -> bool:
    """Whether this names a file in a format that rows are read from."""
    return Path(name).suffix.lower() in _ROWS


def read_nights(store: Store, names: Sequence[str], run: RunSummary) -> tuple[Source, ...]:
    """The baselines of a run: each name's run, in the order given; a label is every finished run that carries it.

    Of those, the ones that started before the run, oldest first. Raises as `read_source` does.
    """
    before = float("inf") if run.manifest is None else run.manifest.created_at
    manifests = store.runs() if names else []
    found: dict[str, None] = {}
    for name in names:
        labelled = [
            manifest.run
            for manifest in reversed(manifests)
            if manifest.label == name and manifest.created_at < before and store.get_summary(manifest.run) is not None
        ]
        is_run = any(manifest.run == name for manifest in manifests)
        found.update(dict.fromkeys([name] if is_run or not labelled else labelled))
    return tuple(read_source(store, name) for name in found)
