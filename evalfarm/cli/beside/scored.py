"""Conversations scored by both implementations of the rules, batch by batch, and their rows kept."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.conversations.agreement import check_agreement
from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.sources import Seen, Source, run_source
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation, Origin
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Trace
from evalfarm.conversations import Conversations
from evalfarm.store import Store
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

#: Of one batch: so many conversations, or so many characters in their calls, whichever comes first.
_BATCH = 500
_BATCH_CHARS = 32_000_000

InSql = Callable[[ConversationRules], Scorer]
"""Makes the rules as SQL ready."""


def score_run(store: Store, run: str, in_sql: InSql = Scorer) -> None:
    """Score every conversation of a run that was summed up and keep the rows; nothing where that was done already.

    In memory is a batch at a time. Raises RulesDisagree, with the rows, where SQL and Python find different figures;
    then no row is kept.
    """
    kept = Conversations(store.objects)
    if not kept.are_scored(run):
        for _ in keep_rows(kept, run_source(store, run), in_sql):
            pass


def keep_rows(kept: Conversations, source: Source, in_sql: InSql = Scorer) -> Iterator[list[Conversation]]:
    """The rows of a source, a batch at a time; after the last one all are kept beside its conversations.

    Raises RulesDisagree, with the rows that differ, at the first batch in which one does.
    """
    rules = shipped_rules().extended(source.rules)
    matcher = Matcher(rules)
    with closing(in_sql(rules)) as scorer:
        for batch in _batches(source.seen):
            found = [score(trace, origin, matcher) for trace, origin, _ in batch]
            check_agreement(found, scorer.score(bundle for _, _, bundle in batch))
            yield found
        kept.put_rows(source.folder, _as_parquet(scorer))


def _as_parquet(scorer: Scorer) -> bytes:
    with TemporaryDirectory() as folder:
        parquet = Path(folder, "conversations.parquet")
        scorer.write(parquet)
        return parquet.read_bytes()


def _batches(seen: Iterable[Seen]) -> Iterator[list[tuple[Trace, Origin, Bundle]]]:
    batch: list[tuple[Trace, Origin, Bundle]] = []
    size = 0
    for trace, origin in seen:
        bundle = bundle_of(trace, origin)
        batch.append((trace, origin, bundle))
        size += sum(len(call.input) + len(call.result) for call in bundle.tool_calls)
        if len(batch) >= _BATCH or size >= _BATCH_CHARS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
