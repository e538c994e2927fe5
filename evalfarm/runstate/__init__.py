"""Run state in Redis or Valkey: the ledger of every run, and what is known of the farm. The only door to redis-py.

A Celery message is a hint; the ledger is the truth. Every change is one Lua script, by the server's clock,
safe to send twice. Keys of one run of N trials, `f:{run}:` before each (bytes measured on Valkey 8.1):

    win   string  a byte per trial: 0 open, n closed by attempt n, 254 closed as infra_failed     N
    att   string  a byte per trial: attempts started; the newest is the fencing token             N
    fl    ZSET    trial -> deadline in ms: in flight, that is handed out or leased                ~86 each
    own   HASH    trial -> "attempt:token": the leased ones among them                            ~56 each
    rq    ZSET    trial -> not before, in ms: waits to be handed out again                        ~86 each
    cnt   HASH    passed, failed, inconclusive, infra_failed, attempts, lost, late, superseded, redispatched
    past  HASH    "trial:attempt" -> how one that did not count ended, for the same answer again  ~60 each
    out   STREAM  what happened, with the row of each closed trial; trimmed once archived
    meta  HASH    plan (digest), size, cursor (trials below it were handed out), cancelled, segments, archived_id

So an open trial is fresh (at or above the cursor), waiting (rq), handed out (fl) or leased (fl and own).
Of the whole farm: `f:open` SET of the runs that are not sealed, `f:workers` SET of worker names and
`f:w:NAME` a worker's slots, which expires when the worker stops beating.
"""

from evalfarm.runstate.connection import Client, check_server, connect
from evalfarm.runstate.farm import beat, close_run, live_slots, open_runs
from evalfarm.runstate.ledger import (
    BACKOFF_S,
    MAX_ATTEMPTS,
    ArchivePosition,
    Claim,
    ClaimStatus,
    Ending,
    Event,
    EventKind,
    Ledger,
    Progress,
    Reaped,
)

__all__ = [
    "BACKOFF_S",
    "MAX_ATTEMPTS",
    "ArchivePosition",
    "Claim",
    "ClaimStatus",
    "Client",
    "Ending",
    "Event",
    "EventKind",
    "Ledger",
    "Progress",
    "Reaped",
    "beat",
    "check_server",
    "close_run",
    "connect",
    "live_slots",
    "open_runs",
]
