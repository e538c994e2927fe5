"""The ledger against a plain model of it, and against a farm where everything goes wrong."""

import queue
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import redis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from evalfarm.contracts.verdict import Verdict
from evalfarm.errors import EvalFarmError
from evalfarm.runstate import Claim, Ending, Ledger, Progress, Reaped, connect

SIZE = 3
MOST = 2
HOUR = 3600.0
CLOSING: tuple[Verdict, ...] = ("passed", "failed", "inconclusive", "infra_failed")
OFTEN_INFRA = st.one_of(st.sampled_from(CLOSING), st.just(CLOSING[-1]))
indices = st.integers(0, SIZE - 1)


@dataclass
class Trial:
    place: Literal["fresh", "waiting", "handed out", "leased", "closed"] = "fresh"
    due: bool = False  # of a waiting one
    overdue: bool = False  # of one in flight
    started: int = 0
    token: str = ""
    winner: int = 0  # 0 with place closed: infra_failed

    def move(self, place: Literal["waiting", "handed out", "leased", "closed"], *, due: bool = False) -> None:
        self.place, self.due, self.overdue, self.token = place, due, False, ""


@dataclass
class Model:
    """What the ledger promises, in words a reader can check."""

    trials: list[Trial] = field(default_factory=lambda: [Trial() for _ in range(SIZE)])
    counts: Counter[str] = field(default_factory=Counter)
    past: dict[tuple[int, int], Ending] = field(default_factory=dict)
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
            return Claim("ok" if trial.token == token else "held", trial.started)
        if trial.place != "handed out":
            return Claim("held", 0)
        trial.move("leased")
        trial.token = token
        trial.started += 1
        self.counts["attempts"] += 1
        return Claim("ok", trial.started)

    def end(self, index: int, attempt: int, verdict: Verdict, *, final: bool, due: bool) -> Ending:
        trial = self.trials[index]
        lost = attempt == trial.started and trial.place in ("waiting", "handed out")
        if lost and verdict == "infra_failed" and (index, attempt) not in self.past:
            return "retry"  # and it may still come to another end
        if (index, attempt) not in self.past:
            self.past[index, attempt] = self.end_first(index, attempt, verdict, final=final, due=due)
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
        if final or attempt == MOST:
            return self.close(index, verdict, "infra_failed")
        trial.move("waiting", due=due)
        return "retry"

    def close(self, index: int, verdict: Verdict, ending: Ending) -> Ending:
        self.trials[index].move("closed")
        self.counts[verdict] += 1
        return ending

    def reap(self, limit: int) -> Reaped:
        found: Counter[str] = Counter()
        for index in [index for index, trial in enumerate(self.trials) if trial.overdue][:limit]:
            trial = self.trials[index]
            kind = "lost" if trial.place == "leased" else "redispatched"
            found[kind] += 1
            if kind == "lost" and trial.started == MOST:
                found["closed"] += 1
                self.close(index, "infra_failed", "infra_failed")
            else:
                trial.move("waiting", due=True)
        self.counts.update({kind: found[kind] for kind in ("lost", "redispatched")})
        return Reaped(lost=found["lost"], redispatched=found["redispatched"], closed=found["closed"])

    def progress(self) -> Progress:
        names = [*CLOSING, "attempts", "lost", "late", "superseded", "redispatched"]
        return Progress(
            planned=SIZE,
            closed=len(self.at("closed")),
            in_flight=len(self.at("handed out", "leased")),
            waiting=len(self.at("waiting")),
            cancelled=self.cancelled,
            **{name: self.counts[name] for name in names},
        )


class LedgerMachine(RuleBasedStateMachine):
    client: redis.Redis

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.ledger = Ledger(self.client, "r")
        self.ledger.create(SIZE, "sha256:plan")
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
        trial = self.model.trials[index]
        holds = trial.place == "leased" and (trial.started, trial.token) == (attempt, token)
        assert self.ledger.renew(index, attempt, token, HOUR) == (holds and not self.model.cancelled)
        if holds and not self.model.cancelled:
            trial.overdue = False

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), verdict=OFTEN_INFRA, final=st.booleans(), due=st.booleans(), twice=st.booleans())
    def end(self, data: st.DataObject, verdict: Verdict, final: bool, due: bool, twice: bool) -> None:
        index, attempt, _ = data.draw(st.sampled_from(self.attempts))
        final = final or verdict != "infra_failed"
        expected = self.model.end(index, attempt, verdict, final=final, due=due)
        for _ in range(1 + twice):
            assert expected == self.ledger.end(
                index,
                attempt,
                verdict=verdict,
                row=b"%d/%d" % (index, attempt),
                final=final,
                backoff_s=0 if due else HOUR,
                max_attempts=MOST,
            )

    @rule(index=indices)
    def deadline_passes(self, index: int) -> None:
        if self.client.zadd("f:{r}:fl", {str(index): 0}, xx=True, ch=True):
            self.model.trials[index].overdue = True

    @rule(index=indices)
    def backoff_passes(self, index: int) -> None:
        self.client.zadd("f:{r}:rq", {str(index): 0}, xx=True)
        if self.model.trials[index].place == "waiting":
            self.model.trials[index].due = True

    @rule(limit=st.integers(1, 4))
    def reap(self, limit: int) -> None:
        assert self.ledger.reap(limit, max_attempts=MOST, backoff_s=0) == self.model.reap(limit)

    @rule(index=indices)
    def it_is_lost(self, index: int) -> None:
        self.deadline_passes(index)
        self.reap(SIZE)

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
        assert not self.ledger.create(SIZE, "sha256:plan")

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
        assert sorted(event.index for event in closings) == self.model.at("closed")
        assert {(event.index, event.attempt, event.row) for event in closings if event.kind == "counted"} == {
            (index, trial.winner, b"%d/%d" % (index, trial.winner))
            for index, trial in enumerate(self.model.trials)
            if trial.winner
        }


def test_the_ledger_keeps_its_promises_whatever_the_order(client: redis.Redis) -> None:
    run_state_machine_as_test(
        type("LedgerMachineHere", (LedgerMachine,), {"client": client}),
        settings=settings(max_examples=100, stateful_step_count=40, deadline=None),
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
            ledger.reap(100, max_attempts=5, backoff_s=0)
            for index in ledger.take(max(0, 40 - self.messages.qsize()), HOUR):
                luck = chance.random()
                if luck < 0.05:
                    client.zadd("f:{r}:fl", {str(index): 0}, xx=True)  # lost, and its deadline passes
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
                index,
                attempt,
                verdict=verdict,
                row=b"row",
                final=verdict != "infra_failed",
                backoff_s=0,
                max_attempts=5,
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
