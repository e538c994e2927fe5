"""`evalfarm run` and `evalfarm resume`."""

import time
from collections.abc import Callable, Sequence

import click

from cases.affected import affected_by as affected_by_change
from cases.affected import harnesses_touched
from cases.loader import LoadedSuite, file_digests, load_suite, parse_filters, select_cases
from evalfarm.cli.beside.aside import Aside, WorkerToBe
from evalfarm.cli.beside.scoring_along import ScoringAlong
from evalfarm.cli.naming import named_run
from evalfarm.cli.output import PAGE, Progressing, print_report, report_folder
from evalfarm.cli.plugins.patching import under_test
from evalfarm.cli.running.looking import check_graders, check_models, look
from evalfarm.cli.running.planning import Spending, spending_options
from evalfarm.cli.standing import (
    Crew,
    Farm,
    checked_store,
    default_workers,
    interruptible,
    local_workers,
    log_folder,
    open_farm,
)
from evalfarm.cli.stored import run_of
from evalfarm.contracts.run import Isolation, Manifest, Plan, QueueName
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import ExitCode, UsageError
from evalfarm.runstate import Progress
from evalfarm.settings import Settings, load_settings
from scheduler.planner import Axes, Measured, manifest_of, plan_run
from scheduler.sealing import SOON

#: Trials of a run whose scoring is announced: that many take some two seconds.
_TOLD_FROM = 2_000

Describe = Callable[[Plan, Measured, float], Manifest]
"""The manifest of a named plan by what was measured and the time at which it begins."""

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
@click.option("--filter", "filters", multiple=True, metavar="TAG=VALUE", help="Only cases with this tag; repeatable.")
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
    tags = parse_filters(filters)
    told = tags | ({"affected-by": affected_by} if affected_by else {})
    axes = Axes(models, harnesses or harnesses_touched(affected_by), variants, repeats, seed, isolation, judges)
    slots = default_workers(settings) if workers is None else workers
    with under_test(load_suite(suite), settings) as tested:
        plan = plan_of(tested.loaded, axes, chosen_cases(tested.loaded, tags, affected_by))
        if spending.dry_run:
            tested.announce(plan)
            spending.show(plan, settings, slots, as_json=as_json)
            return int(ExitCode.OK)
        budget = spending.budget(plan, settings, slots)

        def described(named: Plan, measured: Measured, at: float) -> Manifest:
            manifest = manifest_of(named, measured, created_at=at, label=label, filters=told, queue=queue)
            return tested.told(manifest.model_copy(update={"budget": budget}))

        return _run(tested.loaded, plan, settings, described, slots, as_json=as_json)


def _run(loaded: LoadedSuite, plan: Plan, settings: Settings, described: Describe, slots: int, *, as_json: bool) -> int:
    """From a plan that is not named yet to its report; `described` makes its manifest."""
    check_models(loaded, plan, settings)
    log_folder(settings.home)
    now, store = time.time(), checked_store(settings)
    with (
        named_run(plan, loaded.suite.suite, now, store) as named,
        Aside(settings) as aside,
        WorkerToBe(settings) as worker,
        open_farm(settings, aside) as farm,
    ):
        if plan.size <= SOON:
            aside.make_ready_to_seal()
        measured = look(loaded, named, settings, worker)
        with local_workers(settings, named.run, min(slots, plan.size), worker) as crew:
            manifest = described(named, measured, now)
            farm.scheduler().open_run(named, manifest, loaded.files)
            return _report(farm, manifest, crew, as_json=as_json)


def plan_of(loaded: LoadedSuite, axes: Axes, cases: Sequence[str]) -> Plan:
    """The plan of a loaded suite; its run is not named yet. Raises as `scheduler.planner.plan_run`."""
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
        if farm.store.get_summary(manifest.run) is None:
            check_graders(manifest)
        slots = default_workers(settings) if workers is None else workers
        with local_workers(settings, manifest.run, min(slots, manifest.planned)) as crew:
            return _report(farm, manifest, crew, as_json=as_json)


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


def see_through(farm: Farm, manifest: Manifest, crew: Crew) -> RunSummary | None:
    """The summary of an opened run once its last trial is closed; None: it was stopped, to be gone on with."""
    sealed = farm.store.get_summary(manifest.run)
    if sealed is None:
        with interruptible(), Progressing(manifest) as progressing:
            tending, watch = farm.scheduler(progressing.say), _watching(farm, manifest.run, progressing, crew)
            try:
                sealed = tending.see_through(manifest.run, watch)
            except KeyboardInterrupt:
                try:
                    progressing.stopping(crew.check())
                    crew.dismiss(patience_s=None)
                except KeyboardInterrupt:
                    crew.stop()
                progressing.stopped()
    return sealed


def _watching(farm: Farm, run: str, progressing: Progressing, crew: Crew) -> Callable[[Progress], None]:
    """What is done with every look at a run: its progress shown, and its conversations scored as they are stored.

    Not those that a judge may yet give another verdict.
    """
    along = None if farm.store.get_plan(run).judges else ScoringAlong(farm.aside, run)

    def watch(seen: Progress) -> None:
        progressing.show(seen, crew.check())
        if along is not None:
            along.look(seen.closed)

    return watch


def _report(farm: Farm, manifest: Manifest, crew: Crew, *, as_json: bool) -> int:
    sealed = see_through(farm, manifest, crew)
    if sealed is None:
        return int(ExitCode.INTERRUPTED)
    crew.release()
    farm.aside.report(sealed.run)
    print_report(sealed, as_json=as_json)
    if not as_json:
        click.echo(f"\nPage: {report_folder(farm.settings.home, sealed.run) / PAGE}")
    score(farm, sealed)
    return exit_code_of(sealed)


def score(farm: Farm, sealed: RunSummary) -> None:
    """Have both implementations of the rules score a sealed run's conversations. Raises RulesDisagree."""
    if sealed.planned >= _TOLD_FROM:
        click.echo(f"Scoring the conversations of {sealed.planned:,} trials by both implementations", err=True)
    farm.aside.score(sealed.run)


def exit_code_of(summary: RunSummary) -> int:
    """What a run's exit status says: whether every trial was decided, not whether the plugin did well."""
    if summary.infra_failed or summary.not_run:
        return int(ExitCode.INFRASTRUCTURE)
    return int(ExitCode.INCONCLUSIVE if summary.inconclusive else ExitCode.OK)
