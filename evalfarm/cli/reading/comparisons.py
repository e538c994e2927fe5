"""`evalfarm compare`, `power` and `aa`: what stored runs say of each other, of themselves, and of a plan."""

from typing import TypeVar

import click
import numpy as np
from pydantic import TypeAdapter

from cases.loader import load_suite
from evalfarm.analysis.judgement.arms import Axis
from evalfarm.analysis.judgement.plans import Power, SelfChecks, plan_power, run_power, self_checks
from evalfarm.analysis.judgement.verdicts import Question, Verdicts, compare_arms, compare_runs
from evalfarm.analysis.statistics.comparisons import MARGIN
from evalfarm.cli import options
from evalfarm.cli.reading.sources import is_source, read_source
from evalfarm.cli.showing import show
from evalfarm.errors import ExitCode, UnknownName
from evalfarm.reports.comparison.comparison import report
from evalfarm.reports.comparison.planning import power_report, self_check_report
from evalfarm.settings import load_settings
from evalfarm.store import Store

D = TypeVar("D")

#: Of each case, of a plan for a suite, where the command does not say.
_REPEATS = 3
#: Which splits of the repeats `aa` draws where there are too many to try all: the same every time.
_SPLITS_SEED = 0


@click.command(epilog="Example: evalfarm compare bls-20261130-160000 bls-20261201-160000 --margin 0.05")
@click.argument("baseline", metavar="A")
@click.argument("candidate", metavar="[B]", required=False)
@click.option("--model", "models", multiple=True, help="Only arms with this model. Repeatable.")
@click.option("--harness", "harnesses", multiple=True, help="Only arms with this harness. Repeatable.")
@click.option("--variant", "variants", multiple=True, help="Only arms with this variant. Repeatable.")
@click.option(
    "--margin", default=MARGIN, show_default=True, help="Differences within ± this count as none; 0.03 is three points."
)
@options.allow_different("Compare although this setting differs")
@options.as_json("The comparison")
@options.in_markdown
def compare(  # noqa: PLR0913, PLR0917 - one per option
    baseline: str,
    candidate: str | None,
    models: tuple[str, ...],
    harnesses: tuple[str, ...],
    variants: tuple[str, ...],
    margin: float,
    allowed: tuple[str, ...],
    form: str | None,
) -> None:
    """Compare two runs, or the arms of one, case by case.

    B is better, worse or equivalent, or there is too little evidence; asked of new cases and of these. Without B the
    models, harnesses and variants of A are compared among themselves. A and B are runs, labels (the newest run that
    carries it), or files of rows. Ends with 0 whatever is found, and with 2 where the two must not be compared.
    """
    store = Store(load_settings().store_url)
    wanted: dict[Axis, tuple[str, ...]] = {"model": models, "harness": harnesses, "variant": variants}
    question = Question(margin, wanted, frozenset(allowed))
    first = read_source(store, baseline)
    found = (
        compare_arms(first, question)
        if candidate is None
        else compare_runs(first, read_source(store, candidate), question)
    )
    show(found, TypeAdapter(Verdicts), report, form)


@click.command(epilog="Example: evalfarm power bls-108 --repeats 5 --effect 0.03")
@click.argument("subject", metavar="SUITE|RUN")
@click.option("--repeats", type=int, help="Of each case. [default: the run's own, or 3]")
@click.option(
    "--effect", default=MARGIN, show_default=True, help="The drop or difference to be found; 0.03 is three points."
)
@options.as_json("The answer")
def power(subject: str, repeats: int | None, effect: float, form: str | None) -> None:
    """Show what a plan can resolve, and what an effect would take.

    With a RUN (a label, a file of rows), by the steadiness that its arms showed; with a SUITE, by that of a
    published study.
    """
    store = Store(load_settings().store_url)
    if not is_source(store, subject):
        found = plan_power(subject, _cases_of(subject), _REPEATS if repeats is None else repeats, effect)
    else:
        found = run_power(read_source(store, subject).summary, repeats, effect)
    show(found, TypeAdapter(Power), power_report, form)


@click.command(epilog="Example: evalfarm aa bls-20261130-160000")
@click.argument("run_id", metavar="RUN")
@options.as_json("The check")
def aa(run_id: str, form: str | None) -> int:
    """Check a run against itself: half of its repeats against the other half.

    Nothing differs, so it must hold. Ends with 1 where the repeats of an arm differ by more than chance: then its
    trials moved together (an outage, a changed model), and no interval over them holds.
    """
    found = self_checks(
        read_source(Store(load_settings().store_url), run_id).summary, np.random.default_rng(_SPLITS_SEED)
    )
    show(found, TypeAdapter(SelfChecks), self_check_report, form)
    return int(ExitCode.OK if found.held else ExitCode.REGRESSED)


def _cases_of(suite: str) -> int:
    try:
        return len(load_suite(suite).suite.cases)
    except UnknownName as error:
        raise UnknownName(f"{error.message}; nor is there such a run or label", error.hint) from error
