"""The ledger against a plain model of it, and against a farm where everything goes wrong."""

import queue
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import redis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from evalfarm.contracts.verdict import Verdict
from evalfarm.errors import EvalFarmError
from evalfarm.runstate import Claim, Ended, Ending, Held, Ledger, Progress, Reaped, Restored, Shape, Spent, connect

SIZE = 3
ARMS = (0, 1, 0)
MOST = 2
HOUR = 3600.0
SHAPE = Shape(arms=ARMS)
CLOSING: tuple[Verdict, ...] = ("passed", "failed", "inconclusive", "infra_failed")
OFTEN_INFRA = st.one_of(st.sampled_from(CLOSING), st.just(CLOSING[-1]))
indices = st.integers(0, SIZE - 1)


@dataclass
class Trial:
    place: Literal["fresh", "waiting", "handed out", "leased", "closed"] = "fresh"
    due: bool = False  # of a waiting one
    overdue: bool = False  # of one in flight
    started: int = 0
    token: str = ""  # of a leased one, as is:
    holder: int = 0  # its attempt
    winner: int = 0  # 0 with place closed: infra_failed
    verdict: Verdict | None = None

    def move(self, place: Literal["waiting", "handed out", "leased", "closed"], *, due: bool = False) -> None:
        self.place, self.due, self.overdue, self.token, self.holder = place, due, False, "", 0


@dataclass
class Model:
    """What the ledger promises, in words a reader can check."""

    trials: list[Trial] = field(default_factory=lambda: [Trial() for _ in range(SIZE)])
    counts: Counter[str] = field(default_factory=Counter)
    past: dict[tuple[int, int], Ending] = field(default_factory=dict)
    lost: set[tuple[int, int]] = field(default_factory=set)  # attempts that ran out of their lease, not heard of since
    restored: set[int] = field(default_factory=set)  # trials whose closing Redis was only told of
    cancelled: bool = False

    def at(self, *places: str) -> list[int]:
        return [index for index, trial in enumerate(self.trials) if trial.place in places]

    def claim(self, index: int, token: str) -> Claim:
        trial = self.trials[index]
        if trial.place == "closed":
            return Claim("closed", 0)
        if self.cancelled:
            return Claim("cancelled", 0)
        if trial.place == "leased":
            return Claim("ok" if trial.token == token else "held", trial.holder)
        if trial.place != "handed out":
            return Claim("held", 0)
        self.recall(index, trial.started + 1)
        self.lease(index, trial.started, token)
        return Claim("ok", trial.started)

    def lease(self, index: int, attempt: int, token: str) -> None:
        trial = self.trials[index]
        trial.move("leased")
        trial.token, trial.holder = token, attempt

    def recall(self, index: int, attempt: int) -> None:
        trial = self.trials[index]
        if attempt > trial.started:
            between = range(trial.started + 1, attempt)
            self.counts["attempts"] += attempt - trial.started
            self.counts["lost"] += len(between)
            self.lost |= {(index, number) for number in between}
            trial.started = attempt

    def renew(self, index: int, attempt: int, token: str) -> bool:
        trial = self.trials[index]
        if self.cancelled:
            return False
        if trial.place == "leased":
            if (trial.holder, trial.token) != (attempt, token):
                return False
            trial.overdue = False
            return True
        if trial.place == "closed" or trial.started > attempt or (index, attempt) in self.past:
            return False
        self.hear_of(index, attempt)
        self.recall(index, attempt)
        self.lease(index, attempt, token)
        return True

    def hear_of(self, index: int, attempt: int) -> None:
        if (index, attempt) in self.lost:
            self.lost.remove((index, attempt))
            self.counts["returned"] += 1

    def end(self, index: int, attempt: int, verdict: Verdict, *, final: bool, due: bool) -> Ending:
        self.recall(index, attempt)
        if self.trials[index].winner == attempt:
            return "counted"
        self.hear_of(index, attempt)
        if (index, attempt) not in self.past:
            ending = self.end_first(index, attempt, verdict, final=final, due=due)
            if ending == "counted":
                return ending
            self.past[index, attempt] = ending
        return self.past[index, attempt]

    def end_first(self, index: int, attempt: int, verdict: Verdict, *, final: bool, due: bool) -> Ending:
        trial = self.trials[index]
        if trial.place == "closed" or attempt != trial.started:
            ending: Ending = "late" if trial.place == "closed" else "superseded"
            self.counts[ending] += 1
            return ending
        if verdict != "infra_failed":
            trial.winner = attempt
            return self.close(index, verdict, "counted")
        self.counts[f"{ARMS[index]}|infra:other"] += 1
        if final or (attempt >= MOST and not self.cancelled):
            return self.close(index, verdict, "infra_failed")
        if trial.place == "leased":
            trial.move("waiting", due=due)
        return "retry"

    def close(self, index: int, verdict: Verdict, ending: Ending) -> Ending:
        self.trials[index].move("closed")
        self.trials[index].verdict = verdict
        self.counts[verdict] += 1
        self.counts[f"{ARMS[index]}|{verdict}"] += 1
        return ending

    def reap(self, held: Sequence[Held]) -> Reaped:
        closed = 0
        for one in held:
            trial = self.trials[one.index]
            self.counts["lost"] += 1
            self.counts[f"{ARMS[one.index]}|infra:lost"] += 1
            self.lost.add((one.index, one.attempt))
            if one.attempt >= MOST and not self.cancelled:
                closed += 1
                self.close(one.index, "infra_failed", "infra_failed")
            else:
                trial.move("waiting", due=True)
        return Reaped(lost=len(held), closed=closed)

    def rebuild(self) -> list[Restored]:
        """Only what is closed is in object storage; nothing else of the past is known any more."""
        told = []
        self.counts, self.past, self.lost, self.cancelled = Counter(), {}, set(), False
        for index, trial in enumerate(self.trials):
            if trial.place == "closed" and trial.verdict is not None:
                attempt = trial.started = trial.winner or trial.started
                told.append(Restored(index, attempt, trial.verdict, attempt, 0.0))
                self.counts[trial.verdict] += 1
                self.counts[f"{ARMS[index]}|{trial.verdict}"] += 1
                self.counts["attempts"] += attempt
            else:
                self.trials[index] = Trial()
        self.restored = set(self.at("closed"))
        return told

    def progress(self) -> Progress:
        names = [*CLOSING, "attempts", "lost", "returned", "late", "superseded", "redispatched"]
        return Progress(
            planned=SIZE,
            closed=len(self.at("closed")),
            in_flight=len(self.at("handed out", "leased")),
            waiting=len(self.at("waiting")),
            cancelled=self.cancelled,
            rebuilding=False,
            **{name: self.counts[name] for name in names},
        )


class LedgerMachine(RuleBasedStateMachine):
    client: redis.Redis

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.ledger = Ledger(self.client, "r")
        self.ledger.create(SIZE, "sha256:plan", SHAPE)
        self.model = Model()
        self.attempts: list[tuple[int, int, str]] = []

    @rule(want=st.integers(0, 4))
    def take(self, want: int) -> None:
        due = {index for index, trial in enumerate(self.model.trials) if trial.due}
        fresh = self.model.at("fresh")
        taken = self.ledger.take(want, HOUR)
        if self.model.cancelled:
            assert taken == []
            return
        retries = min(want, len(due))
        assert len(set(taken[:retries]) & due) == retries
        assert taken[retries:] == fresh[: want - retries]
        for index in taken:
            self.model.trials[index].move("handed out")

    @rule(index=indices, token=st.sampled_from("ab"))
    def claim(self, index: int, token: str) -> None:
        answer = self.ledger.claim(index, token, HOUR)
        assert answer == self.model.claim(index, token)
        if answer.status == "ok":
            self.attempts.append((index, answer.attempt, token))
            assert self.ledger.claim(index, token, HOUR) == answer

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        index, attempt, token = data.draw(st.sampled_from(self.attempts))
        assert self.ledger.renew(index, attempt, token, HOUR) == self.model.renew(index, attempt, token)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), verdict=OFTEN_INFRA, final=st.booleans(), due=st.booleans(), twice=st.booleans())
    def end(self, data: st.DataObject, verdict: Verdict, final: bool, due: bool, twice: bool) -> None:
        expected, ended = self.ending(data, verdict, final=final, due=due)
        for _ in range(1 + twice):
            assert expected == self.ledger.end(ended)

    def ending(self, data: st.DataObject, verdict: Verdict, *, final: bool, due: bool) -> tuple[Ending, Ended]:
        index, attempt, _ = data.draw(st.sampled_from(self.attempts))
        final = final or verdict != "infra_failed"
        expected = self.model.end(index, attempt, verdict, final=final, due=due)
        return expected, Ended(
            index,
            attempt,
            verdict=verdict,
            row=b"%d/%d" % (index, attempt),
            final=final,
            backoff_s=0 if due else HOUR,
            max_attempts=MOST,
            spent=Spent(ARMS[index]),
        )

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), verdict=OFTEN_INFRA, index=indices, token=st.sampled_from("ab"), forgotten=st.booleans())
    def end_and_claim(self, data: st.DataObject, verdict: Verdict, index: int, token: str, forgotten: bool) -> None:
        if forgotten:
            self.client.script_flush()
        expected, ended = self.ending(data, verdict, final=False, due=True)
        answer = self.model.claim(index, token)
        assert self.ledger.end_and_claim(ended, index, token, HOUR) == (expected, answer)
        if forgotten:  # the answer, too, and so the call is made again
            answer = self.model.claim(index, token)
            assert self.ledger.end_and_claim(ended, index, token, HOUR) == (expected, answer)
        if answer.status == "ok":
            self.attempts.append((index, answer.attempt, token))
            assert self.ledger.claim(index, token, HOUR) == answer

    @rule(index=indices)
    def deadline_passes(self, index: int) -> None:
        for place in ("sent", "fl"):
            if self.client.zadd(f"f:{{r}}:{place}", {str(index): 0}, xx=True, ch=True):
                self.model.trials[index].overdue = True

    @rule(index=indices)
    def backoff_passes(self, index: int) -> None:
        self.client.zadd("f:{r}:rq", {str(index): 0}, xx=True)
        if self.model.trials[index].place == "waiting":
            self.model.trials[index].due = True

    @rule(limit=st.integers(1, 4), twice=st.booleans())
    def reap(self, limit: int, twice: bool) -> None:
        held = self.ledger.overdue(limit, HOUR)
        overdue = [index for index in self.model.at("leased") if self.model.trials[index].overdue]
        assert {one.index for one in held} <= set(overdue)
        assert len(held) == min(limit, len(overdue))
        assert all(one.attempt == self.model.trials[one.index].started for one in held)
        assert self.ledger.reap(held, max_attempts=MOST, backoff_s=0) == self.model.reap(held)
        if twice:
            assert self.ledger.reap(held, max_attempts=MOST, backoff_s=0) == Reaped(lost=0, closed=0)

    @rule(beyond_s=st.sampled_from((0.0, HOUR)))
    def resend(self, beyond_s: float) -> None:
        unclaimed = [index for index in self.model.at("handed out") if self.model.trials[index].overdue]
        assert self.ledger.resend(SIZE, beyond_s) == len(unclaimed)
        self.model.counts["redispatched"] += len(unclaimed)
        for index in unclaimed:
            self.model.trials[index].move("waiting", due=True)

    @rule(index=indices)
    def give_back(self, index: int) -> None:
        self.ledger.give_back([index])
        if self.model.trials[index].place == "handed out":
            self.model.trials[index].move("waiting", due=True)

    @precondition(lambda self: len(self.attempts) > 1)
    @rule(twice=st.booleans())
    def redis_is_lost_and_restored(self, twice: bool) -> None:
        self.client.flushall()
        told = self.model.rebuild()
        first_open = next((index for index in range(SIZE) if index not in self.model.restored), SIZE)
        for index, attempt, token in self.attempts:  # nobody knows, so whoever is at work goes on
            assert self.ledger.renew(index, attempt, token, HOUR)
        self.ledger.create(SIZE, "sha256:plan", SHAPE, rebuilding=True)
        assert self.ledger.take(SIZE, HOUR) == []
        for _ in range(1 + twice):
            self.ledger.restore(told)
        assert self.ledger.end_rebuilding(0, first_open)
        assert not self.ledger.end_rebuilding(0, 0)

    @rule(index=indices)
    def it_is_lost(self, index: int) -> None:
        self.deadline_passes(index)
        self.reap(SIZE, twice=False)
        self.resend(0.0)

    @rule(index=indices, token=st.sampled_from("ab"))
    def it_is_run(self, index: int, token: str) -> None:
        self.take(SIZE)
        self.claim(index, token)

    @precondition(lambda self: len(self.attempts) > SIZE)
    @rule()
    def cancel(self) -> None:
        self.ledger.cancel()
        self.model.cancelled = True
        for index in self.model.at("handed out"):
            self.model.trials[index].move("waiting", due=True)

    @rule()
    def create_again(self) -> None:
        assert not self.ledger.create(SIZE, "sha256:plan", SHAPE)

    @invariant()
    def the_ledger_is_as_the_model(self) -> None:
        progress = self.ledger.progress()
        assert progress == self.model.progress()
        assert progress.closed == progress.passed + progress.failed + progress.inconclusive + progress.infra_failed
        assert progress.planned == (
            progress.closed + progress.in_flight + progress.waiting + len(self.model.at("fresh"))
        )
        assert self.client.get("f:{r}:att") == bytes(trial.started for trial in self.model.trials)
        assert max(trial.started for trial in self.model.trials) <= MOST

    @invariant()
    def every_closed_trial_has_one_closing_event(self) -> None:
        closings = [event for event in self.ledger.events("0", 1000) if event.kind in ("counted", "infra_failed")]
        here = set(self.model.at("closed")) - self.model.restored
        assert sorted(event.index for event in closings) == sorted(here)
        assert {(event.index, event.attempt, event.row) for event in closings if event.kind == "counted"} == {
            (index, trial.winner, b"%d/%d" % (index, trial.winner))
            for index, trial in enumerate(self.model.trials)
            if trial.winner and index in here
        }

    @invariant()
    def each_arm_s_counts_are_told(self) -> None:
        told = {name.decode(): int(count) for name, count in self.client.hgetall("f:{r}:cnt").items()}
        assert {name: count for name, count in told.items() if "|" in name} == {
            name: count for name, count in self.model.counts.items() if "|" in name
        }


def test_the_ledger_keeps_its_promises_whatever_the_order(client: redis.Redis) -> None:
    run_state_machine_as_test(
        type("LedgerMachineHere", (LedgerMachine,), {"client": client}),
        settings=settings(max_examples=150, stateful_step_count=40, deadline=None),
    )


Role = Callable[[redis.Redis, Ledger, random.Random], None]


class Farm:
    """A feeder and workers over a queue that loses and doubles messages; time passes only for the unlucky."""

    trials = 1500
    workers = 6

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.seed = seed
        self.messages: queue.Queue[int] = queue.Queue()
        self.zombies: queue.Queue[tuple[int, int]] = queue.Queue()
        self.over = threading.Event()
        self.answers: Counter[str] = Counter()
        self.failures: list[Exception] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        roles: list[Role] = [self.feed, *[self.work] * self.workers]
        threads = [threading.Thread(target=self.play, args=(role, number)) for number, role in enumerate(roles)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        if self.failures:
            raise self.failures[0]

    def play(self, role: Role, number: int) -> None:
        with connect(self.url) as client:
            try:
                role(client, Ledger(client, "r"), random.Random(self.seed * 100 + number))
            except (AssertionError, EvalFarmError) as error:
                self.failures.append(error)
            finally:
                if role == self.feed or self.failures:
                    self.over.set()

    def feed(self, client: redis.Redis, ledger: Ledger, chance: random.Random) -> None:
        while ledger.progress().closed < self.trials and not self.over.is_set():
            ledger.reap(ledger.overdue(100, HOUR), max_attempts=5, backoff_s=0)
            ledger.resend(100, 0)
            for index in ledger.take(max(0, 40 - self.messages.qsize()), HOUR):
                luck = chance.random()
                if luck < 0.05:
                    client.zadd("f:{r}:sent", {str(index): 0}, xx=True)  # lost, and its deadline passes
                else:
                    self.messages.put(index)
                if luck > 0.85:
                    self.messages.put(index)

    def work(self, client: redis.Redis, ledger: Ledger, chance: random.Random) -> None:
        while not self.over.is_set():
            if chance.random() < 0.1:
                self.end_a_zombie(ledger, chance)
            try:
                index = self.messages.get(timeout=0.01)
            except queue.Empty:
                continue
            claim = ledger.claim(index, str(chance.random()), HOUR)
            self.note(claim.status)
            if claim.status != "ok":
                continue
            luck = chance.random()
            if luck < 0.16:  # the worker dies, or comes back as a zombie after its lease has run out
                client.zadd("f:{r}:fl", {str(index): 0}, xx=True)
                if luck < 0.08:
                    self.zombies.put((index, claim.attempt))
                continue
            self.end(ledger, index, claim.attempt, chance)

    def end_a_zombie(self, ledger: Ledger, chance: random.Random) -> None:
        try:
            index, attempt = self.zombies.get_nowait()
        except queue.Empty:
            return
        self.end(ledger, index, attempt, chance)

    def end(self, ledger: Ledger, index: int, attempt: int, chance: random.Random) -> None:
        verdict: Verdict = "infra_failed" if chance.random() < 0.05 else chance.choice(("passed", "failed"))
        answers = [
            ledger.end(
                Ended(
                    index,
                    attempt,
                    verdict=verdict,
                    row=b"row",
                    final=verdict != "infra_failed",
                    backoff_s=0,
                    max_attempts=5,
                )
            )
            for _ in range(1 + (chance.random() < 0.2))
        ]
        self.note(answers[0])
        if verdict != "infra_failed":
            assert len(set(answers)) == 1

    def note(self, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1


def test_every_trial_is_closed_once_in_a_farm_where_messages_and_workers_get_lost(
    client: redis.Redis, redis_url: str
) -> None:
    ledger = Ledger(client, "r")
    ledger.create(Farm.trials, "sha256:plan")
    farm = Farm(redis_url, seed=1)
    farm.run()
    progress = ledger.progress()
    events = ledger.events("0", 100_000)
    closings = [event for event in events if event.kind in ("counted", "infra_failed")]
    assert sorted(event.index for event in closings) == list(range(Farm.trials))
    assert progress.closed == Farm.trials
    assert progress.passed + progress.failed == sum(event.kind == "counted" for event in closings)
    assert client.get("f:{r}:win") == bytes(
        event.attempt if event.kind == "counted" else 254 for event in sorted(closings, key=lambda e: e.index)
    )
    started = client.get("f:{r}:att")
    assert isinstance(started, bytes)
    assert sum(started) == progress.attempts
    assert max(started) <= 5
    assert (progress.in_flight, progress.waiting) == (0, 0)
    assert min(progress.lost, progress.redispatched, farm.answers["held"], farm.answers["closed"]) > 0
