import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.run import ModelRequest, Telemetry, ToolCall, Trace, Turn
from evalfarm.prices import Prices, load_prices
from worker.attempt import cost_usd, observe

pytestmark = pytest.mark.anyio

KEY = "sk-planted-for-this-very-test"
NOW = {"retry-after": "0", "content-type": "application/json"}


def gist(trace: Trace) -> tuple[str, str | None, tuple[Turn, ...], list[Any], bool]:
    """What an attempt came to: outcome, failure, turns, the calls that both witnesses saw, completeness."""
    both = [(call.name, call.arguments) for call in trace.served_calls]
    assert trace.telemetry.complete is False or both == [(call.name, call.arguments) for call in trace.tool_calls]
    return trace.outcome, trace.failure, trace.turns, both, trace.telemetry.complete


LOOKED = [("look", {"at": "shelf"})]
ASKED = (Turn(query="What is on the shelf?", answer="It is full."),)
UNANSWERED = (Turn(query="What is on the shelf?"),)


async def test_a_direct_attempt_needs_no_model(open_station: Any, planned: Any, suite: Any, shop_at: Any) -> None:
    async with open_station() as station, shop_at() as url:
        prepared, trial = planned(suite(server={"url": url}), "direct")
        trace = await observe(station, prepared, trial, 2)
    made = {"name": "look", "arguments": {"at": "the shelf"}, "result": {"seen": "the shelf"}}
    (served,) = trace.served_calls
    times = {"started_at": trace.started_at, "duration_s": trace.duration_s}
    assert trace == Trace(
        run="r1",
        trial=trial,
        attempt=2,
        outcome="finished",
        turns=(Turn(query='look({"at": "the shelf"})', answer='{"seen":"the shelf"}'),),
        tool_calls=(ToolCall(**made),),
        served_calls=(ToolCall(**made, started_s=served.started_s, duration_s=served.duration_s),),
        telemetry=Telemetry(complete=True),
        cost_usd=0.0,
        **times,
    )
    assert 0 < served.started_s + (served.duration_s or 0) <= trace.duration_s < 5


async def test_a_loop_attempt_against_the_simulated_model_is_whole(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url:
        prepared, trial = planned(suite(server={"url": url}))
        trace = await observe(station, prepared, trial, 1)
    assert gist(trace) == ("finished", None, ASKED, LOOKED, True)
    assert (trace.simulated, trace.cost_usd, trace.isolation, len(trace.requests)) == (True, 0.0, "cell", 2)
    assert {request.model for request in trace.requests} == {"sim-careful"}


async def test_the_same_trial_again_goes_the_same_way(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url:
        prepared, _ = planned(suite(server={"url": url}), model="sim-flaky", repeats=12)
        trials = [prepared.plan.trial(index) for index in range(12)]
        first, again = [[await observe(station, prepared, trial, 1) for trial in trials] for _ in range(2)]
    assert [gist(trace) for trace in first] == [gist(trace) for trace in again]
    assert len({trace.answer for trace in first}) == 2


@pytest.fixture
def with_provider(open_station: Any, planned: Any, suite: Any, shop_at: Any, providing: Any) -> Callable[..., Any]:
    """The trace of a loop attempt whose real model answers as scripted, and what the provider was asked."""

    async def run(*script: Any, **more: Any) -> tuple[Trace, list[Any]]:
        async with providing(*script) as (upstream, provider), shop_at() as url:
            base = str(upstream.carrier.base)
            async with open_station(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=base) as station:
                prepared, trial = planned(suite(server={"url": url}, **more), model="gpt-x")
                return await observe(station, prepared, trial, 1), provider.asked

    return run


async def test_a_real_model_answers_through_the_gateway_and_its_key_stands_nowhere_in_the_trace(
    with_provider: Any, calls: Any, answers: Any
) -> None:
    trace, asked = await with_provider(calls(("look", {"at": "shelf"})), answers("It is full."))
    assert gist(trace) == ("finished", None, ASKED, LOOKED, True)
    assert (trace.simulated, trace.cost_usd) == (False, None)
    assert [request.headers["authorization"] for request in asked] == [f"Bearer {KEY}"] * 2
    assert KEY not in trace.model_dump_json()


async def test_a_provider_that_stays_down_is_no_verdict_and_what_was_seen_is_kept(
    with_provider: Any, calls: Any, said: Any
) -> None:
    trace, _ = await with_provider(calls(("look", {"at": "shelf"})), said(503, b"{}", NOW))
    down = f"the model's provider stayed unusable: {'; '.join(['HTTP 503'] * 5)}"
    assert gist(trace) == ("infra_failed", down, UNANSWERED, LOOKED, True)
    assert [request.status for request in trace.requests] == [200, 503]
    assert trace.cost_usd is None


async def test_a_refused_key_is_no_verdict(with_provider: Any, said: Any) -> None:
    trace, _ = await with_provider(said(401, b"{}", NOW))
    assert gist(trace) == ("infra_failed", "the key was refused (HTTP 401)", UNANSWERED, [], True)


async def test_a_request_that_the_provider_does_not_take_is_an_outcome(with_provider: Any, said: Any) -> None:
    trace, _ = await with_provider(said(400, b'{"error": {"message": "too long"}}', NOW))
    assert (trace.outcome, trace.turns) == ("crashed", UNANSWERED)
    assert trace.failure is not None
    assert trace.failure.startswith("the model request failed: Error code: 400")


async def test_an_attempt_that_takes_too_long_is_stopped_and_keeps_what_was_seen(
    with_provider: Any, calls: Any, said: Any
) -> None:
    trace, _ = await with_provider(calls(("look", {"at": "shelf"})), said(body=b"{", held=True), attempt_timeout_s=0.3)
    late = "not finished after 0.3 s, the suite's limit for an attempt"
    assert gist(trace) == ("timed_out", late, UNANSWERED, LOOKED, True)
    told = [(request.status, request.error) for request in trace.requests]
    assert told == [(200, None), (None, "the attempt ended before an answer came")]
    assert (trace.cost_usd, 0.3 <= trace.duration_s < 3) == (None, True)


async def test_waiting_for_the_provider_is_not_taken_from_the_attempts_time(
    with_provider: Any, said: Any, answers: Any
) -> None:
    limited = said(429, b"{}", {"retry-after-ms": "400"})
    trace, _ = await with_provider(limited, answers("It is full."), attempt_timeout_s=0.35)
    assert gist(trace) == ("finished", None, ASKED, [], True)
    assert trace.waited_s >= 0.4


async def failed(station: Any, prepared: Any, trial: Any) -> str | None:
    """Why an attempt failed for a reason that says nothing about the plugin, before anything was seen."""
    trace = await observe(station, prepared, trial, 1)
    assert (trace.outcome, trace.turns, trace.requests, trace.duration_s) == ("infra_failed", (), (), 0.0)
    return trace.failure


async def test_without_a_key_a_real_model_cannot_be_tried(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url:
        why = await failed(station, *planned(suite(server={"url": url}), model="gpt-x"))
    assert why == "no key for a real model: OPENAI_API_KEY is not set where this worker runs"


async def test_a_server_that_does_not_come_up_is_no_verdict(open_station: Any, planned: Any, suite: Any) -> None:
    async with open_station() as station:
        why = await failed(station, *planned(suite(server={"command": ["no-such-program"]}), "direct"))
    assert why is not None
    assert why.startswith("the plugin's MCP server (no-such-program) did not come up within 20 s: ")
    assert "there is no program 'no-such-program' on this worker" in why


async def test_a_server_that_was_there_and_went_away_is_no_verdict(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station:
        async with shop_at() as url:
            gone = planned(suite(server={"url": url, "startup_timeout_s": 2}), "direct")
            assert (await observe(station, gone[0], gone[1], 1)).outcome == "finished"
        why = await failed(station, *gone)
    assert why is not None
    assert why.startswith(f"the plugin's MCP server ({url}) did not come up within 2 s: ")


async def test_a_suite_without_a_simulation_has_nothing_to_say_of_a_simulated_model(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url:
        why = await failed(station, *planned(suite(server={"url": url}, simulation=None)))
    assert why == "suite 'shop' says nothing of how a simulated model behaves on it"


async def test_a_codex_that_does_not_start_is_no_verdict(
    open_station: Any, planned: Any, suite: Any, shop_at: Any, tmp_path: Path
) -> None:
    broken = tmp_path / "codex"
    broken.write_text("#!/bin/sh\necho 'no such instruction' >&2\nexit 1\n")
    broken.chmod(0o755)
    async with open_station(EVALFARM_CODEX_BIN=str(broken)) as station, shop_at() as url:
        why = await failed(station, *planned(suite(server={"url": url}), "codex"))
    assert why == f"the Codex binary {broken} does not start: no such instruction"


async def test_on_a_providers_bad_day_every_attempt_ends_and_can_be_stored(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url:
        prepared, _ = planned(suite(server={"url": url}), model="sim-erratic", repeats=40)
        trials = [prepared.plan.trial(index) for index in range(40)]
        traces = await asyncio.gather(*(observe(station, prepared, trial, 1) for trial in trials))
    assert {trace.outcome for trace in traces} <= {"finished", "gave_up", "infra_failed"}
    assert {Trace.model_validate_json(trace.model_dump_json()) == trace for trace in traces} == {True}
    assert all(trace.telemetry.complete for trace in traces)
    met = json.dumps([request.tries for trace in traces for request in trace.requests])
    assert ("HTTP 429" in met, "HTTP 500" in met, "cut short" in met) == (True, True, True)


def request(**figures: int | None) -> ModelRequest:
    told: dict[str, Any] = {"input_tokens": 1_000_000, "cached_tokens": 0, "output_tokens": 0, **figures}
    return ModelRequest(started_s=0, latency_s=0, status=200, **told)


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    table = tmp_path / "prices.toml"
    table.write_text(
        '[[price]]\nmodels = ["m"]\ninput = 2.0\ncached_input = 0.5\noutput = 8.0\n'
        'as_of = 2026-11-01\nsource = "made up"\n'
    )
    return load_prices(table)


def test_a_cost_is_the_sum_over_all_requests(prices: Prices) -> None:
    asked = request(), request(cached_tokens=500_000, output_tokens=1_000_000)
    assert cost_usd(prices, "m", asked) == 2.0 + 1.0 + 0.25 + 8.0


def test_a_cost_is_unknown_as_soon_as_a_part_of_it_is_and_zero_only_where_nothing_was_asked(prices: Prices) -> None:
    asked = request(), request(output_tokens=None)
    assert [cost_usd(prices, "m", asked), cost_usd(prices, "unheard-of", asked[:1]), cost_usd(prices, "m", ())] == [
        *(None, None, 0.0)
    ]


def dying(suite: Any) -> Any:
    """A suite over a server that one of its two cases brings down."""
    cases = [{"id": "harmless", "direct": {"tool": "count"}}, {"id": "deadly", "direct": {"tool": "die"}}]
    return suite(server={"python": "bare.py"}, cases=cases)


async def test_what_one_case_does_to_a_server_is_no_verdict_on_another_that_uses_it(
    open_station: Any, planned: Any, suite: Any, servers: Path
) -> None:
    async with open_station() as station, AsyncExitStack() as stack:
        prepared, _ = planned(dying(suite), "direct", folder=servers)
        deadly = next(t for t in map(prepared.plan.trial, range(2)) if t.case == "deadly")
        await station.server(prepared, "plain", stack)  # as another attempt would hold it
        first = await observe(station, prepared, deadly, 1)
        second = await observe(station, prepared, deadly, 2)
    assert (first.outcome, first.failure) == (
        "infra_failed",
        "the plugin's server went away or did not answer while several attempts were using it; "
        "the next attempt gets one of its own",
    )
    assert (second.outcome, [call.name for call in second.served_calls]) == ("finished", ["die"])
    assert second.served_calls[0].error is not None


async def test_a_provider_that_answers_with_something_else_is_no_verdict(with_provider: Any, said: Any) -> None:
    trace, asked = await with_provider(said(200, b"<html>Welcome</html>", NOW))
    assert (trace.outcome, len(asked)) == ("infra_failed", 5)
    assert (
        trace.failure == f"the model's provider stayed unusable: {'; '.join(['HTTP 200 without a response in it'] * 5)}"
    )


async def test_a_provider_that_never_answers_is_no_verdict(with_provider: Any, said: Any) -> None:
    trace, _ = await with_provider(replace(said(200, b"", NOW), held=True), attempt_timeout_s=0.5)
    met = "the attempt ended before an answer came"
    assert (trace.outcome, trace.failure) == ("infra_failed", f"no answer ever came from the model's provider: {met}")


async def test_a_key_that_a_provider_repeats_stays_out_of_the_trace(with_provider: Any, said: Any) -> None:
    told = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    trace, _ = await with_provider(said(401, told, NOW))
    assert trace.outcome == "infra_failed"
    assert trace.requests[0].error == "Incorrect API key provided: [the key]"
    assert KEY not in trace.model_dump_json()
