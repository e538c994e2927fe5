"""`evalfarm import`: conversations from elsewhere, to be scored by the rules that a run's are scored by."""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import click
from pydantic import TypeAdapter, ValidationError

from cases.loader import load_suite
from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.rollout_calls import plain_servers
from evalfarm.analysis.conversations.rollouts import read_rollout
from evalfarm.analysis.conversations.sources import read_line
from evalfarm.contracts.base import Name
from evalfarm.contracts.bundle import Bundle, Import
from evalfarm.contracts.conversation import Origin
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Trace
from evalfarm.conversations import Conversations
from evalfarm.errors import UsageError
from evalfarm.prices import Prices, load_prices
from evalfarm.reports.numbers import plural
from evalfarm.settings import load_settings
from evalfarm.store import Store

Source = Literal["codex-sessions", "conversations"]

#: Bundles in one segment.
_SEGMENT = 200
_NAME: TypeAdapter[str] = TypeAdapter(Name)


class _Place(NamedTuple):
    """Where an import goes."""

    kept: Conversations
    name: str
    rules: ConversationRules
    plugin: str
    plugin_version: str


@click.command("import", epilog="Example: evalfarm import codex-sessions sessions/2026/11 --name november")
@click.argument("source", type=click.Choice(["codex-sessions", "conversations"]))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="What to call them. [default: the folder's or the file's name]")
@click.option("--suite", help="Score them by this suite's additions to the rules, as conversations of its plugin.")
@click.option("--plugin", help="codex-sessions: the plugin that they are about. [default: the suite's]")
@click.option("--server", "servers", multiple=True, help="codex-sessions: a server of the plugin's. [default: all]")
@click.option("--json", "as_json", is_flag=True, help="What was imported as one JSON document.")
def import_(
    source: Source,
    path: Path,
    name: str | None,
    suite: str | None,
    plugin: str | None,
    servers: tuple[str, ...],
    as_json: bool,
) -> None:
    """Bring conversations from elsewhere, to be measured as a run's.

    codex-sessions: PATH is a folder that holds session files of Codex at any depth, which it writes under `sessions`
    in its home; what is in them is the harness's account alone. conversations: PATH is a file of bundles as the export
    writes them, one conversation a line; where a line does not fit, nothing is brought in.
    """
    if source == "conversations":
        place, files = _place(name or path.stem, suite, plugin), []
        bundles = read_bundles(path)
    else:
        files = _session_files(path)
        place = _place(name or path.resolve().name, suite, plugin)
        bundles = _of_sessions(files, place, plain_servers(servers))
    made = _keep(place, source, bundles)
    _tell(made, skipped=max(0, len(files) - made.conversations), as_json=as_json)


def _session_files(folder: Path) -> list[Path]:
    files = sorted(folder.rglob("rollout-*.jsonl"))
    if not files:
        raise UsageError(f"there is no session file under {str(folder)!r}", "they are called rollout-….jsonl")
    return files


def _of_sessions(files: Iterable[Path], place: _Place, own: frozenset[str]) -> Iterator[Bundle]:
    origin = Origin(suite=place.name, plugin=place.plugin, plugin_version=place.plugin_version)
    for trace in _traces(files, place.name, own, load_prices(load_settings().prices)):
        yield bundle_of(trace, origin)


def read_bundles(file: Path) -> Iterator[Bundle]:
    """The bundles of a JSON Lines file. Raises UsageError, naming the file and the line, for one that does not fit."""
    seen: dict[str, int] = {}
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    bundle = read_line(line)
                except ValueError as error:
                    raise _refused(file, number, str(error)) from error
                if (first := seen.setdefault(bundle.facts.conversation, number)) != number:
                    raise _refused(file, number, f"the conversation of line {first} again")
                yield bundle
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def _refused(file: Path, number: int, why: str) -> UsageError:
    return UsageError(f"{file.name}, line {number}: {why}", "docs/guides/conversations.md describes a line")


def _place(name: str, suite: str | None, plugin: str | None) -> _Place:
    store = Store(load_settings().store_url)
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise UsageError(f"an import cannot be called {name!r}", "--name takes letters, digits, . _ and -") from None
    kept = Conversations(store.objects)
    if any(name in (manifest.run, manifest.label) for manifest in store.runs()):
        raise UsageError(f"{name!r} is a run, or the label of one, already", "choose another --name")
    if kept.get_import(name) is not None:
        raise UsageError(f"there is an import {name!r} already in {store.url}", "choose another --name")
    asked = load_suite(suite).suite if suite else None
    return _Place(
        kept=kept,
        name=name,
        rules=asked.conversations if asked else ConversationRules(),
        plugin=plugin or (asked.plugin.name if asked else "unknown"),
        plugin_version=asked.plugin.version if asked else "",
    )


def _traces(files: Iterable[Path], name: str, own: frozenset[str], prices: Prices) -> Iterator[Trace]:
    """One trace for each file that holds a session; the others are left out."""
    index = 0
    for file in files:
        # What is no UTF-8 is read as the mark for that: one bad byte must not cost a session.
        with file.open(encoding="utf-8", errors="replace") as lines:
            trace = read_rollout(lines, run=name, index=index, own=own)
        if trace is not None:
            yield trace.model_copy(update={"cost_usd": _cost_usd(trace, prices)})
            index += 1


def _cost_usd(trace: Trace, prices: Prices) -> float | None:
    costs = [
        prices.cost_usd(
            request.model or trace.trial.arm.model,
            input_tokens=request.input_tokens,
            cached_tokens=request.cached_tokens,
            output_tokens=request.output_tokens,
            cached_write_tokens=request.cached_write_tokens,
        )
        for request in trace.requests
    ]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _keep(place: _Place, source: Source, bundles: Iterable[Bundle]) -> Import:
    remaining, segments, count = iter(bundles), 0, 0
    while chunk := list(islice(remaining, _SEGMENT)):
        place.kept.put_segment(place.name, segments, chunk)
        segments, count = segments + 1, count + len(chunk)
    if not count:
        raise UsageError(
            "there is no conversation in what was given", "docs/guides/conversations.md tells what is read"
        )
    made = Import(
        name=place.name,
        source=source,
        created_at=time.time(),
        conversations=count,
        segments=segments,
        rules=place.rules,
    )
    place.kept.close_import(made)
    return made


def _tell(made: Import, *, skipped: int, as_json: bool) -> None:
    if as_json:
        click.echo(made.model_dump_json(indent=2))
        return
    left = f"; {plural(skipped, 'session file')} without a conversation left out" if skipped else ""
    click.echo(f"Imported {plural(made.conversations, 'conversation')} as {made.name}{left}.")
    click.echo(f"Look at them: evalfarm metrics {made.name}")
