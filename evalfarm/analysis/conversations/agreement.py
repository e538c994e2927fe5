"""The two implementations of the rules held against each other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from evalfarm.contracts.conversation import Conversation
from evalfarm.errors import RulesDisagree

_SHOWN = 10
#: Both engines sum and divide in floating point, each in its own order.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One figure of one conversation that came out differently."""

    conversation: str
    column: str
    python: object
    sql: object

    def __str__(self) -> str:
        """`bls-1/7/1, writes: 2 in Python, 1 in SQL`."""
        return f"{self.conversation}, {self.column}: {self.python!r} in Python, {self.sql!r} in SQL"


def disagreements(python: Sequence[Conversation], sql: Sequence[Conversation]) -> Iterator[Disagreement]:
    """Every figure in which the rows differ, and every row that only one side has. Numbers agree to nine digits."""
    first, second = ({row.conversation: row for row in rows} for rows in (python, sql))
    for name in dict.fromkeys((*first, *second)):
        one, other = first.get(name), second.get(name)
        if one is None or other is None:
            yield Disagreement(name, "conversation", one and "a row", other and "a row")
            continue
        if one == other:
            continue
        for column in Conversation.model_fields:
            values = getattr(one, column), getattr(other, column)
            if not _same(*values):
                yield Disagreement(name, column, *values)


def check_agreement(python: Sequence[Conversation], sql: Sequence[Conversation]) -> None:
    """Raise RulesDisagree, naming the rows, where the implementations disagree."""
    found = list(islice(disagreements(python, sql), _SHOWN + 1))
    if found:
        listed = "\n".join(f"  {one}" for one in found[:_SHOWN])
        more = "\n  and more" if len(found) > _SHOWN else ""
        raise RulesDisagree(
            f"the rules over conversations disagree between Python and SQL, so no figure holds\n{listed}{more}",
            "report these rows; `evalfarm show CONVERSATION --json` prints the trace that they were read from",
        )


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return one == other
