"""What is known of the farm as a whole: the runs that are not sealed, and the workers that beat."""

import redis

from evalfarm.runstate.connection import answered

OPEN_RUNS = "f:open"
_WORKERS = "f:workers"


def open_runs(client: redis.Redis) -> list[str]:
    """The runs that were created and not yet closed, in order of their names."""
    with answered(client):
        return sorted(_text(run) for run in client.smembers(OPEN_RUNS))


def close_run(client: redis.Redis, run: str) -> None:
    """Takes a sealed run off the list of open ones; its state stays."""
    with answered(client):
        client.srem(OPEN_RUNS, run)


def beat(client: redis.Redis, worker: str, slots: int, ttl_s: float) -> None:
    """Says that a worker lives and runs `slots` trials at a time; forgotten `ttl_s` seconds from now."""
    with answered(client), client.pipeline(transaction=True) as pipe:
        pipe.sadd(_WORKERS, worker)
        pipe.set(_beat_key(worker), slots, px=round(ttl_s * 1000))
        pipe.execute()


def live_slots(client: redis.Redis) -> int:
    """The slots of all workers whose last beat still holds."""
    with answered(client):
        workers = [_text(worker) for worker in client.smembers(_WORKERS)]
        if not workers:
            return 0
        slots = client.mget([_beat_key(worker) for worker in workers])
        gone = [worker for worker, known in zip(workers, slots, strict=True) if known is None]
        if gone:  # should one beat just now, it is back on the list with its next beat
            client.srem(_WORKERS, *gone)
        return sum(int(known) for known in slots if known is not None)


def _beat_key(worker: str) -> str:
    return f"f:w:{worker}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
