"""What one look at Redis tells of the whole farm, for whoever watches it: reads a few times, changes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalfarm.contracts.run import QueueName
from evalfarm.contracts.tally import ArmTally, AttemptCounts
from evalfarm.contracts.verdict import VERDICTS
from evalfarm.runstate.budget import JUDGES, NO_JUDGES, Judged, Money, judged_of, money_of
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered
from evalfarm.runstate.farm import OPEN_RUNS, slots_of_workers
from evalfarm.runstate.limits import Limits
from evalfarm.runstate.throttle import control_key

_SLOT_S = 10  # as prelude.lua keeps the pace
_PLACES = ("rq", "sent", "fl")


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is not sealed. planned = closed + waiting + in_flight."""

    run: str
    queue: QueueName
    planned: int
    closed: int
    in_flight: int  #: handed out or leased
    waiting: int
    last_closed_s: float  #: when a trial was last closed, to ten seconds; none yet: when the run was opened; epoch
    attempts: AttemptCounts
    counts: Mapping[bytes, bytes]  #: of the ledger, for `arm_tally` and `money`
    budget: bytes | None
    judges: Judged = NO_JUDGES

    @property
    def money(self) -> Money:
        """What the run has spent and holds, without telling its arms apart."""
        return money_of(self.counts, self.budget, self.judges, exhausted=False, arms=0)

    def arm_tally(self, place: int, names: Mapping[str, str]) -> ArmTally:
        """What the ledger counts of the arm at this place of the plan; `names` are its model, harness, variant."""
        told = _of_arm(self.counts, place)
        return ArmTally.model_validate(
            {
                **names,
                "closed": {what: count for what, count in told.items() if what in VERDICTS},
                "failures": {
                    what.removeprefix("infra:"): count for what, count in told.items() if what.startswith("infra:")
                },
                "known_usd": int(self.counts.get(b"cost:%d" % place, 0)) / 1e6,
            }
        )


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """One model at one moment, over all runs."""

    in_flight: int  #: trials under a cap; 0 for a model without one
    cap: int | None  #: as a 429 lowered it; None: it is the configured one
    paused_s: float  #: seconds for which nobody asks for it


@dataclass(frozen=True, slots=True)
class FarmView:
    """The farm at one moment, by the server's clock."""

    workers: int
    slots: int
    runs: tuple[OpenRun, ...]
    waiting_messages: Mapping[str, int]  #: by the queue's name in Redis
    models: Mapping[str, ModelLoad]
    memory_used_bytes: int
    memory_most_bytes: int  #: what the server may use; the machine's memory where nothing is configured


def view_farm(client: Client, limits: Limits, queues: Iterable[str]) -> FarmView:
    """One look. The models are those that the limits name. Raises BrokerUnavailable."""
    names, models = list(queues), list(limits.models)
    workers = {name: known for name, known in slots_of_workers(client).items() if known is not None}
    with answered(client):
        memory: Any = client.info("memory")
        with client.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.smembers(OPEN_RUNS)
            for name in names:
                pipe.llen(name)
            for model in models:
                pipe.hmget(control_key(model), ["paused", "cap"])
            (seconds, micros), runs, *rest = pipe.execute()
    now_ms = seconds * 1000 + micros / 1000
    opened = sorted(run.decode() for run in runs)
    in_flight = _in_flight(client, models, now_ms)
    return FarmView(
        workers=len(workers),
        slots=sum(workers.values()),
        runs=tuple(view for run in opened if (view := view_run(client, run)) is not None),
        waiting_messages=dict(zip(names, rest[: len(names)], strict=True)),
        models={
            model: _load(control, in_flight[model], now_ms)
            for model, control in zip(models, rest[len(names) :], strict=True)
        },
        memory_used_bytes=int(memory["used_memory"]),
        memory_most_bytes=int(memory.get("maxmemory") or memory.get("total_system_memory") or 0),
    )


def view_run(client: Client, run: str) -> OpenRun | None:
    """One run; None: Redis holds no state of it. Raises BrokerUnavailable."""
    key = f"f:{{{run}}}"
    with answered(client), client.pipeline(transaction=True) as pipe:
        pipe.hgetall(f"{key}:cnt")
        pipe.hgetall(f"{key}:meta")
        pipe.hkeys(f"{key}:pace")
        for place in _PLACES:
            pipe.zcard(f"{key}:{place}")
        pipe.hmget(f"{key}:judges", JUDGES)
        counts, meta, pace, again, sent, leased, judges = pipe.execute()
    if b"size" not in meta:
        return None
    planned = int(meta[b"size"])
    closed = sum(int(n) for name, n in counts.items() if name.decode().partition("|")[2] in VERDICTS)
    return OpenRun(
        run=run,
        queue="nightly" if meta.get(b"queue") == b"nightly" else "interactive",
        planned=planned,
        closed=closed,
        in_flight=sent + leased,
        waiting=max(again, planned - closed - sent - leased),
        last_closed_s=max([int(meta[b"created"]) / 1000, *(int(slot) * _SLOT_S for slot in pace)]),
        attempts=_attempts(counts),
        counts=counts,
        budget=meta.get(b"budget"),
        judges=judged_of(judges),
    )


def _in_flight(client: Client, models: list[str], now_ms: float) -> dict[str, int]:
    with answered(client), client.pipeline(transaction=False) as pipe:
        for model in models:
            pipe.zcount(f"f:m:{model}:sem", now_ms, "+inf")
        return dict(zip(models, pipe.execute(), strict=True))


def _load(control: list[bytes | None], in_flight: int, now_ms: float) -> ModelLoad:
    paused, cap = control
    return ModelLoad(
        in_flight=in_flight,
        cap=None if cap is None else int(cap),
        paused_s=max(0.0, (float(paused or 0) - now_ms) / 1000),
    )


def _attempts(counts: Mapping[bytes, bytes]) -> AttemptCounts:
    asides = ("lost", "returned", "late", "superseded", "redispatched")
    return AttemptCounts(
        started=int(counts.get(b"attempts", 0)), **{name: int(counts.get(name.encode(), 0)) for name in asides}
    )


def _of_arm(counts: Mapping[bytes, bytes], place: int) -> dict[str, int]:
    parts = ((name.decode().partition("|"), int(count)) for name, count in counts.items())
    return {what: count for (arm, bar, what), count in parts if bar and arm == str(place)}
