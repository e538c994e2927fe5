"""The rows of one request: what is held, cut down to what was asked for and to what the token may see."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.conversation import Conversation, ErrorCounts
from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.holdings import Held, Seen
from evalfarm.web.sheets import SHEETS

#: Of DuckDB, for one request; what does not fit goes to a file for the time being.
_MEMORY = "96MB"
_THREADS = 2

VERSION = """concat_ws('~', nullif(plugin_version, ''), variant,
    nullif(left(replace(coalesce(plugin_digest, ''), 'sha256:', ''), 12), ''))"""
"""One version of a plugin in one word; `sheets.version_name` says the same in Python."""

_LISTS = {
    "suite": "list_contains(getvariable('suite'), suite)",
    "scope": "list_contains(getvariable('scope'), suite)",
    "plugin": "list_contains(getvariable('plugin'), plugin)",
    "since": "day >= getvariable('since')",
}
"""Filter -> its condition, which is asked only where the filter is given: a million rows are asked each."""
_SESSION = "list_contains(getvariable('session'), session)"
_VERSIONS = {
    "conversations": """(list_contains(getvariable('version'), version)
        OR list_contains(getvariable('version'), plugin_version)
        OR list_contains(getvariable('version'), plugin_digest))""",
    "runs": "list_has_any(getvariable('version'), versions)",
    "cells": "list_contains(getvariable('version'), version)",
    "cases": "list_contains(getvariable('version'), version)",
}
_READ = "read_parquet(getvariable('{table}_files'), filename = 'file', union_by_name = true)"

COUNTED = "CREATE VIEW counted AS FROM conversations WHERE counted AND outcome <> 'infra_failed'"
"""What figures are made of, as `totals.counted` has it."""


def chosen(seen: Seen, ask: Ask, allowed: Allowed) -> tuple[Held, ...]:
    """The sources that can hold what is asked for, newest first."""
    kinds = {"runs": ("run",), "imports": ("import",), "all": ("run", "import")}[ask.source]
    found = (held for held in seen.sources if (held.name in ask.run if ask.run else held.kind in kinds))
    if ask.label:
        found = (held for held in found if held.label in ask.label)
    return tuple(
        held
        for held in found
        if held.suite is None
        or (held.suite in (ask.suite or (held.suite,)) and held.suite in (allowed.suites or (held.suite,)))
    )


@contextmanager
def open_rows(seen: Seen, ask: Ask, allowed: Allowed, *, today: date, folder: Path) -> Iterator[Rows]:
    """The views `conversations`, `counted`, `runs`, `cells` and `cases`, of what is asked for and may be seen.

    `folder`: for what does not fit in memory.
    """
    sources = chosen(seen, ask, allowed)
    with Rows() as rows:
        rows.run(f"SET memory_limit = '{_MEMORY}'")
        rows.run(f"SET threads = {_THREADS}")
        rows.run("SET temp_directory = ?", [str(folder)])
        since = None if ask.days is None else (today - timedelta(days=ask.days - 1)).isoformat()
        lists = {name: getattr(ask, name) for name in ("suite", "plugin", "version", "session")}
        lists["scope"] = allowed.suites
        for name, values in lists.items():
            rows.run(f"SET VARIABLE {name} = ?::VARCHAR[]", [list(values)])
        rows.run("SET VARIABLE since = ?::VARCHAR", [since])
        asked = {name for name, given in {**lists, "since": since}.items() if given}
        _sources(rows, sources, seen.empty)
        rows.run(f"CREATE VIEW conversations AS {_conversations(_where('conversations', asked))}")
        rows.run(COUNTED)
        for table, columns in SHEETS.items():
            _files(rows, table, [held for held in sources if held.kind == "run"], seen.empty)
            named = ", ".join(f'"{column}"' for column in columns)
            read = _READ.format(table=table)
            rows.run(f"CREATE VIEW {table} AS SELECT {named} FROM {read} WHERE {_where(table, asked)}")
        yield rows


def _sources(rows: Rows, sources: Sequence[Held], empty: Path) -> None:
    scored = [held for held in sources if held.scored]
    _files(rows, "conversations", scored, empty)
    rows.run("CREATE TABLE sources (file VARCHAR, source VARCHAR, label VARCHAR, prompts VARCHAR)")
    documents = [json.dumps([str(held.file("conversations")), held.name, held.label, held.prompts]) for held in scored]
    if documents:
        read = "SELECT d[1], d[2], d[3], d[4] FROM (SELECT unnest(?::VARCHAR[])::JSON::VARCHAR[] AS d)"
        rows.run(f"INSERT INTO sources {read}", [documents])


def _files(rows: Rows, table: str, held: Sequence[Held], empty: Path) -> None:
    """Oldest first. One file without a row is among them, so that the columns are there whatever is held."""
    files = [empty / f"{table}.parquet", *(one.file(table) for one in reversed(held))]
    rows.run(f"SET VARIABLE {table}_files = ?::VARCHAR[]", [[str(file) for file in files]])


def _where(table: str, asked: Collection[str]) -> str:
    # A run is of no one session, so none of its rows is meant.
    session = _SESSION if table == "conversations" else "false"
    conditions = {**_LISTS, "version": _VERSIONS[table], "session": session}
    return " AND ".join(condition for name, condition in conditions.items() if name in asked) or "true"


def _conversations(where: str) -> str:
    """Counts are kept as floating point where they are sums; here each is a whole number again."""
    fields = Conversation.model_fields
    names = [name for name in fields if name not in ErrorCounts.model_fields]
    place = names.index("builtin_calls") + 1  # where the guide lists them; in the contract they come first
    columns = ", ".join(
        f'"{name}"::BIGINT AS "{name}"' if fields[name].annotation in (int, int | None) else f'"{name}"'
        for name in (*names[:place], *ErrorCounts.model_fields, *names[place:])
    )
    return f"""
    SELECT source, label, version, prompts, {columns} FROM (
        SELECT c.*, s.source, s.label, s.prompts, {VERSION} AS version
        FROM {_READ.format(table="conversations")} AS c JOIN sources AS s USING (file)
    ) WHERE {where}
    """
