"""`evalfarm regrade`: stored traces under the graders installed now, beside what was said of them before."""

from collections.abc import Mapping

import click

from cases.answer_functions import AnswerFunction
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.beside.reporting import write_files
from evalfarm.cli.output import print_report
from evalfarm.cli.stored import run_of, stored_functions, summary_of
from evalfarm.contracts.judging import JUDGE
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Result
from evalfarm.reports.run.regraded import side_by_side
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.grade import grader_digest, result_of
from graders.judge.panel import judged


@click.command(epilog="Example: evalfarm regrade bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the new summary as one JSON document.")
def regrade(run_id: str, as_json: bool) -> None:
    """Judge a run's stored traces again; no model takes part.

    The graders are those installed now. The run keeps its labels and its verdicts; what would change is shown with
    the old and the new label side by side.
    """
    settings = load_settings()
    store = Store(settings.store_url)
    name = run_of(store, run_id)
    before, plan = summary_of(store, name), store.get_plan(name)
    old = list(store.results(name))
    functions = stored_functions(store, plan)
    new = [_regraded(store, plan, result, functions) for result in old]
    store.put_regrade(name, grader_digest(), new)
    manifest = store.get_manifest(name)
    manifest = manifest.model_copy(update={"digests": {**manifest.digests, "grader": grader_digest()}})
    summary = summarize(manifest, plan, new, attempts=before.attempts, finished=before.finished)
    write_files(summary, settings.home / "regraded")
    print_report(summary, as_json=as_json)
    if not as_json:
        click.echo("\n" + "\n".join(side_by_side(old, new)))


def _regraded(store: Store, plan: Plan, result: Result, functions: Mapping[str, AnswerFunction]) -> Result:
    if result.attempt not in store.attempts_of(plan.run, result.trial.index):
        return result  # a trial closed without a payload, as when its worker was killed, has nothing to judge
    trace = store.get_trace(plan.run, result.trial.index, result.attempt)
    fresh = result_of(plan.suite, trace, functions)
    # A judge's label comes of a model's opinions, which are kept as they were.
    of_judges = [label for label in result.labels if label.grader == JUDGE]
    return judged(plan, fresh, of_judges[0]) if of_judges else fresh
