"""Runs by the names that people give them, and what the store holds of one. It imports nothing that reports."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from cases.answer_functions import AnswerFunction, load_functions
from evalfarm.contracts.run import Plan, Trace
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


def trial_of(store: Store, name: str) -> Trace:
    """The trace of RUN/TRIAL, its last attempt, or of RUN/TRIAL/ATTEMPT. Raises UsageError, UnknownName."""
    run_name, index, attempt = _place(store, name)
    attempts = store.attempts_of(run_name, index)
    if not attempts or (attempt is not None and attempt not in attempts):
        known = f"its attempts: {', '.join(map(str, attempts))}" if attempts else "it has not run yet"
        raise UnknownName(
            f"run {run_name!r} holds no trace of trial {index}" + (f", attempt {attempt}" if attempt else ""), known
        )
    return store.get_trace(run_name, index, attempt or attempts[-1])


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


def _place(store: Store, text: str) -> tuple[str, int, int | None]:
    name, *rest = text.split("/")
    if not 1 <= len(rest) <= 2 or not all(part.isdigit() for part in rest):
        raise UsageError(f"{text!r} is no trial", "write RUN/TRIAL, as in bls-20261130-160000/7, or RUN/TRIAL/ATTEMPT")
    run_name = run_of(store, name)
    index = int(rest[0])
    size = store.get_plan(run_name).size
    if index >= size:
        raise UnknownName(f"run {run_name!r} has no trial {index}", f"its trials are 0 to {size - 1}")
    return run_name, index, int(rest[1]) if len(rest) == 2 else None
