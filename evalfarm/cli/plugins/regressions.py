"""`evalfarm lock` and `evalfarm promote`: what a suite's versions stand for, and the failures that it keeps."""

import json
import time

import click

from cases.loader import LoadedSuite, load_suite
from cases.lock import lock_path, renewed
from cases.regressions import add_regression, regressions_path
from evalfarm import __version__
from evalfarm.cli.stored import run_of, stored_functions, trial_of
from evalfarm.contracts.regression import Provenance, Regression
from evalfarm.contracts.run import Trace
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Result
from evalfarm.errors import UnknownName, UsageError
from evalfarm.reports.numbers import plural
from evalfarm.reports.safe_text import in_json
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.grade import result_of


@click.command(epilog="Example: evalfarm lock my-suite.yaml")
@click.argument("suite")
@click.option("--json", "as_json", is_flag=True, help="Print what was added as one JSON document.")
def lock(suite: str, as_json: bool) -> None:
    """Write down what each version in a suite stands for.

    From then on the suite loads only while every case, rubric and fixture is what its version stood for: what changes
    must advance its version. Lines are only added, so earlier evidence keeps its meaning.
    """
    loaded = load_suite(suite, locked=False)
    path = lock_path(loaded.file)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    after = renewed(loaded.suite, before, path)
    path.write_text(after, encoding="utf-8")
    added = [line for line in after.removeprefix(before).splitlines() if not line.startswith("#")]
    if as_json:
        click.echo(json.dumps({"lock": str(path), "added": added}, indent=2))
    else:
        click.echo(f"{path}: {plural(len(added), 'version')} added")


@click.command(epilog="Example: evalfarm promote support-20261130-160000/7 --note 'final sale was ignored'")
@click.argument("trial", metavar="RUN/TRIAL")
@click.option("--suite", "suite_name", help="The suite, where it is not a shipped one: its YAML file or folder.")
@click.option("--resolved-by", metavar="RUN/TRIAL", help="The trial that passed since; the newest one by default.")
@click.option("--note", default="", help="What went wrong, in a sentence.")
@click.option("--json", "as_json", is_flag=True, help="Print what was kept as one JSON document.")
def promote(trial: str, suite_name: str | None, resolved_by: str | None, note: str, as_json: bool) -> None:
    """Keep a resolved failure in the suite's regression set.

    TRIAL failed, and a later trial of the same case and version passed. Written down are the case, the answers, the
    evidence, the labels, the reference as it stands, and where all of it comes from.
    `evalfarm run SUITE --filter regression=yes` runs the set.
    """
    store = Store(load_settings().store_url)
    failed, result = _judged(store, trial)
    if result.verdict != "failed":
        raise UsageError(
            f"trial {trial} is {result.verdict}, and only a failure can be promoted", f"evalfarm show {trial}"
        )
    loaded = load_suite(suite_name or store.get_plan(failed.run).suite.suite)
    case = _case_of(loaded, failed)
    passed = _resolving(store, resolved_by, failed) if resolved_by else _passed_since(store, failed, case)
    kept = Regression(
        case=case.id,
        fixture_version=case.fixture_version,
        turns=failed.turns,
        evidence=failed.served_calls,
        labels=result.labels,
        reference=case.reference,
        failed=_provenance(store, failed),
        passed=_provenance(store, passed),
        note=note,
        promoted_at=time.time(),
    )
    path = regressions_path(loaded.file)
    add_regression(path, kept)
    resolved = f"resolved by {passed.run}/{passed.trial.index}"
    click.echo(in_json(kept.model_dump_json(indent=2)) if as_json else f"{path}: case {case.id} added; {resolved}")


def _judged(store: Store, name: str) -> tuple[Trace, Result]:
    trace = trial_of(store, name)
    plan = store.get_plan(trace.run)
    return trace, result_of(plan.suite, trace, stored_functions(store, plan))


def _case_of(loaded: LoadedSuite, failed: Trace) -> Case:
    """The case as it stands today. Raises UnknownName where the suite lost it."""
    try:
        return loaded.suite.case(failed.trial.case)
    except KeyError:
        raise UnknownName(
            f"suite {loaded.suite.suite!r} has no case {failed.trial.case!r} any more", "give the suite with --suite"
        ) from None


def _resolving(store: Store, name: str, failed: Trace) -> Trace:
    """The trial of that name. Raises UsageError unless it passed, and is one of the same case."""
    passed, result = _judged(store, name)
    if result.verdict != "passed":
        raise UsageError(f"trial {name} did not pass, so it resolves nothing", "name one that passed")
    if passed.trial.case != failed.trial.case:
        raise UsageError(f"{name} is a trial of case {passed.trial.case!r}, not of {failed.trial.case!r}")
    return passed


def _passed_since(store: Store, failed: Trace, case: Case) -> Trace:
    """The newest trial of the case, at its version of today, that passed in a run that started after the failure."""
    suite = store.get_plan(failed.run).suite.suite
    for manifest in store.runs():  # newest first
        summary = store.get_summary(manifest.run) if manifest.suite == suite else None
        if summary is None or manifest.created_at <= failed.started_at:
            continue
        of_case = [told for told in summary.cases if told.case == case.id]
        verdicts = [pair for told in of_case for pair in zip(told.trials, told.verdicts, strict=True)]
        passed = [index for index, verdict in verdicts if verdict == "passed"]
        if passed and store.get_plan(manifest.run).suite.case(case.id).fixture_version == case.fixture_version:
            return trial_of(store, f"{manifest.run}/{passed[-1]}")
    named = f"case {case.id!r}, version {case.fixture_version!r},"
    raise UsageError(
        f"no later trial of {named} passed: the failure is not resolved yet",
        f"mend it, then evalfarm run SUITE --filter case={case.id}",
    )


def _provenance(store: Store, trace: Trace) -> Provenance:
    return Provenance(
        run=run_of(store, trace.run),
        trial=trace.trial.index,
        attempt=trace.attempt,
        arm=trace.trial.arm,
        suite_version=store.get_plan(trace.run).suite.version,
        evalfarm=__version__,
        versions=trace.versions,
    )
