"""Conversations scored by both implementations of the rules, batch by batch, and their rows kept."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.conversations.agreement import check_agreement
from evalfarm.analysis.conversations.attempts import Attempts, Seen
from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.sources import Source
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.conversations import Conversations
from evalfarm.store import Store
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

#: Of one batch: so many conversations, or so many characters in their calls, whichever comes first. A question in SQL
#: takes 50 ms to be understood, however many it is asked of.
_BATCH = 1_000
_BATCH_CHARS = 32_000_000

InSql = Callable[[ConversationRules], Scorer]
"""Makes the rules as SQL ready."""

_Row = tuple[Conversation, Bundle]


class Scoring:
    """The two implementations side by side, each on a thread, and the rows of what they agreed on; to be closed."""

    def __init__(self, rules: ConversationRules, in_sql: InSql = Scorer) -> None:
        """`rules` are added to the shipped ones."""
        whole = shipped_rules().extended(rules)
        self._matcher = Matcher(whole)
        self._scorer = in_sql(whole)
        self._beside = ThreadPoolExecutor(1, "sql")

    def close(self) -> None:
        """Let go of the rows."""
        self._beside.shutdown()
        self._scorer.close()

    def rows(self, seen: Iterable[Seen]) -> Iterator[list[Conversation]]:
        """The rows of conversations, batch by batch. Raises RulesDisagree, with the rows, at the first that differs.

        While SQL is at work on a batch, Python is at the next.
        """
        asked: tuple[list[Conversation], Future[tuple[Conversation, ...]]] | None = None
        for batch in _batches(self._scored(one) for one in seen):
            bundles = [bundle for _, bundle in batch]
            ahead = [row for row, _ in batch], self._beside.submit(self._scorer.score, bundles)
            if asked is not None:
                yield _agreed(*asked)
            asked = ahead
        if asked is not None:
            yield _agreed(*asked)

    def parquet(self) -> bytes:
        """All rows so far as one Parquet file."""
        with TemporaryDirectory() as folder:
            file = Path(folder, "conversations.parquet")
            self._scorer.write(file)
            return file.read_bytes()

    def _scored(self, seen: Seen) -> _Row:
        trace, origin = seen
        return score(trace, origin, self._matcher), bundle_of(trace, origin)


class RunScoring:
    """The conversations of one run, scored as its results are stored; to be left with `close`."""

    def __init__(self, store: Store, run: str, in_sql: InSql = Scorer) -> None:
        """Raises UnknownName when there is no such run."""
        self._attempts = Attempts(store, run)
        self._scoring = Scoring(self._attempts.plan.suite.conversations, in_sql)
        self._kept = Conversations(store.objects)

    def go_on(self) -> None:
        """Score the attempts that count, of what was stored since. Raises RulesDisagree, with the rows."""
        self._score(self._attempts.counted())

    def finish(self) -> None:
        """Score what is left, and keep the rows. Raises RulesDisagree, with the rows; then none is kept."""
        self.go_on()
        self._score(self._attempts.others())
        self._kept.put_rows(f"runs/{self._attempts.plan.run}", self._scoring.parquet())

    def close(self) -> None:
        """Let go of the rows."""
        self._scoring.close()

    def _score(self, seen: Iterable[Seen]) -> None:
        for _ in self._scoring.rows(seen):
            pass


def score_run(store: Store, run: str, in_sql: InSql = Scorer) -> None:
    """Score every conversation of a run that was summed up and keep the rows; nothing where that was done already.

    In memory are two batches at a time. Raises RulesDisagree, with the rows, where SQL and Python find different
    figures; then no row is kept.
    """
    if not Conversations(store.objects).are_scored(run):
        with closing(RunScoring(store, run, in_sql)) as scoring:
            scoring.finish()


def keep_rows(kept: Conversations, source: Source, in_sql: InSql = Scorer) -> Iterator[list[Conversation]]:
    """The rows of a source, a batch at a time; after the last one all are kept beside its conversations.

    Raises RulesDisagree, with the rows that differ, at the first batch in which one does.
    """
    with closing(Scoring(source.rules, in_sql)) as scoring:
        yield from scoring.rows(source.seen)
        kept.put_rows(source.folder, scoring.parquet())


def _agreed(python: list[Conversation], sql: "Future[tuple[Conversation, ...]]") -> list[Conversation]:
    check_agreement(python, sql.result())
    return python


def _batches(rows: Iterable[_Row]) -> Iterator[Sequence[_Row]]:
    batch: list[_Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(call.input) + len(call.result) for call in row[1].tool_calls)
        if len(batch) >= _BATCH or size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
