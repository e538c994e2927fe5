"""Run state in Redis or Valkey: the ledger of every run, and what is known of the farm. The only door to redis-py.

A Celery message is a hint; the ledger is the truth. Every change is one Lua script, by the server's clock,
safe to send twice. Keys of one run of N trials, `f:{run}:` before each (bytes measured on Valkey 8.1):

    win   string  a byte per trial: 0 open, n closed by attempt n, 254 closed as infra_failed     N
    att   string  a byte per trial: attempts started; the newest is the fencing token             N
    sent  ZSET    trial -> until when it should be claimed, in ms: handed out                     ~86 each
    fl    ZSET    trial -> deadline in ms: leased, that is at work                                ~86 each
    own   HASH    trial -> "attempt:token": the same                                              ~56 each
    rq    ZSET    trial -> not before, in ms: waits to be handed out again                        ~86 each
    cnt   HASH    attempts, lost, returned, late, superseded,
                  redispatched, deferred; by arm "arm|verdict" and "arm|infra:kind", an arm being its place in the plan
    pace  HASH    ten seconds -> trials closed in them; the last minute's
    arms  string  two bytes for each trial of one repeat: its arm
    past  HASH    "trial:attempt" -> how one that did not count ended, for the same answer again  ~60 each
    hold  HASH    "trial:attempt" -> "micro-USD:arm:cap:model" set aside while it is at work      ~80 each
    ids   string  which responses were given to whom (answers.py)                                 at most 1.4 MB
    out   STREAM  what happened, with the row of each closed trial; trimmed once archived
    meta  HASH    plan (digest), size, cursor (trials below it were handed out), queue, together (trials in a
                  message), created, cancelled, rebuilding, segments, archived_id, tended and grace (when was last
                  looked for lost attempts, and until when none is); of a sealed run for a day: sealed

So an open trial is fresh (at or above the cursor), waiting (rq), handed out (sent) or leased (fl and own).
What is kept of a run's judging is told in judging.py. What `cnt` and `meta` hold of money is
told in budget.py, what is kept of each model in throttle.py.
Of the whole farm: `f:open` SET of the runs that are not sealed, `f:workers` SET of worker names and
`f:w:NAME` a worker's slots, which expires when the worker stops beating.
"""

from evalfarm.runstate.answers import Repeated, note_answers
from evalfarm.runstate.budget import Judged, Money, Spent, Terms
from evalfarm.runstate.client import Client
from evalfarm.runstate.committing import commit_result, ended_of, terms_of
from evalfarm.runstate.connection import check_server, connect
from evalfarm.runstate.examining import Line, check_persistence, clock_offset_s, line_to, waiting_messages
from evalfarm.runstate.farm import Load, beat, close_run, live_slots, loads, open_runs
from evalfarm.runstate.judging import Handed, JudgingProgress, JudgingQueue, Kept
from evalfarm.runstate.ledger import Ledger
from evalfarm.runstate.limits import UNLIMITED, Limits, ModelLimits, load_limits
from evalfarm.runstate.permissions import WORK, Rights, lets_anyone_in, rights_of
from evalfarm.runstate.records import (
    BACKOFF_S,
    MAX_ATTEMPTS,
    ArchivePosition,
    Claim,
    ClaimStatus,
    Ended,
    Ending,
    Event,
    EventKind,
    Held,
    Progress,
    Reaped,
    Restored,
    Shape,
)
from evalfarm.runstate.refusals import note_refusal, refusal_of
from evalfarm.runstate.standing import ArmStanding, Standing, standing_of
from evalfarm.runstate.throttle import Throttle, room
from evalfarm.runstate.watching import FarmView, ModelLoad, OpenRun, view_farm

__all__ = [
    "BACKOFF_S",
    "MAX_ATTEMPTS",
    "UNLIMITED",
    "WORK",
    "ArchivePosition",
    "ArmStanding",
    "Claim",
    "ClaimStatus",
    "Client",
    "Ended",
    "Ending",
    "Event",
    "EventKind",
    "FarmView",
    "Handed",
    "Held",
    "Judged",
    "JudgingProgress",
    "JudgingQueue",
    "Kept",
    "Ledger",
    "Limits",
    "Line",
    "Load",
    "ModelLimits",
    "ModelLoad",
    "Money",
    "OpenRun",
    "Progress",
    "Reaped",
    "Repeated",
    "Restored",
    "Rights",
    "Shape",
    "Spent",
    "Standing",
    "Terms",
    "Throttle",
    "beat",
    "check_persistence",
    "check_server",
    "clock_offset_s",
    "close_run",
    "commit_result",
    "connect",
    "ended_of",
    "lets_anyone_in",
    "line_to",
    "live_slots",
    "load_limits",
    "loads",
    "note_answers",
    "note_refusal",
    "open_runs",
    "refusal_of",
    "rights_of",
    "room",
    "standing_of",
    "terms_of",
    "view_farm",
    "waiting_messages",
]
