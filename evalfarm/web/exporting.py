"""A dataset as a file: written whole by DuckDB, then handed on piece by piece, so that its size needs no memory.

Written first and sent then, so that what breaks is an error with a status, and no file that ends early.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from evalfarm.analysis.summary.rows import Rows
from evalfarm.reports.safe_text import in_markdown
from evalfarm.web.datasets import DATASETS

Format = Literal["csv", "json", "jsonl", "markdown", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "markdown": "text/markdown; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
SUFFIXES: dict[Format, str] = {"csv": "csv", "json": "json", "jsonl": "jsonl", "markdown": "md", "parquet": "parquet"}

_COPY: dict[Format, str] = {
    "csv": "(FORMAT csv, HEADER true)",
    "json": "(FORMAT json, ARRAY true)",
    "jsonl": "(FORMAT json)",
    # Rows that are held in memory until they are written: 20,480 of conversations take 20 MB more than these.
    "parquet": "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 8192)",
}
#: Text that a spreadsheet would take for a formula, which a model may have written.
_FORMULA = r"'^[=+\-@\t\r]'"
_PIECE = 1 << 18


def count(rows: Rows, dataset: str) -> int:
    """How many rows a dataset has."""
    ((found,),) = rows.records(f"SELECT count(*) FROM ({DATASETS[dataset]})")
    return int(found)


def write(rows: Rows, dataset: str, form: Format, file: Path) -> None:
    """Write a dataset to a file."""
    if form == "markdown":
        lines = file.with_suffix(".lines")
        write(rows, dataset, "jsonl", lines)
        names = [name for name, _ in _columns(rows, dataset)]
        with file.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(_markdown(names, lines))
        lines.unlink()
        return
    # One thread: each holds rows of its own until those before them are written.
    rows.run("SET threads = 1")
    question = _flat(rows, dataset) if form == "csv" else DATASETS[dataset]
    rows.run(f"COPY ({question}) TO ? {_COPY[form]}", [str(file)])


def pieces(file: Path) -> Iterator[bytes]:
    """The bytes of a file. It has no name any more from here on, so that nobody needs to remove it."""
    opened = file.open("rb")
    file.unlink()
    return _read(opened)


def _read(opened: BinaryIO) -> Iterator[bytes]:
    with opened:
        while piece := opened.read(_PIECE):
            yield piece


def _columns(rows: Rows, dataset: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, *_ in rows.records(f"DESCRIBE {DATASETS[dataset]}")]


def _flat(rows: Rows, dataset: str) -> str:
    """The dataset with nothing but numbers and text in it: lists and maps as JSON, no text that is a formula."""
    cells = []
    for name, kind in _columns(rows, dataset):
        quoted = f'"{name}"'
        if kind == "VARCHAR":
            cells.append(f"CASE WHEN regexp_matches({quoted}, {_FORMULA}) THEN '''' || {quoted} ELSE {quoted} END")
        elif "[" in kind or "(" in kind:
            cells.append(f"to_json({quoted})::VARCHAR")
        else:
            cells.append(quoted)
        cells[-1] += f" AS {quoted}"
    return f"SELECT {', '.join(cells)} FROM ({DATASETS[dataset]})"


def _markdown(names: list[str], lines: Path) -> Iterator[str]:
    yield f"| {' | '.join(in_markdown(name) for name in names)} |\n"
    yield f"| {' | '.join('---' for _ in names)} |\n"
    with lines.open(encoding="utf-8") as opened:
        for line in opened:
            row = json.loads(line)
            yield f"| {' | '.join(_cell(row[name]) for name in names)} |\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return in_markdown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
