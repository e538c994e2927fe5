"""What the user of a connection may do, found out without doing any of it.

Each command below changes nothing, whoever sends it: it has the name of the one that would, and an argument that no
server takes or a key that nobody has. A server looks at the user's rights first, so NOPERM says that it may not, and
any other answer that it may. What is refused leaves an entry in the server's ACL LOG.
"""

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from evalfarm.contracts.base import Contract
from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered

_PROBE = "evalfarm-doctor"
_NO_SCRIPT = "0" * 40

#: What a service may have to do -> a command that needs the same right.
WORK: dict[str, tuple[str, ...]] = {
    "read the ledger": ("GET", f"f:{_PROBE}"),
    "change the ledger": ("EVALSHA", _NO_SCRIPT, "1", f"f:{_PROBE}"),
    "read the queues of trials": ("LLEN", "trials.nightly"),
    "use the queues of trials": ("LREM", "trials.nightly", "1", _PROBE),
    "use the queue of judges": ("LREM", "judging", "1", _PROBE),
    "use the queue of schedules": ("LREM", "schedules", "1", _PROBE),
    "keep what Celery keeps": ("SREM", "_kombu.binding.judging", _PROBE),
}

#: What none may do -> a command that needs the same right.
HARM: dict[str, tuple[str, ...]] = {
    "FLUSHALL": ("FLUSHALL", _PROBE),
    "CONFIG SET": ("CONFIG", "SET", _PROBE, "1"),
    "CONFIG GET": ("CONFIG", "GET", _PROBE),
    "KEYS": ("KEYS", _PROBE),
    "ACL SETUSER": ("ACL", "SETUSER", _PROBE, _PROBE),
    "ACL LIST": ("ACL", "LIST"),
    "CLIENT KILL": ("CLIENT", "KILL", f"{_PROBE}:0"),
    "REPLICAOF": ("REPLICAOF", _PROBE, _PROBE),
    "SHUTDOWN": ("SHUTDOWN", _PROBE),
    "read foreign keys": ("GET", _PROBE),
    "write foreign keys": ("SET", _PROBE, "", "XX"),
    "speak on foreign channels": ("PUBLISH", _PROBE, ""),
}


class Rights(Contract):
    """What a user may do, of WORK and of HARM."""

    user: str
    work: frozenset[str]
    harm: frozenset[str]

    def lacking(self, needed: frozenset[str]) -> list[str]:
        """What it needs and may not, in the order of WORK."""
        return [name for name in WORK if name in needed - self.work]

    def excess(self, needed: frozenset[str]) -> list[str]:
        """What it may and does not need, harm first, each in its order."""
        return [name for name in HARM if name in self.harm] + [name for name in WORK if name in self.work - needed]


def rights_of(client: Client) -> Rights:
    """What the user of this connection may do. Raises BrokerUnavailable where the server does not answer."""
    user = client.connection_pool.connection_kwargs.get("username") or "default"
    with answered(client):
        work = frozenset(name for name, command in WORK.items() if _may(client, command))
        harm = frozenset(name for name, command in HARM.items() if _may(client, command))
    return Rights(user=user, work=work, harm=harm)


def lets_anyone_in(client: Client) -> bool:
    """Whether the server answers whoever reaches it, without a password. Raises BrokerUnavailable."""
    pool = client.connection_pool
    known = {name: value for name, value in pool.connection_kwargs.items() if name not in ("username", "password")}
    once = Retry(NoBackoff(), 0)  # a refusal is what is hoped for
    nobody = redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **known | {"retry": once}))
    with answered(client), nobody:
        try:
            return bool(nobody.ping())
        except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError):
            return False


def _may(client: Client, command: tuple[str, ...]) -> bool:
    try:
        client.execute_command(*command)
    except redis.exceptions.NoPermissionError:
        return False
    except redis.ResponseError:
        return True  # the server looked at what it was asked, and could do nothing with it
    return True
