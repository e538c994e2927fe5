"""Runs by the names that people give them, and what the store holds of one. It imports nothing that reports."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from cases.answer_functions import AnswerFunction, load_functions
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UnknownName, UsageError
from evalfarm.store import Store


def run_of(store: Store, name: str) -> str:
    """The run that a run id or a label stands for. Raises UnknownName."""
    manifests = store.runs()
    for manifest in manifests:
        if name == manifest.run:
            return name
    for manifest in manifests:
        if name == manifest.label:
            return manifest.run
    with suppress(UnknownName):
        return store.get_manifest(name).run  # refused, as one that another version of evalfarm made
    known = ", ".join(manifest.run for manifest in manifests[:5])
    raise UnknownName(
        f"there is no run {name!r} in {store.url}", f"the newest runs: {known}" if known else "there are no runs yet"
    )


def summary_of(store: Store, run_name: str) -> RunSummary:
    """The summary of a finished run. Raises UsageError while it is not finished."""
    summary = store.get_summary(run_name)
    if summary is None:
        raise UsageError(
            f"run {run_name!r} is not finished, so it has no report", f"go on with it: evalfarm resume {run_name}"
        )
    return summary


def stored_functions(store: Store, plan: Plan) -> dict[str, AnswerFunction]:
    """The answer functions of a run's suite, from the bytes that the run stored."""
    name = plan.suite.answer_functions
    if name is None:
        return {}
    with TemporaryDirectory() as folder:
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.get_blob(plan.files[name]))
        return load_functions(plan.suite, Path(folder))
