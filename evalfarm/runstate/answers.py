"""Whether an answer was given before: a repeat that got one out of a cache is no repeat.

The IDs of a run's responses are kept in `f:{run}:ids`, a table of entries of 11 bytes (48 bits of the ID's digest, the
trial, the attempt) in which a later ID takes the place of an earlier one that falls on the same entry. So it never
outgrows 1.4 MB, and what it may miss is an answer that was first given some hundred thousand responses ago.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.scripts import script

MOST_ENTRIES = 1 << 17
#: 180 KB. In a table made to the size of a run of two trials, every sixteenth pair of IDs would fall on one entry.
FEWEST_ENTRIES = 1 << 14
_ENTRIES_PER_TRIAL = 8


@dataclass(frozen=True, slots=True)
class Repeated:
    """A response that another attempt of the run got before."""

    response_id: str
    index: int  #: the trial that got it first
    attempt: int


def note_answers(
    client: Client, run: str, index: int, attempt: int, response_ids: Iterable[str], *, size: int
) -> Repeated | None:
    """Note the responses that an attempt got; the first of them that another attempt of the run had got before.

    `size` is the plan's, by which the table is made. Asked again for the same attempt, it answers the same.
    Raises BrokerUnavailable.
    """
    ids = list(dict.fromkeys(response_ids))
    if not ids:
        return None
    entries = max(FEWEST_ENTRIES, min(MOST_ENTRIES, _ENTRIES_PER_TRIAL * size))
    args: list[int] = [index, attempt]
    for response_id in ids:
        told = hashlib.sha256(response_id.encode(errors="replace")).digest()
        args += [int.from_bytes(told[:8], "big") % entries, int.from_bytes(told[8:14], "big") or 1]
    with answered(client):
        found = client.run_script(script("run/answers"), (f"f:{{{run}}}:ids", f"f:{{{run}}}:meta"), args)
    return Repeated(ids[found[0]], found[1], found[2]) if found else None
