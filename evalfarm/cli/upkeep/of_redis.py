"""What is made sure of in a deployed farm's Redis: how it is reached, by whom, what it keeps, what waits in it."""

from collections.abc import Callable, Iterator

from evalfarm.broker import ALL_QUEUES, SCHEDULES, format_of, formats, make_app
from evalfarm.cli.upkeep.findings import Finding, Missing, finding
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import (
    WORK,
    Client,
    Rights,
    check_persistence,
    check_server,
    clock_offset_s,
    connect,
    lets_anyone_in,
    line_to,
    rights_of,
    waiting_messages,
)
from evalfarm.settings import public_url

MOST_OFF_S = 5.0
"""How far a clock may be from Redis's. Machines that ask for the time are within a tenth of a second."""

_USERS = "deploy/redis/users.acl has a user for each service, and deploy/make_secrets.py gives them passwords"
_LOOKED_AT = 200
_READING = frozenset({"read the ledger", "read the queues of trials"})
_NEEDED: dict[str, frozenset[str]] = {
    "all": frozenset(WORK),
    "scheduler": frozenset(WORK),
    "beat": frozenset(WORK),
    "worker": frozenset(WORK) - {"use the queue of schedules"},
    "exporter": _READING,
}


def of_redis(url: str | None, service: str, clock: Callable[[], float]) -> Iterator[Finding]:
    """What there is to say of a deployment's Redis; where it cannot be used, that alone."""
    if url is None:
        yield Finding(
            check="redis",
            state="broken",
            found="EVALFARM_REDIS_URL is not set: what is deployed would use a server of its own",
            hint="set it, best in a file of EVALFARM_SECRETS",
        )
        return
    with connect(url) as client:
        first = finding("redis", lambda: f"{check_server(client)} ({public_url(url)})")
        yield first
        if first.state == "broken":
            return
        yield finding("connection", lambda: _connection(client))
        yield finding("durability", lambda: check_persistence(client))
        yield finding("user", lambda: judged(rights_of(client), service))
        yield finding("strangers", lambda: _strangers(client))
        yield finding("clock", lambda: check_clock(clock_offset_s(client, clock)))
        yield finding("messages", lambda: _messages(client, url, service))


def judged(rights: Rights, service: str) -> str:
    """Makes sure that a user may do what its service does, and no more. Raises BrokerUnavailable naming what."""
    needed = _NEEDED[service]
    if lacking := rights.lacking(needed):
        told = " or ".join(lacking)
        hint = (
            f"this is asked for {service!r}: name the service whose login this is, as in --deployment worker; {_USERS}"
        )
        raise BrokerUnavailable(f"the user {rights.user!r} may not {told}", hint)
    if excess := rights.excess(needed):
        raise BrokerUnavailable(f"the user {rights.user!r} may do more than it needs: {', '.join(excess)}", _USERS)
    return f"{rights.user} may do its work and nothing else that was tried"


def check_clock(offset_s: float) -> str:
    """Makes sure that this machine's clock is near Redis's. Raises BrokerUnavailable."""
    told = f"this machine's clock is {abs(offset_s):.1f} s {'ahead of' if offset_s > 0 else 'behind'} Redis's"
    if abs(offset_s) > MOST_OFF_S:
        raise BrokerUnavailable(
            told,
            "have both keep the time (chrony, systemd-timesyncd): nights begin by beat's clock, tokens end by web's, "
            "and S3 refuses whoever is 15 minutes off",
        )
    return told


def _connection(client: Client) -> str | Missing:
    line = line_to(client)
    if line.kind == "tls unchecked":
        raise BrokerUnavailable(
            f"the certificate of {line.address} is not checked, so anybody may pose as it",
            "take ssl_cert_reqs out of the address; name an authority of your own by ssl_ca_certs=/path/ca.pem",
        )
    if line.kind == "plain":
        return Missing(
            f"{line.address} is spoken to without TLS",
            "fine on one machine's or one cluster's own network; elsewhere use rediss://",
        )
    return f"{line.address} {'over TLS, its certificate checked' if line.kind == 'tls' else 'is on this machine'}"


def _strangers(client: Client) -> str:
    if lets_anyone_in(client):
        raise BrokerUnavailable("Redis lets everybody in, without a password", f"put the user `default` off; {_USERS}")
    return "nobody is let in without a password"


def _messages(client: Client, url: str, service: str) -> str:
    app = make_app(url)
    if formats(app) != ("json",):
        raise BrokerUnavailable(f"messages may be {', '.join(formats(app))}", "JSON alone is safe to take")
    queues = (*ALL_QUEUES, SCHEDULES) if "use the queue of schedules" in _NEEDED[service] else ALL_QUEUES
    looked = 0
    for queue in queues:
        for message in waiting_messages(client, queue, _LOOKED_AT):
            looked += 1
            if (told := format_of(message)) != "application/json":
                raise BrokerUnavailable(
                    f"a message in the queue {queue} is {told}, not JSON: no worker takes it, and no evalfarm sent it",
                    f"find out who writes there; {_USERS}",
                )
    return f"JSON alone is taken, and all of {looked} that wait are"
