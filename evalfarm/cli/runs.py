"""`evalfarm run` and `evalfarm resume`."""

import time
from pathlib import Path

import click

from cases.loader import LoadedSuite, check_tools, file_digests, load_suite, parse_filter, select_cases
from cases.policies import SIMULATED_MODELS, is_simulated
from evalfarm.cli.output import Progressing, write_report
from evalfarm.cli.results import run_of
from evalfarm.cli.standing import Farm, default_workers, local_workers, log_folder, new_run_id, open_farm
from evalfarm.contracts.run import Isolation, Manifest, Plan
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import ExitCode, ModelUnavailable, UnknownName
from evalfarm.prices import load_prices
from evalfarm.settings import Settings, environment, load_settings
from graders.grade import grader_digest
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
@click.option("--label", help="A name to find this run by.")
@click.option("--seed", default=0, show_default=True, help="Seeds the order and the simulated models.")
@_workers_option
@click.option(
    "--isolation",
    type=click.Choice(["cell", "harness"]),
    default="cell",
    show_default=True,
    help="How an attempt is sealed off.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def run(  # noqa: PLR0913, PLR0917 - one per option
    suite: str,
    models: tuple[str, ...],
    harnesses: tuple[str, ...],
    variants: tuple[str, ...],
    repeats: int,
    filters: tuple[str, ...],
    label: str | None,
    seed: int,
    workers: int | None,
    isolation: Isolation,
    as_json: bool,
) -> int:
    """Run a suite and report.

    SUITE is the name of a shipped one (bls), a YAML file, or a folder with a suite.yaml.
    """
    settings = load_settings()
    loaded = load_suite(suite)
    tags = dict(parse_filter(text) for text in filters)
    axes = Axes(models, harnesses, variants, repeats, seed, isolation)
    plan = plan_run(
        loaded.suite,
        axes,
        run="unnamed",
        cases=select_cases(loaded.suite, tags),
        files=file_digests(loaded),
        executables=loaded.executables,
    )
    measured = look(loaded, plan, settings)
    with open_farm(settings) as farm:
        now = time.time()
        name = new_run_id(loaded.suite.suite, now, frozenset(known.run for known in farm.store.runs()))
        plan = plan.model_copy(update={"run": name})
        manifest = manifest_of(plan, measured, created_at=now, label=label, filters=tags)
        farm.scheduler().open_run(plan, manifest, loaded.files)
        return _report(farm, manifest, default_workers(settings) if workers is None else workers, as_json=as_json)


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


def see_through(farm: Farm, manifest: Manifest, workers: int) -> RunSummary | None:
    """The summary of an opened run once its last trial is closed; None: Ctrl-C stopped it, to be gone on with."""
    sealed = farm.store.get_summary(manifest.run)
    if sealed is None:
        with Progressing(manifest) as progressing, local_workers(farm, workers) as crew:
            try:
                sealed = farm.scheduler().see_through(manifest.run, lambda seen: progressing.show(seen, crew.check()))
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
    models = sorted({arm.model for arm in plan.arms if arm.harness != "direct"})
    for model in models:
        _check_model(model, loaded, settings)
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
    return Measured(versions=versions, digests=digests, simulated=any(is_simulated(model) for model in models))


def _check_model(model: str, loaded: LoadedSuite, settings: Settings) -> None:
    if is_simulated(model):
        if model not in SIMULATED_MODELS:
            raise UnknownName(
                f"there is no simulated model {model!r}", f"the simulated models: {', '.join(SIMULATED_MODELS)}"
            )
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
