"""Celery as evalfarm uses it: one application, a few queues, messages that are hints.

The ledger (`evalfarm.runstate`) decides what counts, so a message that is lost, doubled, late or out of
order costs time and nothing else. The settings follow from that.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import celery
from kombu.exceptions import KombuError

from evalfarm.contracts.run import QueueName
from evalfarm.errors import BrokerUnavailable

App = celery.Celery
"""What `make_app` gives. Other rooms hold it and pass it on."""

QUEUES: dict[QueueName, str] = {"interactive": "trials.interactive", "nightly": "trials.nightly"}
"""The queues of trials to run."""

RUN_TRIALS = "evalfarm.run_trials"
"""The task that runs them: (run, [index, …])."""

SIDE_BY_SIDE = 16
"""Trials with a model, of one message, that a worker process has at work at a time."""

JUDGING = "judging"
"""The queue of answers for a run's judges."""

JUDGE_ANSWERS = "evalfarm.judge_answers"
"""The task that has them judged: (run, [[item, attempt], …])."""

SCHEDULES = "schedules"
"""The queue of hints that a schedule may be due."""

TEND_SCHEDULES = "evalfarm.tend_schedules"
"""The task that looks at every schedule: no arguments."""

ALL_QUEUES = (QUEUES["interactive"], JUDGING, QUEUES["nightly"])
"""In the order in which a worker takes from them."""

_JUDGED_TOGETHER = 8  # all that they do is wait for a judge, so one process has room for them
_JUDGE_LIMIT_S = 720.0  # a judge has ten minutes for an answer; beyond it the process is killed

_TRANSPORT = {
    # The shortest one in the farm wins, so all say the same. Early acks leave little for it to do.
    "visibility_timeout": 3600,
    # Strictly in the order of the worker's list; by default the queues take turns.
    "queue_order_strategy": "priority",
    # Without these a half-open connection leaves a worker deaf, and a publisher waiting for ever.
    "socket_keepalive": True,
    "socket_timeout": 30,
    "socket_connect_timeout": 5,
    "health_check_interval": 25,
    # How long one look into the queues lasts: a worker that is told to stop waits for the end of it, 1 s by default.
    "polling_interval": 0.2,
    "client_name": "evalfarm",
    # For publishers; a worker reconnects by broker_connection_max_retries.
    "max_retries": 2,
    "interval_start": 0.1,
    "interval_step": 0.2,
}

_BATCH = 500  # messages per round trip: twice the rate of single ones, and a lost batch is soon sent again


def make_app(redis_url: str) -> celery.Celery:
    """The Celery application over `redis://`, `rediss://` or `unix:///path`; connects at first use."""
    app = celery.Celery("evalfarm", set_as_current=False)
    app.conf.update(
        broker_url=kombu_url(redis_url),
        # Which trial ended how is the ledger's; a result per task would be a second, weaker truth, at ~300 B each.
        result_backend=None,
        task_ignore_result=True,
        # Whoever can write to the queue must not be able to make a worker unpickle something.
        accept_content=["json"],
        task_serializer="json",
        # Early: Redis redelivers unacknowledged messages after any broken connection, while the first copy
        # still runs. A message lost with its worker is the reaper's to send again: one way to recover, not two.
        task_acks_late=False,
        # With early acks even a multiplier of 1 hoards a message per process behind a long trial.
        worker_disable_prefetch=True,
        worker_prefetch_multiplier=1,
        # A full or demoted server answers with an error on the channel; by default that ends the worker.
        broker_channel_error_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # A publish that finds no broker fails at once: the ledger hands the same trials out again.
        task_publish_retry=False,
        # Progress is read from the ledger; an event per task would be traffic that nobody reads.
        worker_send_task_events=False,
        task_send_sent_event=False,
        # The command that starts the worker sets its logging up.
        worker_hijack_root_logger=False,
        # Against slow leaks only; a process that has grown too big in one trial is not stopped by this.
        worker_max_tasks_per_child=200,
        task_queues={name: {"exchange": name, "routing_key": name} for name in (*ALL_QUEUES, SCHEDULES)},
        task_default_queue=QUEUES["interactive"],
        # A mistyped queue is an error, not a new queue without a worker.
        task_create_missing_queues=False,
        broker_transport_options=_TRANSPORT,
    )
    return app


def work(
    app: celery.Celery, name: str, queues: Iterable[str], *, slots: int | None = None, pool: str | None = None
) -> None:
    """Be a worker of this name until told to stop, with `slots` processes, or in Celery's `pool` of another kind.

    Without Celery's command line, which takes a tenth of a second to import.
    """
    app.Worker(
        hostname=name,
        queues=list(queues),
        concurrency=slots,
        pool_cls=pool,
        loglevel=logging.WARNING,
        # Traffic between workers that nobody here listens to.
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    ).start()


def formats(app: celery.Celery) -> tuple[str, ...]:
    """The formats that this application takes of others and sends itself, as in `json`, each once."""
    return tuple(sorted({*app.conf.accept_content, app.conf.task_serializer}))


def format_of(message: bytes) -> str:
    """The format that a message says it is in, as it lies in Redis: a content type, as in `application/json`.

    Of what is no message: `unreadable`.
    """
    try:
        return str(json.loads(message)["content-type"])
    except (ValueError, LookupError, TypeError):
        return "unreadable"


def kombu_url(redis_url: str) -> str:
    """The same server in kombu's notation: `redis+socket://` for a unix socket, TLS certificates checked."""
    parts = urlsplit(redis_url)
    query = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        user, password = parts.username or "", parts.password or quote(query.get("password", ""), safe="")
        login = f"{user}:{password}@" if user or password else ""
        return f"redis+socket://{login}{parts.path}?virtual_host={query.get('db', '0')}"
    path = f"/{query.pop('db')}" if "db" in query else parts.path
    if parts.scheme == "rediss":
        query.setdefault("ssl_cert_reqs", "required")  # kombu checks no certificate unless told to
    return parts._replace(path=path, query=urlencode(query)).geturl()


def send_trials(
    app: celery.Celery,
    run: str,
    chunks: Iterable[tuple[int, ...]],
    *,
    time_limit_s: float,
    queue: QueueName = "interactive",
) -> None:
    """Publishes one message per chunk of trials, each to be killed after `time_limit_s` seconds of running.

    Raises BrokerUnavailable; some of the messages may have been sent, and all may safely be sent again.
    """
    with _reached(app), app.producer_or_acquire() as producer, producer.batch(_BATCH):
        for indices in chunks:
            app.send_task(
                RUN_TRIALS,
                args=(run, list(indices)),
                queue=QUEUES[queue],
                producer=producer,
                time_limit=time_limit_s,
                ignore_result=True,
                add_to_parent=False,  # sent from within a task, it would be remembered there
            )


def send_judgings(app: celery.Celery, run: str, handed: Sequence[tuple[int, int]]) -> None:
    """Publishes the items of a run's judging that were handed out, up to eight in one message.

    Raises BrokerUnavailable; what was not sent is handed out again when its time is up.
    """
    with _reached(app), app.producer_or_acquire() as producer, producer.batch(_BATCH):
        for start in range(0, len(handed), _JUDGED_TOGETHER):
            app.send_task(
                JUDGE_ANSWERS,
                args=(run, [list(one) for one in handed[start : start + _JUDGED_TOGETHER]]),
                queue=JUDGING,
                producer=producer,
                time_limit=_JUDGE_LIMIT_S,
                ignore_result=True,
                add_to_parent=False,
            )


def queue_depth(app: celery.Celery, queue: QueueName = "interactive") -> int:
    """The messages that wait for a worker in a queue. Raises BrokerUnavailable."""
    with _reached(app), app.connection_or_acquire() as connection:
        return int(connection.default_channel.queue_declare(queue=QUEUES[queue]).message_count)


def waiting_judgings(app: celery.Celery) -> int:
    """The messages that wait for somebody who judges. Raises BrokerUnavailable."""
    with _reached(app), app.connection_or_acquire() as connection:
        return int(connection.default_channel.queue_declare(queue=JUDGING).message_count)


@contextmanager
def _reached(app: celery.Celery) -> Iterator[None]:
    try:
        yield
    except _errors(app) as error:
        raise BrokerUnavailable(
            f"cannot reach the queue at {_address(app)}: {error.__cause__ or error}",
            hint="is Redis running, and is EVALFARM_REDIS_URL right? Unset it to use the embedded server",
        ) from error


def _errors(app: celery.Celery) -> tuple[type[Exception], ...]:
    """What a broken connection raises: kombu's own errors, and those that its transport lets through, redis-py's."""
    connection = app.connection_for_write()
    return (KombuError, OSError, *connection.connection_errors, *connection.channel_errors)


def _address(app: celery.Celery) -> str:
    """The broker's URL without user and password."""
    parts = urlsplit(app.conf.broker_url)
    scheme = "unix" if parts.scheme == "redis+socket" else parts.scheme
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
