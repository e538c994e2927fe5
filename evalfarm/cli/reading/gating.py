"""`evalfarm gate`: whether a run held against the nights before it, or against a fixed bar."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from pydantic import TypeAdapter

from evalfarm.analysis.judgement.gate import Gate, GateQuestion, judge_run
from evalfarm.analysis.judgement.gate_record import gate_record
from evalfarm.analysis.judgement.judge_faults import demand_calibrated
from evalfarm.analysis.judgement.notes import Source
from evalfarm.analysis.judgement.rule_file import rule_of_file, with_numbers
from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.cli import options
from evalfarm.cli.reading.confirming import confirm, confirm_of
from evalfarm.cli.reading.sources import read_nights, read_source
from evalfarm.cli.showing import show
from evalfarm.cli.standing import open_farm
from evalfarm.contracts.gate import GateVerdict
from evalfarm.errors import ExitCode, StoreUnavailable, UsageError
from evalfarm.judgings import Judgings
from evalfarm.outcomes import Outcomes
from evalfarm.reports.comparison.gate import report
from evalfarm.settings import load_settings
from evalfarm.store import Store

_EXITS: dict[GateVerdict, ExitCode] = {
    "held": ExitCode.OK,
    "improved": ExitCode.OK,
    "regressed": ExitCode.REGRESSED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}


@click.command(epilog="Example: evalfarm gate bls-20261201-160000 --baseline nightly --confirm")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--baseline", "baselines", multiple=True, metavar="RUN|LABEL", help="Accepted nights, oldest first. Repeatable."
)
@click.option("--at-least", type=float, help="A fixed bar for the pass rate, as in 0.9, held with 95 % confidence.")
@click.option(
    "--rule",
    "rule_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file whose [gate] table holds the numbers of the rule.",
)
@click.option(
    "--set", "numbers", multiple=True, metavar="NAME=NUMBER", help="One number of the rule, least_nights=3. Repeatable."
)
@click.option(
    "--calibrated",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Refuse a run whose judge may pass more wrong answers than this, 0.05 say, by held-out labels.",
)
@click.option(
    "--confirm", "confirming", is_flag=True, help="Where the screen fires, run the fresh repeats that decide."
)
@options.allow_different("Judge although this setting differs")
@options.as_json("The verdict")
@options.in_markdown
def gate(  # noqa: PLR0913, PLR0917 - one per option
    run_id: str,
    baselines: tuple[str, ...],
    at_least: float | None,
    rule_file: Path | None,
    numbers: tuple[str, ...],
    calibrated: float | None,
    confirming: bool,
    allowed: tuple[str, ...],
    form: str | None,
) -> int:
    """Judge a run against the nights before it, or against a fixed bar.

    A label as baseline is every finished run that carries it and started before RUN. Ends with 0 where the run held or
    improved, 1 where it regressed, 3 where that cannot be told (yet), and 2 where it must not be judged so.
    """
    settings = load_settings()
    question = GateQuestion(_rule(rule_file, numbers), at_least, frozenset(allowed))
    store = Store(settings.store_url)
    run = read_source(store, run_id)
    if calibrated is not None:
        digests = {} if run.summary.manifest is None else run.summary.manifest.digests
        demand_calibrated(run.summary.run, digests, Judgings(store.objects).calibrations(), calibrated)
    nights = read_nights(store, baselines, run.summary)
    found = judge_run(run, nights, _confirmed(store, run), question)
    if confirming and found.to_confirm:
        _check_can_run_again(run)
        with open_farm(settings) as farm:
            ended = confirm(farm, run.summary.run, found.to_confirm, question.rule.confirm_repeats)
        if ended is None:
            return int(ExitCode.INTERRUPTED)
        found = judge_run(run, nights, read_source(store, ended.run), question)
    asked = {"--baseline": baselines, "--set": numbers, "--allow-different": allowed}
    command = confirm_command(run.summary.run, asked, at_least, rule_file)
    if found.to_confirm and run.summary.manifest is not None:
        found = replace(found, confirm_with=command)
    if run.summary.manifest is not None:
        _keep(store, found)
    show(found, TypeAdapter(Gate), report, form)
    return int(_EXITS[found.verdict])


def confirm_command(
    run: str, asked: Mapping[str, Sequence[str]], at_least: float | None, rule_file: Path | None
) -> str:
    """What to type so that the same question is asked again, with fresh repeats."""
    words = ["evalfarm", "gate", run]
    words += [word for option, values in asked.items() for value in values for word in (option, value)]
    words += [] if at_least is None else ["--at-least", f"{at_least:g}"]
    words += [] if rule_file is None else ["--rule", str(rule_file)]
    return shlex.join([*words, "--confirm"])


def _keep(store: Store, found: Gate) -> None:
    """Keep the verdict for those who watch. Who may only read the store has a verdict all the same."""
    try:
        Outcomes(store.objects).add_gate(gate_record(found, time.time()))
    except StoreUnavailable as error:
        click.echo(f"The verdict is not kept, so no alert will know of it: {error.message}", err=True)


def _rule(rule_file: Path | None, numbers: Sequence[str]) -> NightlyRule:
    rule = NIGHTLY
    if rule_file is not None:
        try:
            rule = rule_of_file(rule_file.read_text(encoding="utf-8"), str(rule_file))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{rule_file} cannot be read: {error}", "give a TOML file with a [gate] table") from error
    return with_numbers(rule, numbers)


def _check_can_run_again(run: Source) -> None:
    if run.summary.manifest is None:
        raise UsageError(
            f"{run.summary.run} was not produced by evalfarm, so it cannot be run again",
            "add the fresh repeats to its rows, and judge them together",
        )


def _confirmed(store: Store, run: Source) -> Source | None:
    """The run's confirm run, if it has one that is finished."""
    begun = confirm_of(store, run.summary.run)
    if begun is None or store.get_summary(begun.run) is None:
        return None
    return read_source(store, begun.run)
