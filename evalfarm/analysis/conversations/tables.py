"""Bundles as the four tables that SQL reads, and the rows that `rules.sql` makes of them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation
from evalfarm.contracts.conversation_rules import PATTERN_LISTS, ConversationRules, any_of

_RULES = Path(__file__).with_name("rules.sql")
_TEXT, _COUNT, _NUMBER, _FLAG = "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"

#: Rows that are held in memory while they are written.
_ROW_GROUP = 8_192
#: Batches after which DuckDB is opened anew: of tables that are emptied and filled again it keeps 1.5 MB each time.
#: It takes as long as a twentieth of scoring them.
_REOPENED_AFTER = 10

Columns = Mapping[str, str | list[str]]

TABLES: dict[str, Columns] = {
    "facts": {
        **dict.fromkeys(
            ("conversation", "run", "case", "model", "harness", "variant", "suite", "suite_version"), _TEXT
        ),
        **dict.fromkeys(("plugin", "plugin_version", "plugin_digest", "skill", "verdict", "outcome", "failure"), _TEXT),
        "session": _TEXT,
        **dict.fromkeys(("index", "attempt", "repeat", "seed"), _COUNT),
        **dict.fromkeys(("started_at", "duration_s", "cost_usd"), _NUMBER),
        **dict.fromkeys(("counted", "telemetry_complete", "simulated"), _FLAG),
        **dict.fromkeys(("skill_digests", "versions"), "MAP(VARCHAR, VARCHAR)"),
        "reasons": [_TEXT],
        "gaps": [_TEXT],
        **dict.fromkeys(("failure_kind", "isolation"), _TEXT),
        "redacted": "MAP(VARCHAR, BIGINT)",
    },
    "requests": {
        **dict.fromkeys(("conversation", "error", "response_id", "model"), _TEXT),
        **dict.fromkeys(("n", "status", "input_tokens", "cached_tokens", "cached_write_tokens"), _COUNT),
        **dict.fromkeys(("output_tokens", "reasoning_tokens"), _COUNT),
        **dict.fromkeys(("started_s", "latency_s", "waited_s", "cost_usd"), _NUMBER),
        "side": _FLAG,
        "tries": [_TEXT],
    },
    "tool_calls": {
        **dict.fromkeys(("conversation", "witness", "server", "name", "call_id", "input", "result", "error"), _TEXT),
        **dict.fromkeys(("n", "turn", "exit_code"), _COUNT),
        **dict.fromkeys(("started_s", "duration_s"), _NUMBER),
    },
    "messages": {
        **dict.fromkeys(("conversation", "role", "text"), _TEXT),
        **dict.fromkeys(("n", "turn"), _COUNT),
    },
}
"""The tables and their columns, with the types that DuckDB reads them as."""

_GUARDS: Columns = {
    "name": _TEXT,
    "tools": [_TEXT],
    **dict.fromkeys(("argument", "must_match", "must_not_match"), _TEXT),
}


class Scorer:
    """The rules as SQL, held ready; scores one batch of bundles after another. Not safe in several threads at once."""

    def __init__(self, rules: ConversationRules, query: str | None = None) -> None:
        """`rules` as the graders have them: `completed_chars` is set. `query` stands in the place of `rules.sql`."""
        self._rules = rules
        self._query = _RULES.read_text(encoding="utf-8") if query is None else query
        self._folder = TemporaryDirectory()  # of the rows, which in memory would take a kilobyte each
        self._kept: list[str] = []
        self.rows = self._opened()  #: the four tables of the last batch, and the view `conversations` over them

    def _opened(self) -> Rows:
        # More threads have nothing to share in a batch, and each holds a group of the rows that are written.
        rows = Rows(threads=1)
        for name, columns in {**TABLES, "guards": _GUARDS}.items():
            rows.run(f"CREATE TABLE {name} AS SELECT unnest(json_transform('{{}}', ?)) LIMIT 0", [_spec(columns)])
        for name, value in self._rules:
            if name in PATTERN_LISTS:
                rows.run(f"SET VARIABLE {name} = ?", [any_of(value)])
            elif name == "completed_chars":
                rows.run(f"SET VARIABLE {name} = ?::BIGINT", [value])
            elif name != "guards":
                rows.run(f"SET VARIABLE {name} = ?::VARCHAR[]", [list(value)])
        guards = [json.dumps({"name": name, **guard.model_dump()}) for name, guard in self._rules.guards.items()]
        _insert(rows, "guards", _GUARDS, guards)
        rows.run(self._query)
        return rows

    def score(self, bundles: Iterable[Bundle]) -> tuple[Conversation, ...]:
        """The row of each bundle, by the conversation's name; all are kept. No conversation may come twice."""
        held = list(bundles)
        if self._kept and len(self._kept) % _REOPENED_AFTER == 0:
            self.rows.__exit__(None, None, None)
            self.rows = self._opened()
        for name, columns in TABLES.items():
            self.rows.run(f"TRUNCATE {name}")
            _insert(self.rows, name, columns, [row.model_dump_json() for row in _rows(held, name)])
        self.rows.run("CREATE OR REPLACE TEMP TABLE scored AS FROM conversations")
        self._kept.append(f"{self._folder.name}/{len(self._kept)}.parquet")
        self._write("FROM scored ORDER BY started_at, conversation", self._kept[-1])
        found = self.rows.records("SELECT to_json(s) FROM scored AS s ORDER BY conversation")
        return tuple(Conversation.model_validate_json(document) for (document,) in found)

    def write(self, parquet: Path) -> None:
        """Write the rows of all batches as one Parquet file, batch by batch, each by the time at which they began.

        All of them by time would be a sort of all rows in memory; whoever shows them sorts what is shown.
        """
        self.rows.run("SET VARIABLE kept = ?", [self._kept])
        kept = "read_parquet(getvariable('kept'))" if self._kept else "conversations"
        self._write(f"FROM {kept}", str(parquet))

    def close(self) -> None:
        """Let go of the tables and of the rows."""
        self.rows.__exit__(None, None, None)
        self._folder.cleanup()

    def _write(self, query: str, parquet: str) -> None:
        self.rows.run(f"COPY ({query}) TO ? (FORMAT parquet, ROW_GROUP_SIZE {_ROW_GROUP})", [parquet])


def _insert(rows: Rows, table: str, columns: Columns, documents: Sequence[str]) -> None:
    if documents:
        read = "SELECT unnest(json_transform(d, ?)) FROM (SELECT unnest(?::VARCHAR[]) AS d)"
        rows.run(f"INSERT INTO {table} {read}", [_spec(columns), documents])


def _rows(bundles: Iterable[Bundle], table: str) -> Iterator[BaseModel]:
    for bundle in bundles:
        if table == "facts":
            yield bundle.facts
        else:
            yield from getattr(bundle, table)


def _spec(columns: Columns) -> str:
    return json.dumps(columns)
