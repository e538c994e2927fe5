"""Rows that evalfarm did not produce: read from JSONL, CSV or Parquet, and refused where one of them cannot be.

Whatever the format, a row becomes one JSON object; from there on there is one set of rules. A bad row is never left
out: that would move every rate. docs/reference/rows.md describes the columns for whoever writes such a file.
"""

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from evalfarm.analysis.summary import row_rules
from evalfarm.analysis.summary.rows import CREATE, Rows
from evalfarm.errors import UsageError

#: Rows handed over in one statement.
_CHUNK = 5_000
_CONTENT_LENGTH = 200

_FORMATS = "JSONL (.jsonl, .ndjson), CSV (.csv) or Parquet (.parquet)"
_REFERENCE = "docs/reference/rows.md describes every column"

_FROM_PARQUET = """
INSERT INTO given SELECT file_row_number + 1, to_json(r) FROM read_parquet(?, file_row_number = true) AS r
"""

Line = tuple[int, str]
"""A row's number in its file, from 1, and the row as one JSON object."""


def read_rows(path: Path) -> Rows:
    """The rows of a file, by its suffix.

    Raises UsageError, naming the file, for one that is missing, empty, or of no format that is read; naming also the
    line (Parquet: the row), its content and the column, for the first row that breaks a rule of `row_rules`.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}", f"give a file with rows: {_FORMATS}")
    rows = Rows()
    rows.run("CREATE TABLE given (n BIGINT, line VARCHAR)")
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            _take(rows, _json_lines(path))
        case ".csv":
            _take(rows, _csv_lines(path))
        case ".parquet":
            rows.run(_FROM_PARQUET, [str(path)])
        case _:
            raise UsageError(f"{path.name} is in no format that rows are read from", f"give {_FORMATS}")
    _fill(rows, path)
    return rows


def _fill(rows: Rows, path: Path) -> None:
    """The table `rows` from `given`, once every rule holds."""
    if not rows.records("SELECT 1 FROM given LIMIT 1"):
        raise UsageError(f"{path.name} holds no row", f"give at least one; {_REFERENCE}")
    for (n,) in rows.records(row_rules.NO_OBJECT):
        raise _refused(rows, path, n, "this is no JSON object")
    named = [name for (name,) in rows.records(row_rules.NAMED)]
    if needed := row_rules.missing(named):
        raise UsageError(f"{path.name} has no column {needed}", _REFERENCE)
    for statement in row_rules.SETUP:
        rows.run(statement)
    for n, problem in rows.records(row_rules.PROBLEMS):
        raise _refused(rows, path, n, problem)
    _take_tags(rows, path)
    rows.run(CREATE)
    rows.run(row_rules.FILL)
    for n, first, problem in rows.records(row_rules.REPEATED) + rows.records(row_rules.UNLIKE):
        raise _refused(rows, path, n, f"{problem}{_unit(path)} {first}")
    for table in ("given", "texts"):
        rows.run(f"DROP TABLE {table}")
    ignored = sorted(set(named) - row_rules.KNOWN)
    rows.notes = (f"Columns that are not read: {', '.join(ignored)}.",) if ignored else ()


def _unit(path: Path) -> str:
    return "row" if path.suffix.lower() == ".parquet" else "line"


def _refused(rows: Rows, path: Path, n: int, problem: str) -> UsageError:
    ((line,),) = rows.records("SELECT line FROM given WHERE n = ?", [n])
    return UsageError(f"{path.name}, {_unit(path)} {n}: {problem}\n  {_content(line)}", _REFERENCE)


def _content(line: str) -> str:
    """A row as a message shows it: its beginning, and nothing in it that could steer a terminal."""
    shown = line if len(line) <= _CONTENT_LENGTH else f"{line[:_CONTENT_LENGTH]}…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown)


def _take(rows: Rows, lines: Iterator[Line]) -> None:
    while chunk := list(islice(lines, _CHUNK)):
        rows.run("INSERT INTO given SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[])", list(zip(*chunk, strict=True)))


def _json_lines(path: Path) -> Iterator[Line]:
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            yield from ((n, line.strip()) for n, line in enumerate(file, 1) if line.strip())
    except UnicodeDecodeError as error:
        raise _no_utf8(path) from error


def _csv_lines(path: Path) -> Iterator[Line]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            heads = [head.strip() for head in next(reader, [])]
            if len(set(heads)) < len(heads):
                raise UsageError(f"{path.name} names a column twice in its first line", _REFERENCE)
            begins = reader.line_num + 1
            for cells in reader:
                if cells and len(cells) != len(heads):
                    problem = f"{len(cells)} cells, but the first line names {len(heads)} columns"
                    raise UsageError(
                        f"{path.name}, line {begins}: {problem}\n  {_content(','.join(cells))}",
                        "quote a cell that holds a comma",
                    )
                if cells:
                    yield begins, json.dumps(dict(zip(heads, cells, strict=True)), ensure_ascii=False)
                begins = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise _no_utf8(path) from error
    except csv.Error as error:
        raise UsageError(f"{path.name} does not read as CSV: {error}", _REFERENCE) from error


def _no_utf8(path: Path) -> UsageError:
    return UsageError(f"{path.name} is not text in UTF-8", f"give {_FORMATS}")


def _take_tags(rows: Rows, path: Path) -> None:
    """The table `tag_texts`: every way in which tags are told, and the tags it stands for."""
    rows.run("CREATE TABLE tag_texts (told VARCHAR, tags MAP(VARCHAR, VARCHAR))")
    for n, told in rows.records("SELECT min(n), tags FROM texts WHERE tags IS NOT NULL GROUP BY tags ORDER BY 1"):
        try:
            tags = tags_of(told)
        except ValueError as error:
            raise _refused(rows, path, n, f"tags: {error}") from error
        entries = {"key": list(tags), "value": list(tags.values())}
        rows.run("INSERT INTO tag_texts VALUES (?, ?::MAP(VARCHAR, VARCHAR))", [told, entries])


def tags_of(told: str) -> dict[str, str]:
    """Tags from a JSON object of plain values, or from `name=value;name=value`; in the order of their names.

    Raises ValueError for anything else.
    """
    if told.startswith("{"):
        found = json.loads(told)
        if any(isinstance(value, dict | list) or value is None for value in found.values()):
            raise ValueError("every value must be a text, a number, true or false")
        pairs = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in found.items()]
    else:
        halves = [part.partition("=") for part in told.split(";") if part.strip()]
        pairs = [(name.strip(), value.strip()) for name, _, value in halves]
        if any(not sign for _, sign, _ in halves) or any(not name for name, _ in pairs):
            raise ValueError(f"{told!r} is neither a JSON object nor name=value;name=value")
    return dict(sorted(pairs))
