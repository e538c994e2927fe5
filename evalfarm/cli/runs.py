"""`evalfarm run` and `evalfarm resume`."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from cases.affected import affected_by as affected_by_change
from cases.affected import harnesses_touched
from cases.loader import LoadedSuite, check_script, check_tools, file_digests, load_suite, parse_filter, select_cases
from cases.policies import SIMULATED_MODELS, is_simulated
from evalfarm.cli.judges import check_judges
from evalfarm.cli.output import Progressing, write_report
from evalfarm.cli.planning import Spending, spending_options
from evalfarm.cli.results import run_of
from evalfarm.cli.standing import Farm, default_workers, interruptible, local_workers, log_folder, new_run_id, open_farm
from evalfarm.contracts.run import Isolation, Manifest, Plan, QueueName
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import ExitCode, ModelUnavailable, UnknownName, UsageError
from evalfarm.prices import load_prices
from evalfarm.runstate import load_limits
from evalfarm.settings import Settings, environment, load_settings
from graders.grade import grader_digest
from graders.judge.exhibits import rubrics_of
from graders.judge.prompt import judging_digests
from scheduler.planner import Axes, Measured, manifest_of, plan_run
from worker.cell.cell import check_isolation
from worker.cell.codex_runtime import codex_version, find_codex
from worker.inspection import library_versions, list_servers
from worker.station import policies_of

_workers_option = click.option(
    "--workers",
    type=click.IntRange(min=0),
    show_default="one per core with the embedded Redis, else none",
    help="Worker processes to start here.",
)


@click.command(epilog="Example: evalfarm run bls --model sim-careful --repeats 3 --filter mechanism=coverage_gap")
@click.argument("suite")
@click.option("--model", "models", multiple=True, help="A model: gpt-…, or a simulated one (sim-careful). Repeatable.")
@click.option("--harness", "harnesses", multiple=True, help="direct, loop or codex. Repeatable; all by default.")
@click.option("--variant", "variants", multiple=True, help="A variant of the suite. Repeatable; all by default.")
@click.option("--repeats", default=1, show_default=True, help="How often each case runs in each arm.")
@click.option("--filter", "filters", multiple=True, metavar="TAG=VALUE", help="Only cases with this tag. Repeatable.")
@click.option("--affected-by", metavar="CHANGE", help="Only cases that a change touches: model, tool:NAME, rubric:ID …")
@click.option("--label", help="A name to find this run by.")
@click.option("--seed", default=0, show_default=True, help="Seeds the order and the simulated models.")
@click.option("--judge", "judges", multiple=True, help="A model that judges by the cases' rubrics. Repeatable.")
@click.option(
    "--queue",
    type=click.Choice(["interactive", "nightly"]),
    default="interactive",
    show_default=True,
    help="Whose turn it is on a shared farm: interactive runs go first.",
)
@_workers_option
@click.option(
    "--isolation",
    type=click.Choice(["cell", "harness"]),
    default="cell",
    show_default=True,
    help="How an attempt is sealed off.",
)
@spending_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def run(  # noqa: PLR0913, PLR0917 - one per option
    suite: str,
    models: tuple[str, ...],
    harnesses: tuple[str, ...],
    variants: tuple[str, ...],
    repeats: int,
    filters: tuple[str, ...],
    affected_by: str | None,
    label: str | None,
    seed: int,
    judges: tuple[str, ...],
    queue: QueueName,
    workers: int | None,
    isolation: Isolation,
    spending: Spending,
    as_json: bool,
) -> int:
    """Run a suite and report.

    SUITE is the name of a shipped one (bls), a YAML file, or a folder with a suite.yaml.
    """
    settings = load_settings()
    loaded = load_suite(suite)
    tags = dict(parse_filter(text) for text in filters)
    told = tags | ({"affected-by": affected_by} if affected_by else {})
    axes = Axes(models, harnesses or harnesses_touched(affected_by), variants, repeats, seed, isolation, judges)
    plan = _plan_of(loaded, axes, chosen_cases(loaded, tags, affected_by))
    slots = default_workers(settings) if workers is None else workers
    if spending.dry_run:
        spending.show(plan, settings, slots, as_json=as_json)
        return int(ExitCode.OK)
    budget = spending.budget(plan, settings, slots)
    named = partial(manifest_of, measured=look(loaded, plan, settings), label=label, filters=told, queue=queue)
    with open_farm(settings) as farm:
        now = time.time()
        name = new_run_id(loaded.suite.suite, now, frozenset(known.run for known in farm.store.runs()))
        plan = plan.model_copy(update={"run": name})
        manifest = named(plan, created_at=now).model_copy(update={"budget": budget})
        farm.scheduler().open_run(plan, manifest, loaded.files)
        return _report(farm, manifest, slots, as_json=as_json)


def _plan_of(loaded: LoadedSuite, axes: Axes, cases: Sequence[str]) -> Plan:
    files, executables = file_digests(loaded), loaded.executables
    return plan_run(loaded.suite, axes, run="unnamed", cases=cases, files=files, executables=executables)


@click.command(epilog="Example: evalfarm resume bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@_workers_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def resume(run_id: str, workers: int | None, as_json: bool) -> int:
    """Go on with a run that was interrupted, and report.

    What is decided stays decided. RUN may be a label; the newest run that carries it is meant.
    """
    settings = load_settings()
    with open_farm(settings) as farm:
        manifest = farm.store.get_manifest(run_of(farm.store, run_id))
        return _report(farm, manifest, default_workers(settings) if workers is None else workers, as_json=as_json)


def chosen_cases(loaded: LoadedSuite, tags: dict[str, str], change: str | None) -> tuple[str, ...]:
    """The cases to run: those that carry the tags and, where a change is named, that it touches.

    Raises UsageError where none is left.
    """
    chosen = select_cases(loaded.suite, tags, loaded.regressions)
    if change is None:
        return chosen
    touched = affected_by_change(loaded.suite, change)
    both = tuple(case for case in chosen if case in touched)
    if not both:
        raise UsageError(f"none of the {len(chosen)} cases chosen is touched by {change}", "leave out the filter")
    return both


def see_through(farm: Farm, manifest: Manifest, workers: int) -> RunSummary | None:
    """The summary of an opened run once its last trial is closed; None: it was stopped, to be gone on with."""
    sealed = farm.store.get_summary(manifest.run)
    if sealed is None:
        with (
            interruptible(),
            Progressing(manifest) as progressing,
            local_workers(farm, manifest.run, min(workers, manifest.planned)) as crew,
        ):
            tending = farm.scheduler(progressing.say)
            try:
                sealed = tending.see_through(manifest.run, lambda seen: progressing.show(seen, crew.check()))
            except KeyboardInterrupt:
                try:
                    progressing.stopping(crew.check())
                    crew.dismiss(patience_s=None)
                except KeyboardInterrupt:
                    crew.stop()
                progressing.stopped()
    return sealed


def _report(farm: Farm, manifest: Manifest, workers: int, *, as_json: bool) -> int:
    sealed = see_through(farm, manifest, workers)
    if sealed is None:
        return int(ExitCode.INTERRUPTED)
    page = write_report(sealed, farm.settings.home, as_json=as_json)
    if not as_json:
        click.echo(f"\nPage: {page}")
    return exit_code_of(sealed)


def exit_code_of(summary: RunSummary) -> int:
    """What a run's exit status says: whether every trial was decided, not whether the plugin did well."""
    if summary.infra_failed or summary.not_run:
        return int(ExitCode.INFRASTRUCTURE)
    return int(ExitCode.INCONCLUSIVE if summary.inconclusive else ExitCode.OK)


def look(loaded: LoadedSuite, plan: Plan, settings: Settings) -> Measured:
    """Find out, before anything is started or stored, whether the plan can run here at all, and with which versions."""
    suite = loaded.suite
    load_limits(settings.limits)  # what is wrong with them is told now, not by each worker
    models = sorted({arm.model for arm in plan.arms if arm.harness != "direct"})
    for model in models:
        _check_model(model, loaded, settings)
    if any(is_simulated(model) for model in models):
        check_script(loaded, plan.cases)
    check_judges(settings, suite, plan.judges)
    codex = find_codex(settings.codex_bin)
    check_isolation(codex, plan.isolation)
    versions = library_versions()
    if any(arm.harness == "codex" for arm in plan.arms):
        versions["codex"] = codex_version(codex)
    variants = tuple(dict.fromkeys(arm.variant for arm in plan.arms))
    log = _scratch_log(settings.home)
    listings = list_servers(
        suite, loaded.folder.absolute(), variants, log=log, codex=codex, isolation=plan.isolation, environ=environment()
    )
    for variant, listing in listings.items():
        check_tools(loaded, variant, listing.tools)
    digests = {f"tools/{variant}": listing.digest for variant, listing in listings.items()}
    digests |= {"grader": grader_digest(), "prices": load_prices(settings.prices).digest}
    if plan.judges:
        digests |= judging_digests(plan.judges, rubrics_of(suite, plan.cases))
    return Measured(versions, digests, simulated=any(is_simulated(model) for model in (*models, *plan.judges)))


def _check_model(model: str, loaded: LoadedSuite, settings: Settings) -> None:
    if is_simulated(model):
        known = policies_of(loaded.suite, loaded.folder) if loaded.suite.simulation else SIMULATED_MODELS
        if model not in known:
            raise UnknownName(f"there is no simulated model {model!r}", f"the simulated models: {', '.join(known)}")
        policies_of(loaded.suite, loaded.folder)
    elif settings.openai_api_key is None:
        raise ModelUnavailable(
            f"model {model!r} is a real one, and OPENAI_API_KEY is not set",
            "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: "
            + ", ".join(SIMULATED_MODELS),
        )


def _scratch_log(home: Path) -> Path:
    log = log_folder(home) / "server-check.log"
    log.write_text("", encoding="utf-8")
    return log
