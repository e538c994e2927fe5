"""What is known of the farm as a whole: the runs that are not sealed, and the workers that beat."""

from dataclasses import dataclass

from evalfarm.contracts.run import QueueName
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered

OPEN_RUNS = "f:open"
_WORKERS = "f:workers"


def open_runs(client: Client) -> list[str]:
    """The runs that were created and not yet closed, in order of their names."""
    with answered(client):
        return sorted(_text(run) for run in client.smembers(OPEN_RUNS))


@dataclass(frozen=True, slots=True)
class Load:
    """What one open run asks of the farm at a moment."""

    run: str
    queue: QueueName
    open: int  #: trials that could be handed out now or later: fresh or waiting; none of a run that was cancelled
    handed_out: int  #: trials in messages that nobody claimed yet
    at_work: int  #: leased trials
    together: int  #: trials in one message, at most


def loads(client: Client) -> list[Load]:
    """The load of every open run, in order of their names."""
    runs = open_runs(client)
    with answered(client), client.pipeline(transaction=False) as pipe:
        for run in runs:
            key = f"f:{{{run}}}"
            pipe.hmget(f"{key}:meta", ["size", "cursor", "queue", "together", "cancelled"])
            for place in ("rq", "sent", "fl"):
                pipe.zcard(f"{key}:{place}")
        found = pipe.execute()
    return [_load(run, *found[4 * at : 4 * at + 4]) for at, run in enumerate(runs)]


def _load(run: str, meta: list[bytes | None], waiting: int, handed_out: int, at_work: int) -> Load:
    size, cursor, queue, together, cancelled = meta
    return Load(
        run=run,
        queue="nightly" if queue == b"nightly" else "interactive",
        open=0 if cancelled else int(size or 0) - int(cursor or 0) + waiting,
        handed_out=handed_out,
        at_work=at_work,
        together=int(together or 1),
    )


def close_run(client: Client, run: str) -> None:
    """Takes a sealed run off the list of open ones; its state stays."""
    with answered(client):
        client.srem(OPEN_RUNS, run)


def beat(client: Client, worker: str, slots: int, ttl_s: float) -> None:
    """Says that a worker lives and runs `slots` trials at a time; forgotten `ttl_s` seconds from now."""
    with answered(client), client.pipeline(transaction=True) as pipe:
        pipe.sadd(_WORKERS, worker)
        pipe.set(_beat_key(worker), slots, px=round(ttl_s * 1000))
        pipe.execute()


def live_slots(client: Client) -> int:
    """The slots of all workers whose last beat still holds; those that are gone are forgotten."""
    slots = slots_of_workers(client)
    gone = [worker for worker, known in slots.items() if known is None]
    if gone:  # should one beat just now, it is back on the list with its next beat
        with answered(client):
            client.srem(_WORKERS, *gone)
    return sum(known for known in slots.values() if known is not None)


def slots_of_workers(client: Client) -> dict[str, int | None]:
    """Every worker that is remembered, with its slots; None: its last beat holds no more. Changes nothing."""
    with answered(client):
        workers = [_text(worker) for worker in client.smembers(_WORKERS)]
        slots = client.mget([_beat_key(worker) for worker in workers]) if workers else []
    return {worker: None if known is None else int(known) for worker, known in zip(workers, slots, strict=True)}


def _beat_key(worker: str) -> str:
    return f"f:w:{worker}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
