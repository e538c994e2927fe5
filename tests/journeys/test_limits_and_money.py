"""A provider with a bill of its own: what a run may ask of it, what it costs, and where it stops."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import ASGIApp, Receive, Scope, Send

from cases.loader import load_suite
from cases.policies import Erratic, Move, Policy, Seen, load_base
from cases.policies.judges import load_reader, shown_to, simulated_judges
from evalfarm.judgings import Judgings
from worker.gateways.serving import loopback, serving
from worker.simulated_model import simulated_app

pytestmark = pytest.mark.slow

MODEL = "gpt-5"
PRICES = """
[[price]]
models = ["gpt-5"]
input = 1000.0
cached_input = 500.0
output = 2000.0
as_of = 2026-01-31
source = "this test"
"""
RUN = ("run", "bls", "--model", MODEL, "--harness", "loop", "--variant", "guided", "--workers", "2")


@dataclass(frozen=True)
class Late:
    """The base, every response a fifth of a second late."""

    base: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        return replace(self.base.move(seen, draw), delay_s=0.2)


@dataclass
class Provider:
    """What a provider has in its hands, and what it charges."""

    answers: ASGIApp | None = None
    cached: bool = False  #: whether a request that it knows is answered as it was the first time
    charged: list[float] = field(default_factory=list)
    in_hand: int = 0
    most_in_hand: int = 0
    known: dict[bytes, list[dict[str, Any]]] = field(default_factory=dict)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def charge(self, _model: str, usage: Mapping[str, Any]) -> None:
        cached = usage["input_tokens_details"]["cached_tokens"]
        fresh = usage["input_tokens"] - cached
        self.charged.append((fresh * 1000 + cached * 500 + usage["output_tokens"] * 2000) / 1e6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        try:
            async with self.one_at_a_time if self.cached else nullcontext():
                await self._answer(scope, receive, send)
        finally:
            self.in_hand -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.answers is not None
        asked = await receive()
        sent: list[dict[str, Any]] = []

        async def again() -> Any:
            return asked

        async def keep(message: Any) -> None:
            sent.append(message)
            await send(message)

        if self.cached and asked["body"] in self.known:
            for message in self.known[asked["body"]]:
                await send(message)
            return
        await self.answers(scope, again, keep)
        self.known[asked["body"]] = sent


@asynccontextmanager
async def served(provider: Provider) -> AsyncIterator[str]:
    listener = loopback()
    async with serving(provider, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def careful() -> Policy:
    loaded = load_suite("bls")
    assert loaded.suite.simulation is not None
    return load_base(loaded.suite.simulation, loaded.folder)


@dataclass(frozen=True)
class Market:
    """A place whose model is a real one, at a provider of this process."""

    place: Any
    provider: Provider

    def run(self, *words: str) -> tuple[Any, Any]:
        """How the command ended, and the summary of its run."""
        ended = self.place.run(*RUN, *words)
        return ended, self.place.summary(ended.err.split()[1].rstrip(":"))

    def paid(self, run: str) -> float:
        """The cost of every attempt that is stored, counted or not."""
        store = self.place.store
        trials = range(store.get_plan(run).size)
        traces = [store.get_trace(run, at, n) for at in trials for n in store.attempts_of(run, at)]
        return sum(trace.cost_usd for trace in traces)


@pytest.fixture
def market(another_place: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Market]]:
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    (tmp_path / "limits.toml").write_text(f'[models."{MODEL}"]\nconcurrency = 3\n', encoding="utf-8")
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def start(policy: Policy, *, cached: bool = False) -> Market:
            provider = Provider(cached=cached)
            provider.answers = simulated_app({MODEL: policy}, billed=provider.charge)
            url = stack.enter_context(portal.wrap_async_context_manager(served(provider)))
            environ = {
                "OPENAI_API_KEY": "sk-of-this-test",
                "OPENAI_BASE_URL": url,
                "EVALFARM_PRICES": str(tmp_path / "prices.toml"),
                "EVALFARM_LIMITS": str(tmp_path / "limits.toml"),
            }
            return Market(another_place("market", **environ), provider)

        yield start


def test_on_a_providers_bad_day_its_bill_is_what_all_attempts_cost_and_the_cap_holds(
    market: Callable[..., Market],
) -> None:
    at = market(Erratic(Late(careful())))
    ended, summary = at.run("--repeats", "4")
    assert (summary.planned, summary.not_run) == (20, 0), ended.err
    bill = sum(at.provider.charged)
    (cell,) = summary.cells
    assert at.paid(summary.run) == pytest.approx(bill)
    assert cell.cost.all_attempts_usd == pytest.approx(bill, abs=1e-4)
    assert 1 <= at.provider.most_in_hand <= 3
    waits = [result.waited_s for result in at.place.results(summary.run).values()]
    assert max(waits) > 0.9, "nobody waited for the model"
    assert cell.latency_s.p50 < 2
    at.place.falls_quiet()


def test_a_budget_ends_a_run_before_it_is_overshot_and_the_report_says_so(market: Callable[..., Market]) -> None:
    at = market(Late(careful()))
    ended, summary = at.run("--repeats", "20", "--max-cost", "40")
    bill = sum(at.provider.charged)
    assert (ended.code, summary.finished, summary.planned) == (4, False, 100)
    assert summary.not_run > 0
    assert summary.passed == 100 - summary.not_run > 3
    assert 20 < bill <= 40 + 3 * max(result.cost_usd for result in at.place.results(summary.run).values())
    spent = summary.cells[0].cost.all_attempts_usd
    assert spent == pytest.approx(bill, abs=1e-4)
    (note,) = summary.notes
    assert note == (
        f"BUDGET REACHED: ${spent:.2f} of $40.00 spent, over all attempts; what is left does not cover one more trial, "
        f"so that {summary.not_run} trials did not run."
    )
    assert "BUDGET REACHED" in " ".join(ended.out.split())
    assert at.place.run("resume", summary.run).code == 4
    assert sum(at.provider.charged) == bill
    at.place.falls_quiet()


@dataclass(frozen=True)
class AlsoJudges:
    """A model that answers, and judges answers when it is asked to."""

    answers: Policy
    judges: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        return (self.judges if shown_to(seen) else self.answers).move(seen, draw)


def of_support() -> Policy:
    loaded = load_suite("support")
    simulation = loaded.suite.simulation
    assert simulation is not None
    assert simulation.judge is not None
    judge = simulated_judges(load_reader(loaded.folder / simulation.judge))["sim-judge-sound"]
    return AlsoJudges(load_base(simulation, loaded.folder), judge)


def test_judges_keep_to_their_models_limits_and_their_money_is_the_budgets(market: Callable[..., Market]) -> None:
    at = market(Late(of_support()))
    words = ("support", "--model", MODEL, "--harness", "loop", "--filter", "case=final-sale-12-days", "--workers", "2")
    ended = at.place.run("run", *words, "--judge", MODEL, "--repeats", "24", "--max-cost", "40")
    run = ended.err.split()[1].rstrip(":")
    summary, bill = at.place.summary(run), sum(at.provider.charged)
    assert (ended.code, summary.finished) == (4, False), ended.err
    assert 0 < summary.not_run < 24
    tally = Judgings(at.place.store.objects).tally(run)
    assert tally is not None
    assert (sum(tally.labels.values()), tally.not_asked) == (24 - summary.not_run, 0)  # money was left for all answers
    (cell,) = summary.cells
    assert summary.judges_usd == tally.cost_usd > 0
    assert cell.cost.all_attempts_usd + summary.judges_usd == pytest.approx(bill, abs=1e-4)
    dearest = max(result.cost_usd for result in at.place.results(run).values())
    assert 8 < bill <= 40 + 3 * dearest
    assert 1 <= at.provider.most_in_hand <= 3  # though eight answers may be at the judges at a time
    assert f"${bill:.2f} of $40.00 spent, over all attempts, ${tally.cost_usd:.2f} of it by judges" in summary.notes[-1]
    at.place.falls_quiet()


def test_an_answer_out_of_a_cache_is_no_repeat(market: Callable[..., Market]) -> None:
    at = market(careful(), cached=True)
    ended, summary = at.run("--repeats", "2", "--filter", "mechanism=coverage_gap")
    results = at.place.results(summary.run)
    assert (ended.code, summary.planned) == (4, len(results))
    first, second = (
        [result for result in results.values() if (result.verdict == "infra_failed") == repeated]
        for repeated in (False, True)
    )
    assert len(first) == len(second) == summary.planned // 2
    for result in second:
        told = (
            f"no repeat: trial {result.trial.index} (case {result.trial.case}, repeat {result.trial.repeat}, attempt 3)"
        )
        assert result.failure.startswith(told)
        assert any(
            f"which trial {other.trial.index} (case {other.trial.case}, repeat" in result.failure for other in first
        )
    at.place.falls_quiet()


def test_a_dry_run_says_what_it_comes_to_and_starts_and_stores_nothing(market: Callable[..., Market]) -> None:
    at = market(careful())
    ended = at.place.run(*RUN, "--repeats", "20", "--dry-run", "--max-cost", "40")
    assert (ended.code, ended.err, at.provider.charged) == (0, "", [])
    assert ended.out.splitlines()[:2] == [
        "Dry run of bls: 100 trials = 5 cases × 1 arm × 20 repeats. Nothing was started.",
        "It may cost about $800.00 and take about 6 minutes on 2 slots.",
    ]
    assert "no drop below" in ended.out
    assert not at.place.home.exists()
