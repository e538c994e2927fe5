"""What `run` finds out first: whether a plan can run here at all, and with which versions."""

import platform
from importlib.metadata import version
from pathlib import Path

from cases.loader import LoadedSuite, check_script, check_tools
from cases.policies import SIMULATED_MODELS, is_simulated
from cases.policies.offered import policies_of
from evalfarm import __version__
from evalfarm.cli.beside.aside import Aside, Servers
from evalfarm.cli.judgement.judges import check_judges
from evalfarm.cli.standing import log_folder
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.errors import ModelUnavailable, UnknownName, UsageError
from evalfarm.prices import load_prices
from evalfarm.runstate import load_limits
from evalfarm.settings import Settings
from graders.grade import grader_digest
from graders.judge.exhibits import rubrics_of
from graders.judge.prompt import judging_digests
from scheduler.planner import Measured
from worker.cell.cell import check_isolation
from worker.cell.codex_runtime import codex_version, find_codex

#: The libraries whose version can move a result.
_LIBRARIES = ("openai-codex", "openai", "mcp", "fastmcp")


def check_models(loaded: LoadedSuite, plan: Plan, settings: Settings) -> None:
    """Raise, before anything is started, for what keeps the plan's models and judges from being asked."""
    load_limits(settings.limits)  # what is wrong with them is told now, not by each worker
    models = _models(plan)
    for model in models:
        _check_model(model, loaded, settings)
    if any(is_simulated(model) for model in models):
        check_script(loaded, plan.cases)
    check_judges(settings, loaded.suite, plan.judges)


def check_graders(manifest: Manifest) -> None:
    """Raise UsageError for a run that was begun under other graders: half of it would be judged otherwise."""
    if manifest.digests.get("grader") != grader_digest():
        raise UsageError(
            f"run {manifest.run!r} was begun by evalfarm {manifest.evalfarm}, "
            f"whose graders are others than those of this one, {__version__}",
            f"go on with it with version {manifest.evalfarm}, or `evalfarm cancel {manifest.run}` and start a new run",
        )


def look(loaded: LoadedSuite, plan: Plan, settings: Settings, aside: Aside) -> Measured:
    """Find out, before anything is stored, whether the plan can run here at all, and with which versions."""
    suite = loaded.suite
    codex = find_codex(settings.codex_bin)
    check_isolation(codex, plan.isolation)
    versions = library_versions()
    with_codex = tuple(dict.fromkeys(arm.variant for arm in plan.arms if arm.harness == "codex"))
    if with_codex:
        versions["codex"] = codex_version(codex)
    variants = tuple(dict.fromkeys(arm.variant for arm in plan.arms))
    log = _scratch_log(settings.home)
    asked = Servers(
        suite=suite,
        folder=loaded.folder.absolute(),
        variants=variants,
        log=log,
        isolation=plan.isolation,
        codex=with_codex,
    )
    listings = aside.list_servers(asked)
    for variant, listing in listings.items():
        check_tools(loaded, variant, listing.tools)
    digests = {f"tools/{variant}": listing.digest for variant, listing in listings.items()}
    digests |= {f"marketplace/{name}": one.marketplace for name, one in listings.items() if one.marketplace}
    digests |= {"grader": grader_digest(), "prices": load_prices(settings.prices).digest}
    if plan.judges:
        digests |= judging_digests(plan.judges, rubrics_of(suite, plan.cases))
    return Measured(versions, digests, simulated=any(map(is_simulated, (*_models(plan), *plan.judges))))


def library_versions() -> dict[str, str]:
    """The versions of Python and of the libraries between us and the plugin."""
    return {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}


def _models(plan: Plan) -> list[str]:
    return sorted({arm.model for arm in plan.arms if arm.harness != "direct"})


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
