"""`evalfarm adjudicate`: people settle the answers on which labels disagree."""

import getpass
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import TypeAdapter

from cases.labels import read_labels_file
from evalfarm.analysis.judgement.disagreements import disagreements, references, still_open
from evalfarm.cli.comparisons import show
from evalfarm.cli.output import stdout_console
from evalfarm.cli.results import run_of
from evalfarm.contracts.judging import Adjudication, Disagreement
from evalfarm.contracts.run import Trace
from evalfarm.contracts.verdict import LabelValue, Result
from evalfarm.errors import UsageError
from evalfarm.judgings import Judgings
from evalfarm.reports.comparison.blocks import to_terminal
from evalfarm.reports.judging.disagreements import listed, shown
from evalfarm.reports.judging.sheet import Decided, read_sheet, write_sheet
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
@click.option("--export", "to_file", type=click.Path(path_type=Path), help="Write the open ones to a file to fill in.")
@click.option(
    "--import",
    "from_file",
    type=click.Path(path_type=Path),
    help="Take in the decisions of such a file.",
)
@click.option("--json", "as_json", is_flag=True, help="The open ones as one JSON array; nothing is asked.")
def adjudicate(
    of: str, by: str, label_files: tuple[Path, ...], to_file: Path | None, from_file: Path | None, as_json: bool
) -> None:
    """Go through the answers of a run on which labels disagree.

    Rules, judge and people, each against the others; for a calibration (its id), judge against people. Each decision
    is kept with who, when and why, and none is ever overwritten. A disputed answer is INCONCLUSIVE from then on, and
    no target for calibration.
    """
    store = Store(load_settings().store_url)
    matter = _matter(store, of, label_files)
    if from_file is not None:
        decided = read_sheet(_text(from_file), str(from_file), matter.found)
        _keep(store, matter, decided, by)
        click.echo(f"Kept {len(decided)} of {len(matter.found)} open decisions, by {by}.")
    elif to_file is not None:
        to_file.write_text(write_sheet(matter.of, matter.found), encoding="utf-8")
        click.echo(f"Wrote {len(matter.found)} open disagreements to {to_file}.")
    elif as_json or not (matter.found and sys.stdin.isatty()):
        show(list(matter.found), TypeAdapter(list[Disagreement]), listed, "json" if as_json else None)
    else:
        _walk(store, matter, by)


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
    plan = store.get_plan(run)
    decisions = kept.adjudications(plan.suite.suite)
    labelled = [answer for path in label_files for answer in read_labels_file(path, plan.suite).answers]
    found = disagreements(plan, _answered(store, run), references(labelled, decisions))
    return _Matter(run, plan.suite.suite, plan.suite.version, still_open(found, decisions))


def _answered(store: Store, run: str) -> Iterator[tuple[Result, Trace]]:
    for result in store.results(run):
        if result.labels and result.attempt in store.attempts_of(run, result.trial.index):
            trace = store.get_trace(run, result.trial.index, result.attempt)
            if trace.answer:
                yield result, trace


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
