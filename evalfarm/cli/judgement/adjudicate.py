"""`evalfarm adjudicate`: people settle the answers on which labels disagree, and label those drawn at random."""

import getpass
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import TypeAdapter

from cases.labels import read_labels_file
from evalfarm.analysis.judgement.disagreements import still_open
from evalfarm.cli.judgement.disagreeing import open_disagreements
from evalfarm.cli.judgement.drawing import drawn_undecided, make_draw, rates_of, undecided
from evalfarm.cli.output import stdout_console
from evalfarm.cli.showing import show
from evalfarm.cli.stored import run_of
from evalfarm.contracts.drawn import Draw, StratifiedRate
from evalfarm.contracts.judging import Adjudication, Disagreement
from evalfarm.contracts.verdict import LabelValue
from evalfarm.errors import UsageError
from evalfarm.judgings import Judgings
from evalfarm.reports.comparison.blocks import to_terminal
from evalfarm.reports.judging.disagreements import listed, shown
from evalfarm.reports.judging.drawn import drawn, rates
from evalfarm.reports.judging.sheet import Decided, read_sheet, write_sheet
from evalfarm.reports.numbers import plural
from evalfarm.settings import load_settings
from evalfarm.store import Store

_LETTERS: dict[str, LabelValue] = {"p": "PASS", "f": "FAIL", "d": "INCONCLUSIVE"}


@dataclass(frozen=True)
class _Matter:
    """What is to be settled: the open disagreements of a run or of a calibration."""

    of: str
    suite: str
    suite_version: str
    found: tuple[Disagreement, ...]


@click.command(epilog="Example: evalfarm adjudicate support-20261130-160000 --export open.yaml")
@click.argument("of", metavar="RUN|CALIBRATION")
@click.option("--by", default=getpass.getuser, show_default="your user name", help="Who decides.")
@click.option(
    "--labels",
    "label_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Labelled answers to hold a run's answers against. Repeatable.",
)
@click.option(
    "--draw",
    "each",
    type=click.IntRange(min=2),
    metavar="N",
    help="Draw N answers of each arm at random to be labelled.",
)
@click.option("--seed", type=int, help="Of the run's first draw. [default: 0]")
@click.option("--rate", is_flag=True, help="The pass rates as people would give them, from what was drawn.")
@click.option("--export", "to_file", type=click.Path(path_type=Path), help="Write the open ones to a file to fill in.")
@click.option(
    "--import",
    "from_file",
    type=click.Path(path_type=Path),
    help="Take in the decisions of such a file.",
)
@click.option("--json", "as_json", is_flag=True, help="What would be printed, as JSON; nothing is asked.")
def adjudicate(  # noqa: PLR0913, PLR0917 - one per option
    of: str,
    by: str,
    label_files: tuple[Path, ...],
    each: int | None,
    seed: int | None,
    rate: bool,
    to_file: Path | None,
    from_file: Path | None,
    as_json: bool,
) -> None:
    """Go through the answers of a run on which labels disagree, or that were drawn at random.

    Rules, judge and people, each against the others; for a calibration (its id), judge against people. Each decision
    is kept with who, when and why, and none is ever overwritten. A disputed answer is INCONCLUSIVE from then on, and
    no target for calibration.

    --draw draws within the judge's labels, what it failed first, and keeps the draw; a reviewer is shown no label. When
    every drawn answer is decided, --rate gives the run's pass rates as people would give them.
    """
    told = {"--draw": each, "--rate": rate, "--import": from_file, "--export": to_file, "--labels": label_files}
    _check(each, seed, [option for option, value in told.items() if value])
    store = Store(load_settings().store_url)
    form = "json" if as_json else None
    if each is not None:
        _draw(store, make_draw(store, run_of(store, of), each, seed), to_file, form)
    elif rate:
        show(list(rates_of(store, run_of(store, of))), TypeAdapter(list[StratifiedRate]), rates, form)
    else:
        _settle(store, _matter(store, of, label_files), by, (to_file, from_file), form)


def _check(each: int | None, seed: int | None, given: Collection[str]) -> None:
    """Raises UsageError for options of which one would go unheard."""
    for option, other in (
        *(("--draw", other) for other in ("--rate", "--import", "--labels")),
        *(("--rate", other) for other in ("--export", "--import", "--labels")),
    ):
        if {option, other} <= set(given):
            raise UsageError(f"{option} and {other} are two things", "give one of them, then the other")
    if seed is not None and each is None:
        raise UsageError("--seed is of a draw, and nothing is drawn", "add --draw N")


def _draw(store: Store, made: Draw, to_file: Path | None, form: str | None) -> None:
    if to_file is None:
        show(made, TypeAdapter(Draw), drawn, form)
        return
    found = undecided(store, made)
    to_file.write_text(write_sheet(made.run, found), encoding="utf-8")
    click.echo(f"Wrote {plural(len(found), 'drawn answer')} that nobody has decided on to {to_file}.")


def _settle(store: Store, matter: _Matter, by: str, files: tuple[Path | None, Path | None], form: str | None) -> None:
    to_file, from_file = files
    if from_file is not None:
        _take_in(store, matter, from_file, by)
    elif to_file is not None:
        to_file.write_text(write_sheet(matter.of, matter.found), encoding="utf-8")
        click.echo(f"Wrote {len(matter.found)} open disagreements to {to_file}.")
    elif form or not (matter.found and sys.stdin.isatty()):
        show(list(matter.found), TypeAdapter(list[Disagreement]), listed, form)
    else:
        _walk(store, matter, by)


def _take_in(store: Store, matter: _Matter, path: Path, by: str) -> None:
    """Keep what a file holds, of disagreements or of drawn answers; where one is both, the labels did disagree."""
    apart = {one.subject for one in matter.found}
    found = (*matter.found, *(one for one in drawn_undecided(store, matter.of) if one.subject not in apart))
    decided = read_sheet(_text(path), str(path), found)
    _keep(store, replace(matter, found=found), decided, by)
    click.echo(f"Kept {len(decided)} of {len(found)} open decisions, by {by}.")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "give a file that --export wrote") from error


def _matter(store: Store, of: str, label_files: Sequence[Path]) -> _Matter:
    kept = Judgings(store.objects)
    calibration = next((one for one in kept.calibrations() if one.id == of), None)
    if calibration is not None:
        decisions = kept.adjudications(calibration.suite)
        found = still_open(calibration.disagreements, decisions)
        return _Matter(of, calibration.suite, calibration.suite_version, found)
    run = run_of(store, of)
    suite = store.get_plan(run).suite
    labelled = [answer for path in label_files for answer in read_labels_file(path, suite).answers]
    return _Matter(run, suite.suite, suite.version, open_disagreements(store, run, labelled))


def _walk(store: Store, matter: _Matter, by: str) -> None:
    """Ask for one after the other on the terminal; each decision is kept at once, so that leaving loses nothing."""
    for place, one in enumerate(matter.found, start=1):
        to_terminal(shown(one), console=stdout_console())
        choice = click.Choice([*_LETTERS, "s", "q"])
        asked = f"{place} of {len(matter.found)}: [p]ass, [f]ail, [d]isputed, [s]kip, [q]uit"
        letter = click.prompt(asked, type=choice, show_choices=False)
        if letter == "q":
            return
        if letter in _LETTERS:
            why = click.prompt("Why")
            _keep(store, matter, [Decided(subject=one.subject, value=_LETTERS[letter], why=why)], by)


def _keep(store: Store, matter: _Matter, decided: Sequence[Decided], by: str) -> None:
    if not by.strip():
        raise UsageError("nobody decided this", "say who: --by NAME")
    found = {one.subject: one for one in matter.found}
    for decision in decided:
        one = found[decision.subject]
        kept = Adjudication(
            suite=matter.suite,
            suite_version=matter.suite_version,
            case=one.case,
            answer=one.answer,
            labels=one.labels,
            cites=one.cites,
            value=decision.value,
            why=decision.why,
            by=by,
            at=time.time(),
        )
        Judgings(store.objects).put_adjudication(kept)
