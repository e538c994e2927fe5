from collections.abc import Iterator
from pathlib import Path

import pytest

from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.tables import TABLES, Scorer
from evalfarm.analysis.summary.rows import Rows
from evalfarm.contracts.bundle import Bundle, CallRow, Facts, MessageRow, RequestRow
from evalfarm.contracts.conversation import Conversation, Origin
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Arm, Telemetry, ToolCall, Trace, Trial, Turn


def _bundle(index: int, result: str = "x") -> Bundle:
    trace = Trace(
        run="r",
        trial=Trial(index=index, case="c", repeat=0, seed=1, arm=Arm(model="m", harness="loop", variant="v")),
        attempt=1,
        outcome="finished",
        turns=(Turn(query="q", answer="a" * 200),),
        tool_calls=(ToolCall(name="get", result=result),),
        telemetry=Telemetry(complete=True),
        started_at=float(index),
        duration_s=1.0,
    )
    return bundle_of(trace, Origin(suite="s", plugin="p"))


@pytest.fixture
def scorer() -> Iterator[Scorer]:
    made = Scorer(ConversationRules(completed_chars=200, schema_errors=("BAD",)))
    yield made
    made.close()


def test_the_tables_have_the_columns_of_their_rows() -> None:
    rows = {"facts": Facts, "requests": RequestRow, "tool_calls": CallRow, "messages": MessageRow}
    assert {name: set(columns) for name, columns in TABLES.items()} == {
        name: set(row.model_fields) for name, row in rows.items()
    }


def test_a_batch_leaves_nothing_behind_for_the_next(scorer: Scorer) -> None:
    assert [row.conversation for row in scorer.score([_bundle(0), _bundle(1)])] == ["r/0/1", "r/1/1"]
    assert [row.conversation for row in scorer.score([_bundle(2)])] == ["r/2/1"]
    assert scorer.score([]) == ()


def test_the_rows_of_all_batches_are_in_the_parquet_file(scorer: Scorer, tmp_path: Path) -> None:
    scored = [*scorer.score([_bundle(1), _bundle(3)]), *scorer.score([_bundle(2), _bundle(0, "BAD")])]
    file = tmp_path / "conversations.parquet"
    scorer.write(file)
    with Rows.stored(file) as rows:
        found = [Conversation.model_validate_json(text) for (text,) in rows.records("SELECT to_json(r) FROM rows AS r")]
    assert [row.started_at for row in found] == [1.0, 3.0, 0.0, 2.0], "a batch after the other, each by time"
    assert sorted(found, key=str) == sorted(scored, key=str)
    assert [row.schema_errors for row in found] == [0, 0, 1, 0]


def test_many_batches_are_scored_alike_and_all_kept(scorer: Scorer, tmp_path: Path) -> None:
    scored = [row for index in range(25) for row in scorer.score([_bundle(index, "BAD" if index % 2 else "x")])]
    assert [(row.conversation, row.schema_errors) for row in scored] == [(f"r/{n}/1", n % 2) for n in range(25)]
    scorer.write(tmp_path / "conversations.parquet")
    with Rows.stored(tmp_path / "conversations.parquet") as rows:
        assert rows.records("SELECT conversation FROM rows") == [(row.conversation,) for row in scored]


def test_rules_that_look_for_nothing_find_nothing(scorer: Scorer) -> None:
    with_nothing = Scorer(ConversationRules(completed_chars=1))
    (row,) = with_nothing.score([_bundle(0, "BAD")])
    with_nothing.close()
    assert (row.failed_calls, row.success) == (0, True)


def test_a_result_of_ten_megabytes_is_scored(scorer: Scorer) -> None:
    (row,) = scorer.score([_bundle(0, "é" * 5_000_000 + "BAD")])
    assert row.schema_errors == 1
