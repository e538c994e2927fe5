"""A store with runs and imports in it, and the server over it, in this process and at a time of the test's own."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.analysis.summary.rows import Rows
from evalfarm.cli.conversations.scoring import read_subject
from evalfarm.contracts.bundle import Bundle, Import
from evalfarm.contracts.conversation import Conversation, ToolUse
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Arm, ModelRequest, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import Label, Result
from evalfarm.conversations import Conversations
from evalfarm.errors import RulesDisagree
from evalfarm.store import Store
from evalfarm.web.app import make_app
from evalfarm.web.holdings import Held, Holdings, Seen
from evalfarm.web.sheets import SHEETS, write_sheet
from evalfarm.web.tokens import RANDOM_BYTES, Token, Tokens, mint
from scheduler.planner import Measured, manifest_of
from tests.made_rows import made_row, made_use

NOW_S = 1_796_000_000.0  # 2026-11-30
ANSWER = "a" * 200


class Clock:
    """A time that moves when a test says so."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


class Farm:
    """A store, and what evalfarm would have put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(f"file://{folder}/store")
        self.clock = Clock()
        self.tokens = Tokens(self.store.objects)
        self.scored: list[str] = []
        self.refused: set[str] = set()
        held = folder / "held"
        held.mkdir(parents=True)
        self.holdings = Holdings(self.store, held, self._score)
        self._minted = 0

    def _score(self, name: str) -> None:
        self.scored.append(name)
        if name in self.refused:
            raise RulesDisagree("it cannot be scored")
        read_subject(self.store, name)

    def add_run(
        self,
        run: str,
        *,
        suite: str = "shop",
        plugin_version: str = "1.0.0",
        cases: int = 3,
        query: str = "How many",
        label: str | None = None,
        started_at: float = NOW_S,
        sealed: bool = True,
        some: dict[int, dict[str, Any]] | None = None,
        verdicts: dict[int, Any] | None = None,
        **fields: Any,
    ) -> Plan:
        """A run of two variants whose trials all passed, with the traces' fields given, and with those of some."""
        asked = suite_of(suite, plugin_version, cases, query)
        arms = tuple(Arm(model="m", harness="loop", variant=variant) for variant in asked.variants)
        plan = Plan(run=run, suite=asked, arms=arms, cases=tuple(case.id for case in asked.cases), repeats=1)
        measured = Measured(versions={}, digests={}, simulated=False)
        self.store.put_plan(plan)
        manifest = manifest_of(plan, measured, created_at=started_at, label=label, filters={})
        self.store.put_manifest(manifest)
        results = []
        for index in range(plan.size):
            told = fields | {"started_at": started_at + index} | (some or {}).get(index, {})
            trace = trace_of(plan, index, **told)
            self.store.put_trace(trace)
            verdict = (verdicts or {}).get(index, "passed")
            labels = (
                () if verdict == "passed" else (Label(grader="answer", version="1", value="FAIL", reasons=("no",)),)
            )
            result = Result(trial=trace.trial, attempt=1, outcome=trace.outcome, verdict=verdict, labels=labels)
            results.append(result)
        self.store.put_segment(run, 0, results)
        if sealed:
            self.seal(plan)
        return plan

    def seal(self, plan: Plan) -> None:
        """Sum a run up."""
        manifest = self.store.get_manifest(plan.run)
        results = self.store.results(plan.run)
        self.store.put_summary(summarize(manifest, plan, results, attempts=plan.size, finished=True))

    def add_import(self, name: str, bundles: Sequence[Bundle]) -> None:
        """What `evalfarm import conversations` keeps."""
        kept = Conversations(self.store.objects)
        kept.put_segment(name, 0, bundles)
        kept.close_import(
            Import(name=name, source="conversations", created_at=1.0, conversations=len(bundles), segments=1)
        )

    def token(self, *suites: str, days: int = 30) -> str:
        """A new token."""
        return self.token_and_record(*suites, days=days)[0]

    def token_and_record(self, *suites: str, days: int = 30) -> tuple[str, Token]:
        """A new token and what is kept of it."""
        self._minted += 1
        text, token = mint(f"test {self._minted}", suites, days, random=os.urandom(RANDOM_BYTES), now_s=self.clock())
        self.tokens.keep(token)
        return text, token

    def serve(self, token: str | None = None, *, open_here: bool = False) -> TestClient:
        """The server over what is in the store by now, asked with a token where one is given."""
        self.holdings.look()
        answers = self.folder / "answers"
        answers.mkdir(exist_ok=True)
        app = make_app(self.store, self.holdings, answers, clock=self.clock, open_here=open_here)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return TestClient(app, "http://127.0.0.1:8080", headers=headers, raise_server_exceptions=False)


def suite_of(name: str, plugin_version: str, cases: int, query: str) -> Suite:
    return Suite(
        suite=name,
        version="1",
        plugin=Plugin(name=name.title(), version=plugin_version),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "next": Variant(env={"NEXT": "1"})},
        cases=tuple(Case(id=f"c{number}", turns=(f"{query} {number}?",)) for number in range(cases)),
    )


def trace_of(plan: Plan, index: int, **fields: Any) -> Trace:
    call = ToolCall(name="stock", arguments={"id": index}, result={"count": 3}, started_s=0.1, duration_s=0.2)
    told: dict[str, Any] = {
        "turns": (Turn(query="How many?", answer=ANSWER),),
        "tool_calls": (call,),
        "served_calls": (call,),
        "requests": (
            ModelRequest(started_s=0.0, latency_s=0.5 + index, status=200, model="m", input_tokens=10, output_tokens=5),
        ),
        "cost_usd": 0.01 * (1 + index % 7),
        "started_at": NOW_S,
    }
    return Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        telemetry=Telemetry(complete=True),
        duration_s=1.0,
        **(told | fields),
    )


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path / "farm")


@pytest.fixture(scope="session")
def farm_in() -> Callable[[Path], Farm]:
    """Makes a farm in a folder, for fixtures of a longer life."""
    return Farm


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Farm:
    """A store with a run of each of two suites, for tests that add nothing but tokens."""
    made = Farm(tmp_path_factory.mktemp("shop"))
    made.add_run("shop-1")
    made.add_run("bank-1", suite="bank", label="secret")
    return made


@pytest.fixture(scope="session")
def row() -> Callable[..., Conversation]:
    """A conversation that succeeded, with the fields given."""
    return made_row


@pytest.fixture(scope="session")
def use() -> Callable[..., ToolUse]:
    """One tool's use, with the fields given."""
    return made_use


@pytest.fixture(scope="session")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[Conversation]], Seen]:
    """Rows of conversations as one run that is held, in files as `evalfarm metrics` writes them."""
    base = tmp_path_factory.mktemp("holding")
    empty = base / "empty"
    empty.mkdir()
    for table in SHEETS:
        write_sheet(table, [], empty / f"{table}.parquet")
    scorer = Scorer(ConversationRules(completed_chars=1))
    scorer.write(empty / "conversations.parquet")
    scorer.close()
    made = iter(range(1_000_000))

    def hold_rows(found: Sequence[Conversation]) -> Seen:
        folder = base / f"{next(made)}"
        folder.mkdir()
        for table in SHEETS:
            write_sheet(table, [], folder / f"{table}.parquet")
        with Rows() as rows:
            rows.run("SET VARIABLE empty = ?", [str(empty / "conversations.parquet")])
            rows.run("CREATE TABLE kept AS FROM read_parquet(getvariable('empty'))")
            kinds = rows.records("DESCRIBE kept")
            arrow = {kind: "->>" if kind == "VARCHAR" else "->" for _, kind, *_ in kinds}
            columns = ", ".join(f'(d {arrow[kind]} \'$."{name}"\')::{kind} AS "{name}"' for name, kind, *_ in kinds)
            documents = [json.dumps(one.model_dump(mode="json")) for one in found]
            if documents:
                read = f"SELECT {columns} FROM (SELECT unnest(?::VARCHAR[])::JSON AS d)"
                rows.run(f"INSERT INTO kept {read}", [documents])
            rows.run("COPY kept TO ? (FORMAT parquet)", [str(folder / "conversations.parquet")])
        held = Held("r", "run", None, None, 1.0, "p", "s", folder, finished=True, scored=True)
        return Seen((held,), empty)

    return hold_rows
