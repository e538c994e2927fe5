"""Where conversations are read from: a run's stored traces, or what was imported; and how they are exported."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from pydantic import ValidationError

from evalfarm.analysis.conversations.attempts import Attempts, Seen
from evalfarm.analysis.conversations.bundles import bundle_of, trace_of
from evalfarm.contracts.bundle import Bundle, Import
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.conversations import Conversations
from evalfarm.store import Store


@dataclass(frozen=True, slots=True)
class Source:
    """Conversations that are kept together."""

    name: str
    folder: str  #: of their rows, for `Conversations`
    rules: ConversationRules  #: what is added to the shipped rules
    prompts: str | None  #: digest of what was asked; None: from elsewhere, nobody knows
    seen: Iterator[Seen]  #: read as it is asked for, once


def run_source(store: Store, run: str) -> Source:
    """Every attempt of a run's closed trials that left a trace. Raises UnknownName when there is no such run."""
    attempts = Attempts(store, run)
    prompts = store.get_manifest(run).digests.get("prompts")
    seen = chain(attempts.counted(), attempts.others())
    return Source(run, f"runs/{run}", attempts.plan.suite.conversations, prompts, seen)


def import_source(kept: Conversations, made: Import) -> Source:
    """What was imported under one name."""
    return Source(made.name, f"imports/{made.name}", made.rules, None, map(trace_of, kept.bundles(made)))


def export(source: Source) -> Iterator[str]:
    """The conversations as lines of JSON, one a line without its end: what `read_line` reads."""
    for trace, origin in source.seen:
        yield bundle_of(trace, origin).model_dump_json()


def read_line(line: bytes) -> Bundle:
    """The bundle of an exported line. Raises ValueError, saying which field, for what is none or cannot be scored."""
    try:
        bundle = Bundle.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    try:
        trace_of(bundle)
    except (ValueError, RecursionError) as error:
        raise ValueError("tool_calls: an input or a result is no JSON that can be read") from error
    return bundle
