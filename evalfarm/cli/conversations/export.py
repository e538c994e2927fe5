"""`evalfarm export`: what `evalfarm web` hands out over HTTP, on the command line."""

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from evalfarm.analysis.summary.rows import Rows
from evalfarm.cli.beside.scoring_apart import score_apart
from evalfarm.errors import UsageError
from evalfarm.reports.numbers import plural
from evalfarm.reports.safe_text import harmless, in_json
from evalfarm.settings import load_settings
from evalfarm.store import Store
from evalfarm.web import bundles, exporting
from evalfarm.web.access import Allowed
from evalfarm.web.asking import FILTERS, Ask, one_of, read_ask
from evalfarm.web.datasets import DATASETS
from evalfarm.web.exporting import FORMATS, Format
from evalfarm.web.holdings import Held, Holdings
from evalfarm.web.refusals import Refusal
from evalfarm.web.rows import chosen, open_rows

_BUNDLES = "bundles"
_WINDOW = ("from", "to")
#: Over HTTP an answer has a cap; here nobody else waits for it.
_ALL = 1 << 62


class _Wanted(NamedTuple):
    """What is exported."""

    what: str  #: a dataset or `bundles`
    ask: Ask
    form: Format
    begin: float | None  #: of bundles: seconds since the epoch
    end: float | None


class _Held(NamedTuple):
    """What there is of it."""

    store: Store
    rows: Rows
    sources: tuple[Held, ...]
    folder: Path  #: for files, as long as it is held


@click.command(epilog="Example: evalfarm export versions --filter suite=bls --filter days=30 -o versions.csv")
@click.argument("what", metavar="DATASET|bundles", type=click.Choice([*DATASETS, _BUNDLES]))
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: csv; of bundles: jsonl]")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Keep what has it: {', '.join(FILTERS)}; of bundles also from, to. Repeatable.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write. [default: standard output]")
@click.option("--preview", is_flag=True, help="Only say how many there are.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json; with --preview, the count as JSON.")
def export(
    what: str, form: Format | None, filters: tuple[str, ...], output: Path | None, preview: bool, as_json: bool
) -> None:
    """Write a dataset, or whole conversations, as a file.

    DATASET is conversations, versions, skills, tools, runs, cells or cases: the rows that the console and the API show.
    bundles are whole conversations, one a line, as `evalfarm import conversations` reads them. Filters hold together;
    the values of one are alternatives.
    """
    wanted = read_wanted(what, form or ("json" if as_json and what != _BUNDLES else None), filters)
    to_terminal = output is None and sys.stdout.isatty()
    if to_terminal and wanted.form == "parquet" and not preview:
        raise UsageError("Parquet is nothing for a terminal", "name a file with -o, or another --format")
    with _holding(Store(load_settings().store_url), wanted.ask) as held:
        for left in held.sources:
            if left.finished and not left.scored:
                click.echo(f"Left out: {left.name}, whose conversations are not scored. {left.trouble}", err=True)
        if preview:
            count = _count(held, wanted)
            told = plural(count, "conversation") if what == _BUNDLES else f"{plural(count, 'row')} of {what}"
            click.echo(json.dumps({"of": what, "count": count}) if as_json else told)
        elif output is not None:
            _to_file(_pieces(held, wanted), output)
        else:
            _to_stdout(_pieces(held, wanted), wanted.form, to_terminal=to_terminal)


def read_wanted(what: str, form: Format | None, filters: Iterable[str]) -> _Wanted:
    """What the words on the command line ask for. Raises UsageError for what cannot be."""
    if what == _BUNDLES and form not in (None, "jsonl"):
        raise UsageError(f"whole conversations are no {form}", "they are JSON Lines; a dataset has other formats")
    pairs = []
    for text in filters:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"the filter {text!r} says no value", "write KEY=VALUE, as in --filter suite=bls")
        pairs.append((key.strip(), value.strip()))
    window = _WINDOW if what == _BUNDLES else ()
    try:
        ask = read_ask(pairs, window)
        begin, end = (bundles.read_moment(name, one_of(pairs, name)) for name in _WINDOW)
    except Refusal as refusal:
        raise UsageError(refusal.told.message, refusal.told.hint) from None
    return _Wanted(what, ask, form or ("jsonl" if what == _BUNDLES else "csv"), begin, end)


def for_terminal(pieces: Iterable[bytes], form: Format) -> Iterator[str]:
    """A file's text with nothing in it that could steer a terminal; of JSON the value stays what it was."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    written_out = in_json if form in ("json", "jsonl") else harmless
    for piece in pieces:
        yield written_out(decoder.decode(piece))


@contextmanager
def _holding(store: Store, ask: Ask) -> Iterator[_Held]:
    """The rows of what is asked for, as a server would hold them, and what is not asked for left unscored."""

    def score(name: str) -> None:
        if ask.run and name not in ask.run:
            raise UsageError("it was not asked for")
        score_apart(name)

    with TemporaryDirectory(prefix="evalfarm-export-") as made:
        folder = Path(made)
        holdings = Holdings(store, folder / "held", score)
        holdings.look()
        seen, everything = holdings.seen, Allowed()
        with open_rows(seen, ask, everything, today=datetime.now(UTC).date(), folder=folder) as rows:
            yield _Held(store, rows, chosen(seen, ask, everything), folder)


def _count(held: _Held, wanted: _Wanted) -> int:
    if wanted.what == _BUNDLES:
        return bundles.places(held.rows, wanted.begin, wanted.end, 0)[1]
    return exporting.count(held.rows, wanted.what)


def _pieces(held: _Held, wanted: _Wanted) -> Iterator[bytes]:
    if wanted.what != _BUNDLES:
        file = held.folder / "export"
        exporting.write(held.rows, wanted.what, wanted.form, file)
        yield from exporting.pieces(file)
        return
    found, _ = bundles.places(held.rows, wanted.begin, wanted.end, _ALL)
    imports = [one.name for one in held.sources if one.kind == "import"]
    for bundle in bundles.whole(held.store, found, imports):
        yield bundle.model_dump_json().encode() + b"\n"


def _to_file(pieces: Iterator[bytes], output: Path) -> None:
    """Whole or not at all: what ends early would be taken for all there is."""
    try:
        with TemporaryDirectory(prefix=".evalfarm-", dir=output.parent) as folder:
            made = Path(folder, "export")
            with made.open("wb") as out:
                out.writelines(pieces)
            made.replace(output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}", "name another file with -o") from error
    click.echo(f"Written to {output}.", err=True)


def _to_stdout(pieces: Iterator[bytes], form: Format, *, to_terminal: bool) -> None:
    try:
        if to_terminal:
            sys.stdout.writelines(for_terminal(pieces, form))
        else:
            sys.stdout.buffer.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` has. What is still buffered must go nowhere when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
