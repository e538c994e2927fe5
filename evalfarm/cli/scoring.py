"""Conversations scored: whatever holds them, both implementations of the rules, compared batch by batch."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from evalfarm.analysis.conversations.agreement import check_agreement
from evalfarm.analysis.conversations.bundles import bundle_of
from evalfarm.analysis.conversations.metrics import Subject
from evalfarm.analysis.conversations.sources import Seen, Source, import_source, run_source
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.cli.stored import run_of
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation, Origin
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Trace
from evalfarm.conversations import Conversations
from evalfarm.errors import UnknownName
from evalfarm.store import Store
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

#: Of one batch: so many conversations, or so many characters in their calls, whichever comes first.
_BATCH = 500
_BATCH_CHARS = 32_000_000


def read_subject(store: Store, text: str) -> Subject:
    """The conversations of `NAME` or `NAME@VARIANT`, scored; NAME is a run, a label (its newest run) or an import.

    The rows are kept beside the conversations. Raises UnknownName where there is nothing of this name, and
    RulesDisagree, with the rows, where SQL and Python find different figures.
    """
    name, _, variant = text.partition("@")
    source = _source(store, name)
    rows, parquet = score_all(source.seen, shipped_rules().extended(source.rules))
    Conversations(store.objects).put_rows(source.folder, parquet)
    if variant and not any(row.variant == variant for row in rows):
        known = ", ".join(sorted({row.variant for row in rows})) or "none"
        raise UnknownName(f"{name!r} has no conversation of a variant {variant!r}", f"its variants: {known}")
    return Subject(text, tuple(row for row in rows if variant in ("", row.variant)), source.prompts)


def score_all(seen: Iterable[Seen], rules: ConversationRules) -> tuple[tuple[Conversation, ...], bytes]:
    """The rows of conversations in their order, and the same as Parquet. Raises RulesDisagree."""
    matcher, rows = Matcher(rules), list[Conversation]()
    scorer = Scorer(rules)
    try:
        for batch in _batches(seen):
            found = [score(trace, origin, matcher) for trace, origin, _ in batch]
            check_agreement(found, scorer.score(bundle for _, _, bundle in batch))
            rows += found
        with TemporaryDirectory() as folder:
            parquet = Path(folder, "conversations.parquet")
            scorer.write(parquet)
            return tuple(rows), parquet.read_bytes()
    finally:
        scorer.close()


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


def _source(store: Store, name: str) -> Source:
    kept = Conversations(store.objects)
    made = kept.get_import(name)
    if made is not None:
        return import_source(kept, made)
    try:
        return run_source(store, run_of(store, name))
    except UnknownName as error:
        imports = ", ".join(made.name for made in kept.imports()[:5])
        told = f"; imports: {imports}" if imports else ""
        raise UnknownName(f"{error.message}, nor an import of this name", f"{error.hint}{told}") from error
