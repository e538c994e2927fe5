"""Whatever holds conversations, found by its name and scored."""

from evalfarm.analysis.conversations.metrics import Subject
from evalfarm.analysis.conversations.sources import Source, import_source, run_source
from evalfarm.cli.beside.scored import keep_rows
from evalfarm.cli.stored import run_of
from evalfarm.conversations import Conversations
from evalfarm.errors import UnknownName
from evalfarm.store import Store


def read_subject(store: Store, text: str) -> Subject:
    """The conversations of `NAME` or `NAME@VARIANT`, scored; NAME is a run, a label (its newest run) or an import.

    The rows are kept beside the conversations. Raises UnknownName where there is nothing of this name, and
    RulesDisagree, with the rows, where SQL and Python find different figures.
    """
    name, _, variant = text.partition("@")
    source = _source(store, name)
    rows = [row for batch in keep_rows(Conversations(store.objects), source) for row in batch]
    if variant and not any(row.variant == variant for row in rows):
        known = ", ".join(sorted({row.variant for row in rows})) or "none"
        raise UnknownName(f"{name!r} has no conversation of a variant {variant!r}", f"its variants: {known}")
    return Subject(text, tuple(row for row in rows if variant in ("", row.variant)), source.prompts)


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
