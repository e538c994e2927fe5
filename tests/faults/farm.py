"""A whole farm on one machine, with a plan of its own, tended from the test's process."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from evalfarm.broker import make_app, send_trials
from evalfarm.cli.standing import open_farm
from evalfarm.contracts.base import digest_bytes
from evalfarm.contracts.route import Expectation
from evalfarm.contracts.run import NO_MODEL, Arm, Plan
from evalfarm.contracts.suite import Case, DirectCall, Plugin, Server, Suite
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import EvalFarmError
from evalfarm.runstate import Ledger, Progress, connect
from evalfarm.settings import load_settings
from evalfarm.store import Store
from graders.grade import grader_digest
from scheduler import feeder
from scheduler.planner import Measured, manifest_of
from scheduler.runs import TICK_S, Scheduler
from tests.faults.machine import Broker, Process, Program, processes_of, start_program, tidied, until
from tests.faults.provider import KEY, MODEL, Provider, provider
from tests.faults.proxy import Proxy, proxy_to
from tests.faults.s3 import BUCKET, Bucket

#: Seconds. Short, so that what waits for a lease to lapse is over soon; three renewals must fit in on a busy machine.
LEASE_S = 3.0
#: Seconds after which a trial that nobody claimed is sent again: half a lease, as the feeder's own 30 s are half of 60.
DISPATCH_S = LEASE_S / 2
RUN = "faults-1"
#: Trials of the model at once, over all workers: every test holds the farm to it.
CAP = 4
_LIMITS = f'[models."{MODEL}"]\nconcurrency = {CAP}\n'
_SERVER = Path(__file__).with_name("lookup.py").read_bytes()


def plan_of(cases: int, *, direct: bool = True, timeout_s: float = 120.0, hangs: str = "") -> Plan:
    """`cases` questions at `loop`, and at `direct` too: case-a, case-b …, in the order of the plan's own shuffle.

    `hangs`: the case whose tool call never ends.
    """
    names = [f"case-{chr(ord('a') + number)}" for number in range(cases)]
    called = Expectation(tools=("look_up",))
    suite = Suite(
        suite="faults",
        version="1",
        plugin=Plugin(name="Lookup"),
        server=Server(command=("python", "lookup.py"), env={"HANGS": hangs}),
        files=("lookup.py",),
        attempt_timeout_s=timeout_s,
        cases=tuple(
            Case(id=name, turns=(name,), expect=called, direct=DirectCall(tool="look_up", arguments={"case": name}))
            for name in names
        ),
    )
    arms = [Arm(model=MODEL, harness="loop", variant="plain")]
    if direct:
        arms.append(Arm(model=NO_MODEL, harness="direct", variant="plain"))
    return Plan(
        run=RUN,
        suite=suite,
        arms=tuple(arms),
        cases=tuple(names),
        repeats=1,
        files={"lookup.py": digest_bytes(_SERVER)},
    )


#: Of each log, told where a test failed.
_LAST_LINES = 15


@dataclass
class Witness:
    """What the ledger said last, looked at from outside often enough to have seen the moment before it was sealed."""

    url: str
    run: str
    progress: Progress | None = None
    attempts: bytes = b""  #: started, a byte a trial
    lost: set[tuple[int, int]] = field(default_factory=set)  #: (trial, attempt)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="witness")
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        with connect(self.url) as client:
            while not self._over.wait(0.02):
                with suppress(EvalFarmError, redis.RedisError):
                    self._look(client)

    def _look(self, client: redis.Redis) -> None:
        ledger = Ledger(client, self.run)
        attempts, events, progress = client.get(f"f:{{{self.run}}}:att"), ledger.events("0", 9_999), ledger.progress()
        if attempts is None:
            return
        self.attempts, self.progress = bytes(attempts), progress  # type: ignore[arg-type]  # replies come in bytes
        self.lost |= {(event.index, event.attempt) for event in events if event.kind == "lost"}


@contextmanager
def scheduler_of(environ: dict[str, str]) -> Iterator[Scheduler]:
    """What tends runs, put together as the commands do."""
    with open_farm(load_settings(environ)) as farm:
        yield farm.scheduler()


@dataclass
class Tender:
    """Tends the run in a thread as `evalfarm scheduler` does: what fails is tried again."""

    environ: dict[str, str]
    run: str
    summary: RunSummary | None = None
    errors: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._tend, name="tender")
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _tend(self) -> None:
        with scheduler_of(self.environ) as scheduler:
            while not self._over.wait(TICK_S):
                try:
                    self.summary = scheduler.look_at(self.run)
                except EvalFarmError as error:
                    self.errors.append(error.message)
                if self.summary is not None:
                    return


@dataclass
class Farm:
    """Everything that a run stands on. Workers go to the broker through `proxy`, the tender straight."""

    root: Path
    broker: Broker
    proxy: Proxy
    provider: Provider
    plan: Plan
    bucket: Bucket | None  #: None: the store is a folder
    environ_of_all: dict[str, str]
    workers: list[Program] = field(default_factory=list)
    commands: list[Program] = field(default_factory=list)
    tenders: list[Tender] = field(default_factory=list)
    witness: Witness = field(init=False)

    def __post_init__(self) -> None:
        self.witness = Witness(self.broker.url, self.plan.run)

    @property
    def store_url(self) -> str:
        return f"s3://{BUCKET}/some/prefix" if self.bucket else (self.root / "store").as_uri()

    @property
    def store(self) -> Store:
        return Store(self.store_url)

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with connect(self.broker.url) as client:
            yield Ledger(client, self.plan.run)

    @contextmanager
    def scheduler(self) -> Iterator[Scheduler]:
        with scheduler_of(self.environ("home-command", straight=True)) as scheduler:
            yield scheduler

    def environ(self, home: str, *, straight: bool = False) -> dict[str, str]:
        """What a process of this farm is given."""
        port = self.broker.port if straight else self.proxy.port
        return {
            "EVALFARM_HOME": str(self.root / home),
            "EVALFARM_REDIS_URL": f"redis://127.0.0.1:{port}/0",
            "EVALFARM_STORE_URL": self.store_url,
            "EVALFARM_LEASE_S": str(LEASE_S),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": self.provider.url,
            "EVALFARM_LIMITS": str(self.root / "limits.toml"),
            **(self.bucket.environ | {"AWS_TIMEOUT": "1 second"} if self.bucket else {}),
            **self.environ_of_all,
        }

    def open(self) -> None:
        """Store the plan and enter it in the ledger, as `evalfarm run` does."""
        measured = Measured(versions={}, digests={"grader": grader_digest()}, simulated=False)
        manifest = manifest_of(self.plan, measured, created_at=time.time(), label=None, filters={})
        with self.scheduler() as scheduler:
            scheduler.open_run(self.plan, manifest, {"lookup.py": _SERVER})
        self.witness.start()

    def work(self, *, slots: int = 1, straight: bool = False, **environ: str) -> Program:
        """Start a worker."""
        number = len(self.workers) + 1
        known = self.environ(f"home-{number}", straight=straight) | environ
        log = self.root / "logs" / f"worker-{number}.log"
        worker = start_program("worker", "--slots", str(slots), environ=known, log=log)
        self.workers.append(worker)
        return worker

    def at_work(self) -> list[Program]:
        """The workers that have not ended."""
        return [worker for worker in self.workers if worker.process.poll() is None]

    def command(self, *words: str, straight: bool = True) -> Program:
        """Start another of our commands."""
        log = self.root / "logs" / f"{words[0]}-{time.monotonic_ns()}.log"
        command = start_program(*words, environ=self.environ("home-command", straight=straight), log=log)
        self.commands.append(command)
        return command

    def send(self, *cases: str, time_limit_s: float = 120.0) -> None:
        """Have the `loop` trials of these cases travel in one message, which no other trial is in.

        They are at work before any other where nobody tends the run yet: those could take their model's last places.
        """
        trials = [self.plan.trial(index) for index in range(self.plan.size)]
        chosen = [trial.index for trial in trials if trial.case in cases and trial.arm.harness == "loop"]
        with self.ledger() as ledger:
            ledger.give_back(set(ledger.take(self.plan.size, 120.0)).difference(chosen))
        send_trials(make_app(self.broker.url), self.plan.run, [tuple(chosen)], time_limit_s=time_limit_s)

    def tend(self) -> Tender:
        """Begin to tend the run."""
        tender = Tender(self.environ("home-command", straight=True), self.plan.run)
        self.tenders.append(tender)
        tender.start()
        return tender

    def sealed(self, patience_s: float = 120.0) -> RunSummary:
        """The summary, once there is one."""
        summary = until(lambda: self.store.get_summary(self.plan.run), "that the run is sealed", patience_s)
        assert summary is not None
        return summary

    def progress(self) -> Progress:
        """The ledger's own account now."""
        with self.ledger() as ledger:
            return ledger.progress()

    def when_closed(self, count: int) -> None:
        """Wait until so many trials are closed."""
        until(lambda: self._closed() >= count, f"that {count} trials are closed")

    def _closed(self) -> int:
        if self.store.get_summary(self.plan.run) is not None:
            return self.plan.size
        try:
            return self.progress().closed
        except EvalFarmError:  # the broker is away, or has forgotten the run
            return 0

    def account(self) -> str:
        """How it stands, for whoever reads that a test failed."""
        told = [f"the ledger, as last seen: {self.witness.progress}", f"lost: {sorted(self.witness.lost)}"]
        told += [f"tender: summary {tender.summary is not None}, {tender.errors[-5:]}" for tender in self.tenders]
        told += [f"living: {one.pid} of {one.parent}: {one.argv}" for one in self.living()]
        for program in (*self.workers, *self.commands):
            last = "\n  ".join(program.said.splitlines()[-_LAST_LINES:])
            told.append(f"{program.log.name}, exit code {program.process.poll()}:\n  {last}")
        return "\n".join(told)

    def living(self) -> list[Process]:
        return [found for found in processes_of(self.root) if "valkey" not in found.argv and "redis" not in found.argv]

    def dismiss(self) -> None:
        """Have every worker finish, and stop tending."""
        for worker in self.at_work():
            worker.process.terminate()
        for worker in self.workers:
            worker.end()
        for tender in self.tenders:
            tender.stop()
        self.witness.stop()

    def close(self) -> None:
        """End whatever is left, at once."""
        for program in (*self.workers, *self.commands):
            if program.process.poll() is None:
                program.process.kill()
            program.process.wait()
        for tender in self.tenders:
            tender.stop()
        self.witness.stop()


@contextmanager
def farm(
    root: Path, plan: Plan, *, bucket: Bucket | None = None, environ: dict[str, str] | None = None
) -> Iterator[Farm]:
    """A farm with an open run and nobody at work yet; nothing is left of it after the block."""
    with ExitStack() as stack:
        stack.enter_context(tidied(root))
        stack.callback(setattr, feeder, "DISPATCH_S", feeder.DISPATCH_S)
        feeder.DISPATCH_S = DISPATCH_S
        broker = Broker(root / "broker")
        broker.start()
        stack.callback(broker.stop)
        here = Farm(
            root=root,
            broker=broker,
            proxy=stack.enter_context(proxy_to(broker.port)),
            provider=stack.enter_context(provider()),
            plan=plan,
            bucket=bucket,
            environ_of_all=environ or {},
        )
        (root / "limits.toml").write_text(_LIMITS, encoding="utf-8")
        stack.callback(here.close)
        here.open()
        yield here
