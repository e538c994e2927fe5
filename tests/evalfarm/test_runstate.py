import socketserver
import threading
from collections import Counter
from pathlib import Path

import pytest
import redis

from evalfarm.contracts.verdict import Verdict
from evalfarm.embedded import embedded_redis
from evalfarm.errors import BrokerUnavailable, UnknownName, UsageError
from evalfarm.runstate import (
    ArchivePosition,
    Claim,
    Ended,
    Ending,
    Event,
    Held,
    Ledger,
    Progress,
    Reaped,
    beat,
    check_server,
    close_run,
    connect,
    live_slots,
    open_runs,
)

LEASE_S = 60.0
FRESH = Progress(
    planned=4,
    closed=0,
    passed=0,
    failed=0,
    inconclusive=0,
    infra_failed=0,
    in_flight=0,
    waiting=0,
    attempts=0,
    lost=0,
    returned=0,
    late=0,
    superseded=0,
    redispatched=0,
    cancelled=False,
    rebuilding=False,
)


def changed(**fields: int | bool) -> Progress:
    return Progress(**{**{name: getattr(FRESH, name) for name in Progress.__slots__}, **fields})


@pytest.fixture
def ledger(client: redis.Redis) -> Ledger:
    ledger = Ledger(client, "night-1")
    ledger.create(4, "sha256:plan")
    return ledger


def end(
    ledger: Ledger,
    index: int,
    attempt: int,
    verdict: Verdict = "passed",
    *,
    final: bool | None = None,
    backoff_s: float = 0,
) -> Ending:
    return ledger.end(
        Ended(
            index,
            attempt,
            verdict=verdict,
            row=f"{index}/{attempt}".encode(),
            final=verdict != "infra_failed" if final is None else final,
            backoff_s=backoff_s,
            max_attempts=2,
        )
    )


def reap(ledger: Ledger) -> Reaped:
    return ledger.reap(ledger.overdue(100, LEASE_S), max_attempts=2, backoff_s=0)


def let_deadline_pass(client: redis.Redis, index: int) -> None:
    for place in ("sent", "fl"):
        client.zadd(f"f:{{night-1}}:{place}", {str(index): 0}, xx=True)


def let_backoff_pass(client: redis.Redis, index: int) -> None:
    client.zadd("f:{night-1}:rq", {str(index): 0}, xx=True)


def kinds(ledger: Ledger) -> list[tuple[str, int, int, bytes | None]]:
    return [(event.kind, event.index, event.attempt, event.row) for event in ledger.events("0", 100)]


def test_a_run_is_created_once_and_only_with_one_plan(client: redis.Redis) -> None:
    ledger = Ledger(client, "night-1")
    assert [ledger.create(4, "sha256:a"), ledger.create(4, "sha256:a")] == [True, False]
    with pytest.raises(UsageError) as raised:
        ledger.create(5, "sha256:b")
    assert str(raised.value) == (
        "run 'night-1' exists with another plan\n\n"
        "hint: choose another name, or resume the run with the suite and options it was started with"
    )
    assert ledger.progress() == FRESH


def test_creating_it_again_changes_no_byte_of_a_running_run(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(4, 60)
    ledger.claim(3, "me", 60)
    end(ledger, 3, 1)
    before = {key: client.dump(key) for key in client.scan_iter()}
    assert not ledger.create(4, "sha256:plan")
    assert {key: client.dump(key) for key in client.scan_iter()} == before


def test_trials_are_handed_out_in_order_and_once(ledger: Ledger) -> None:
    assert [ledger.take(3, 60), ledger.take(3, 60), ledger.take(3, 60)] == [[0, 1, 2], [3], []]
    assert ledger.progress() == changed(in_flight=4)


@pytest.mark.parametrize("want", [0, -1])
def test_taking_none_gives_none(ledger: Ledger, client: redis.Redis, want: int) -> None:
    ledger.take(1, 60)
    let_deadline_pass(client, 0)
    reap(ledger)
    assert ledger.take(want, 60) == []


def test_a_trial_has_one_owner_until_it_is_closed(ledger: Ledger) -> None:
    ledger.take(1, 60)
    assert ledger.claim(0, "me", 60) == Claim("ok", 1)
    assert ledger.claim(0, "me", 60) == Claim("ok", 1)
    assert ledger.claim(0, "you", 60) == Claim("held", 1)
    assert end(ledger, 0, 1) == "counted"
    assert ledger.claim(0, "you", 60) == Claim("closed", 0)
    assert ledger.progress() == changed(closed=1, passed=1, attempts=1)


def test_a_trial_that_is_not_handed_out_cannot_be_claimed(ledger: Ledger) -> None:
    assert ledger.claim(0, "me", 60) == Claim("held", 0)
    ledger.take(1, 60)
    ledger.claim(0, "me", 60)
    end(ledger, 0, 1, "infra_failed", backoff_s=60)
    assert ledger.claim(0, "me", 60) == Claim("held", 0)
    assert ledger.progress() == changed(attempts=1, waiting=1)


@pytest.mark.parametrize("index", [-1, 4, 10**9])
def test_a_message_for_no_trial_of_the_plan_finds_it_closed(ledger: Ledger, index: int) -> None:
    assert ledger.claim(index, "me", 60) == Claim("closed", 0)


def test_every_verdict_is_counted_and_its_row_rides_on_the_event(ledger: Ledger) -> None:
    verdicts: list[Verdict] = ["passed", "failed", "inconclusive", "infra_failed"]
    for index, verdict in zip(ledger.take(4, 60), verdicts, strict=True):
        ledger.claim(index, "me", 60)
        end(ledger, index, 1, verdict, final=True)
    assert ledger.progress() == changed(closed=4, passed=1, failed=1, inconclusive=1, infra_failed=1, attempts=4)
    assert kinds(ledger) == [
        ("counted", 0, 1, b"0/1"),
        ("counted", 1, 1, b"1/1"),
        ("counted", 2, 1, b"2/1"),
        ("infra_failed", 3, 1, b"3/1"),
    ]


@pytest.mark.parametrize(("verdict", "final"), [("not_run", True), ("passed", False), ("inconclusive", False)])
def test_only_an_infrastructure_failure_may_be_tried_again(ledger: Ledger, verdict: Verdict, final: bool) -> None:
    with pytest.raises(ValueError, match=f"an attempt cannot end as {verdict}, final={final}"):
        end(ledger, 0, 1, verdict, final=final)


def test_an_infrastructure_failure_waits_out_its_backoff_and_is_bounded(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(4, 60)
    ledger.claim(2, "me", 60)
    assert end(ledger, 2, 1, "infra_failed", backoff_s=60) == "retry"
    assert ledger.take(4, 60) == []
    let_backoff_pass(client, 2)
    assert ledger.take(4, 60) == [2]
    assert ledger.claim(2, "me again", 60) == Claim("ok", 2)
    assert [end(ledger, 2, 2, "infra_failed"), end(ledger, 2, 2, "infra_failed")] == ["infra_failed", "infra_failed"]
    assert end(ledger, 2, 1, "infra_failed") == "retry"
    assert ledger.progress() == changed(closed=1, infra_failed=1, in_flight=3, attempts=2)
    assert kinds(ledger) == [("retry", 2, 1, None), ("infra_failed", 2, 2, b"2/2")]


def test_a_replayed_infrastructure_failure_does_not_disturb_the_next_attempt(ledger: Ledger) -> None:
    ledger.take(1, 60)
    ledger.claim(0, "me", 60)
    assert end(ledger, 0, 1, "infra_failed") == "retry"
    ledger.take(1, 60)
    assert end(ledger, 0, 1, "infra_failed") == "retry"
    assert ledger.progress() == changed(in_flight=1, attempts=1)
    assert ledger.claim(0, "you", 60) == Claim("ok", 2)
    assert end(ledger, 0, 1, "infra_failed") == "retry"
    assert ledger.renew(0, 2, "you", 60)
    assert end(ledger, 0, 2) == "counted"
    assert end(ledger, 0, 1, "infra_failed") == "retry"
    assert ledger.progress() == changed(closed=1, passed=1, attempts=2)


def test_a_lost_attempt_is_tried_again_and_its_return_is_superseded(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(1, 60)
    ledger.claim(0, "gone", 60)
    let_deadline_pass(client, 0)
    assert reap(ledger) == Reaped(lost=1, closed=0)
    assert ledger.take(1, 60) == [0]
    assert ledger.claim(0, "next", 60) == Claim("ok", 2)
    assert not ledger.renew(0, 1, "gone", 60)
    assert [end(ledger, 0, 1), end(ledger, 0, 1)] == ["superseded", "superseded"]
    assert end(ledger, 0, 2, "failed") == "counted"
    assert end(ledger, 0, 1) == "superseded"
    assert ledger.progress() == changed(closed=1, failed=1, attempts=2, lost=1, returned=1, superseded=1)
    assert kinds(ledger) == [("lost", 0, 1, None), ("superseded", 0, 1, None), ("counted", 0, 2, b"0/2")]


@pytest.mark.parametrize("taken_again", [False, True])
def test_a_lost_attempt_counts_when_it_returns_before_a_newer_one_started(
    ledger: Ledger, client: redis.Redis, taken_again: bool
) -> None:
    ledger.take(1, 60)
    ledger.claim(0, "slow", 60)
    let_deadline_pass(client, 0)
    reap(ledger)
    if taken_again:
        ledger.take(1, 60)
    assert [end(ledger, 0, 1), end(ledger, 0, 1)] == ["counted", "counted"]
    assert ledger.claim(0, "next", 60) == Claim("closed", 0)
    assert ledger.progress() == changed(closed=1, passed=1, attempts=1, lost=1, returned=1)


def test_the_last_attempt_lost_closes_the_trial_without_a_row(ledger: Ledger, client: redis.Redis) -> None:
    for attempt in (1, 2):
        ledger.take(1, 60)
        assert ledger.claim(0, f"worker {attempt}", 60) == Claim("ok", attempt)
        let_deadline_pass(client, 0)
        assert reap(ledger) == Reaped(lost=1, closed=attempt - 1)
    assert [end(ledger, 0, 2), end(ledger, 0, 2), end(ledger, 0, 1)] == ["late", "late", "late"]
    assert ledger.progress() == changed(closed=1, infra_failed=1, attempts=2, lost=2, returned=2, late=2)
    assert kinds(ledger) == [
        ("lost", 0, 1, None),
        ("lost", 0, 2, None),
        ("infra_failed", 0, 2, None),
        ("late", 0, 2, None),
        ("late", 0, 1, None),
    ]


def test_of_trials_that_are_handed_out_again_those_whose_worker_was_lost_are_known(
    ledger: Ledger, client: redis.Redis
) -> None:
    ledger.take(4, 60)
    for index in (0, 1):
        ledger.claim(index, "worker", 60)
    let_deadline_pass(client, 0)
    reap(ledger)
    end(ledger, 1, 1, "infra_failed")
    assert ledger.take(4, 60) == [0, 1]
    assert ledger.lost_before([0, 1, 2, 3]) == {0}
    assert ledger.lost_before([2, 3]) == ledger.lost_before([]) == set()


def test_a_message_lost_on_its_way_costs_no_attempt(ledger: Ledger, client: redis.Redis) -> None:
    assert ledger.take(1, 60) == [0]
    assert ledger.take(1, -5) == [1]  # its time was up five seconds ago
    assert [ledger.resend(9, 60), ledger.resend(9, 0), ledger.resend(9, 0)] == [0, 1, 0]
    assert ledger.progress() == changed(in_flight=1, waiting=1, redispatched=1)
    assert ledger.take(1, 60) == [1]
    assert ledger.claim(1, "me", 60) == Claim("ok", 1)


def test_a_renewed_lease_is_not_reaped(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(1, 60)
    ledger.claim(0, "me", 0)
    assert ledger.renew(0, 1, "me", 60)
    assert reap(ledger) == Reaped(lost=0, closed=0)
    assert not ledger.renew(0, 1, "you", 60)
    assert not ledger.renew(0, 2, "me", 60)


def test_reaping_stops_at_its_limit(ledger: Ledger) -> None:
    ledger.take(4, 60)
    for index in range(4):
        ledger.claim(index, "me", 0)
    assert ledger.overdue(3, LEASE_S) == [Held(0, 1), Held(1, 1), Held(2, 1)]


def test_a_cancelled_run_hands_out_nothing_but_counts_what_was_at_work(ledger: Ledger) -> None:
    ledger.take(3, 60)
    ledger.claim(0, "me", 60)
    ledger.cancel()
    ledger.cancel()
    assert ledger.progress() == changed(in_flight=1, waiting=2, attempts=1, cancelled=True)
    assert ledger.take(4, 60) == []
    assert ledger.claim(1, "you", 60) == Claim("cancelled", 0)
    assert not ledger.renew(0, 1, "me", 60)
    assert end(ledger, 0, 1) == "counted"
    assert ledger.progress() == changed(closed=1, passed=1, waiting=2, attempts=1, cancelled=True)


def test_events_are_read_in_pages_and_dropped_once_archived(ledger: Ledger) -> None:
    for index in ledger.take(3, 60):
        ledger.claim(index, "me", 60)
        end(ledger, index, 1)
    first, second = ledger.events("0", 2)
    assert first == Event(id=first.id, kind="counted", index=0, attempt=1, row=b"0/1")
    assert [event.index for event in ledger.events(second.id, 2)] == [2]
    ledger.trim(second.id)
    assert [event.index for event in ledger.events("0", 9)] == [1, 2]


def test_of_two_archivers_one_notes_the_segment(ledger: Ledger) -> None:
    assert ledger.archive_position() == ArchivePosition(segments=0, archived_id="0")
    before = ledger.archive_position()
    assert ledger.advance_archive(before, ArchivePosition(1, "17-0"))
    assert not ledger.advance_archive(before, ArchivePosition(1, "18-0"))
    assert ledger.archive_position() == ArchivePosition(segments=1, archived_id="17-0")


def test_a_deleted_run_leaves_a_note_and_stays_deleted(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(2, 60)
    ledger.claim(0, "me", 60)
    ledger.delete()
    assert ledger.take(2, 60) == []
    assert ledger.claim(0, "you", 60) == Claim("closed", 0)
    assert not ledger.renew(0, 1, "me", 60)
    assert end(ledger, 0, 1) == "superseded"
    assert reap(ledger) == Reaped(0, 0)
    assert not ledger.advance_archive(ArchivePosition(0, "0"), ArchivePosition(1, "17-0"))
    ledger.cancel()
    assert client.hgetall("f:{night-1}:meta") == {b"sealed": b"1"}  # for a day, so that nobody takes it for lost
    assert client.keys() == [b"f:{night-1}:meta"]
    with pytest.raises(UnknownName) as raised:
        ledger.progress()
    assert str(raised.value) == "run 'night-1' has no state in Redis\n\nhint: `evalfarm runs` lists the runs"


def test_open_runs_are_those_created_and_not_yet_closed(client: redis.Redis) -> None:
    for run in ("b", "a", "c"):
        Ledger(client, run).create(1, "sha256:plan")
    close_run(client, "b")
    Ledger(client, "c").delete()
    assert open_runs(client) == ["a"]


def test_runs_do_not_touch_each_other(ledger: Ledger, client: redis.Redis) -> None:
    other = Ledger(client, "night-2")
    other.create(4, "sha256:plan")
    other.take(2, 60)
    assert ledger.progress() == FRESH


def test_slots_are_counted_while_their_worker_beats(client: redis.Redis) -> None:
    assert live_slots(client) == 0
    beat(client, "one", slots=4, ttl_s=60)
    beat(client, "two", slots=2, ttl_s=60)
    beat(client, "one", slots=3, ttl_s=60)
    assert live_slots(client) == 5
    client.delete("f:w:two")  # as its time to live does
    assert live_slots(client) == 3
    assert client.smembers("f:workers") == {b"one"}
    assert 0 < client.pttl("f:w:one") <= 60_000


def test_a_million_trials_with_five_thousand_in_flight_fit_in_twenty_megabytes(client: redis.Redis) -> None:
    ledger = Ledger(client, "large")
    ledger.create(1_000_000, "sha256:plan")
    for index in ledger.take(5000, 60):
        ledger.claim(index, "a-token-of-32-characters-as-uuid", 60)
    used = {key: client.memory_usage(key, samples=0) or 0 for key in client.keys("f:{large}:*")}
    assert sum(used.values()) <= 20_000_000, used
    assert used[b"f:{large}:win"] <= 1_010_000


def test_the_scripts_survive_a_server_that_forgot_them(ledger: Ledger, client: redis.Redis) -> None:
    client.script_flush()
    assert ledger.take(1, 60) == [0]


def test_a_good_server_passes_the_check(client: redis.Redis) -> None:
    check_server(client)


@pytest.mark.slow
def test_a_server_that_may_evict_is_refused(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, connect(url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(BrokerUnavailable) as raised:
            check_server(client)
    assert str(raised.value) == (
        f"Redis at {url} may evict run state: its maxmemory-policy is allkeys-lru\n\n"
        "hint: set `maxmemory-policy noeviction` in its configuration, or `CONFIG SET maxmemory-policy noeviction`"
    )


@pytest.mark.parametrize("told", [b"redis_version:5.0.14", b"redis_version:6.0.16"])
def test_a_server_that_is_too_old_is_refused(tmp_path: Path, told: bytes) -> None:
    """By a server that says so of itself: an old one cannot be had here."""
    path = tmp_path / "old.sock"

    class Old(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while words := self.rfile.readline():
                said = [self.rfile.readline() and self.rfile.readline() for _ in range(int(words[1:]))]
                command = said[0].strip().upper()
                if command == b"INFO":
                    self.wfile.write(b"$%d\r\n%s\r\n" % (len(told), told))
                else:
                    self.wfile.write(b"+PONG\r\n" if command == b"PING" else b"+OK\r\n")

    with socketserver.ThreadingUnixStreamServer(str(path), Old) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            with connect(f"unix://{path}") as client, pytest.raises(BrokerUnavailable) as raised:
                check_server(client)
        finally:
            server.shutdown()
            serving.join()
    version = told.partition(b":")[2].decode()
    assert str(raised.value) == (
        f"Redis at unix://{path} is version {version}; evalfarm needs 6.2 or later\n\n"
        "hint: install Redis 6.2 or later, or any Valkey"
    )


def test_a_server_out_of_reach_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"unix://me:secret@{tmp_path}/none.sock?password=secret"
    with connect(url) as client, pytest.raises(BrokerUnavailable) as raised:
        Ledger(client, "night-1").take(1, 60)
    assert str(raised.value) == (
        f"cannot reach Redis at unix://{tmp_path}/none.sock: "
        f"Error 2 connecting to {tmp_path}/none.sock. No such file or directory.\n\n"
        "hint: is it running, and is EVALFARM_REDIS_URL right? Unset it to use the embedded server"
    )


def test_a_refused_command_is_an_infrastructure_failure(ledger: Ledger, client: redis.Redis) -> None:
    client.set("f:{night-1}:cnt", "no hash")
    with pytest.raises(BrokerUnavailable, match=r"refused a command: .*WRONGTYPE"):
        ledger.progress()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://me:secret@host/1?x=secret", "amqp://host/1"),
        ("not a url", "not a url"),
        ("redis://me:secret@host/1?sockettimeout=3", "redis://host/1"),
        ("rediss://me:secret@host/1?ssl_cert_reqs=maybe", "rediss://host/1"),
        ("unix:///a.sock?password=secret&port_of_call=1", "unix:///a.sock"),
    ],
)
def test_a_url_of_another_kind_or_with_unknown_options_shows_no_password(url: str, shown: str) -> None:
    with pytest.raises(UsageError) as raised:
        connect(url)
    assert raised.value.message.startswith(f"{shown!r} is no address of a Redis server: ")
    assert "secret" not in raised.value.message
    assert raised.value.hint == "EVALFARM_REDIS_URL is redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH"


def test_claims_from_many_threads_give_each_trial_one_owner(client: redis.Redis) -> None:
    ledger = Ledger(client, "night-1")
    ledger.create(100, "sha256:plan")
    trials = ledger.take(100, 60)
    owned: Counter[int] = Counter()

    def claim_all(name: str) -> None:
        owned.update(index for index in trials if ledger.claim(index, name, 60).status == "ok")

    threads = [threading.Thread(target=claim_all, args=(f"worker {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert owned == Counter(range(100))


def test_an_end_and_the_next_claim_are_each_refused_by_themselves(ledger: Ledger, client: redis.Redis) -> None:
    ledger.take(2, LEASE_S)
    ledger.claim(0, "a", LEASE_S)
    ended = Ended(0, 1, verdict="passed", row=b"{}", final=True, backoff_s=0, max_attempts=2)
    assert ledger.end_and_claim(ended, 3, "b", LEASE_S) == ("counted", Claim("held", 0))
    assert ledger.end_and_claim(ended, 1, "b", LEASE_S) == ("counted", Claim("ok", 1))
    client.flushall()
    assert ledger.end_and_claim(ended, 1, "b", LEASE_S) == ("unknown", Claim("closed", 0))
