import asyncio
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.base import digest
from evalfarm.contracts.run import Plan
from evalfarm.errors import (
    EvalFarmError,
    InfrastructureError,
    ModelUnavailable,
    ServerUnavailable,
    UnknownName,
    UsageError,
)
from scheduler.planner import Measured, manifest_of
from worker.gateways.tool_gateway import result_value
from worker.plugin_server import PluginServer
from worker.rooms import sweep
from worker.station import Station, plugin_source

pytestmark = pytest.mark.anyio

FILES = {"server.py": b"print(1)\n", "plugin/skills/run.sh": b"#!/bin/sh\n"}


def enter(station: Station, plan: Plan, files: dict[str, bytes]) -> Plan:
    """Store a run as a scheduler would; its plan names the files."""
    stored = {name: station.store.put_blob(data) for name, data in files.items()}
    plan = plan.model_copy(update={"files": stored, "executables": ("plugin/skills/run.sh",)})
    station.store.put_plan(plan)
    measured = Measured(versions={}, digests={}, simulated=True)
    station.store.put_manifest(manifest_of(plan, measured, created_at=0, label=None, filters={}))
    return plan


async def test_a_run_is_laid_out_with_its_files_and_their_program_bits(
    open_station: Any, planned: Any, suite: Any
) -> None:
    async with open_station() as station:
        plan = enter(station, planned(suite())[0].plan, FILES)
        prepared = await station.prepare("r1")
        assert prepared is await station.prepare("r1")
    assert prepared.plan == plan
    found = {path: path.stat().st_mode for path in prepared.folder.rglob("*") if path.is_file()}
    assert {str(path.relative_to(prepared.folder)): path.read_bytes() for path in found} == FILES
    assert {path.name for path, mode in found.items() if mode & stat.S_IXUSR} == {"run.sh"}


async def test_runs_over_the_same_suite_and_files_share_one_place_and_others_do_not(
    open_station: Any, planned: Any, suite: Any
) -> None:
    async with open_station() as station:
        plan = planned(suite())[0].plan
        changed = {**FILES, "server.py": b"print(2)\n"}
        for run, files in (("a", FILES), ("b", FILES), ("c", changed)):
            enter(station, plan.model_copy(update={"run": run}), files)
        folders = [(await station.prepare(run)).folder for run in "abc"]
    assert (folders[0] == folders[1], folders[0] == folders[2]) == (True, False)
    assert sorted(path.name for path in folders[0].parent.iterdir()) == sorted({folder.name for folder in folders})


async def test_two_workers_that_lay_out_the_same_run_at_once_agree(open_station: Any, planned: Any, suite: Any) -> None:
    async with open_station() as one, open_station() as two:
        two.store = one.store
        enter(one, planned(suite())[0].plan, FILES)
        first, second = await asyncio.gather(one.prepare("r1"), two.prepare("r1"))
    assert first == second


async def test_a_plan_that_is_not_the_one_in_its_manifest_is_refused(
    open_station: Any, planned: Any, suite: Any
) -> None:
    async with open_station() as station:
        plan = planned(suite())[0].plan
        station.store.put_plan(plan)
        measured = Measured(versions={}, digests={"plan": digest("another")}, simulated=True)
        station.store.put_manifest(manifest_of(plan, measured, created_at=0, label=None, filters={}))
        with pytest.raises(InfrastructureError) as caught:
            await station.prepare("r1")
    assert caught.value.message == "the stored plan of run 'r1' is not the one in its manifest"


async def test_a_run_that_does_not_exist_is_named(open_station: Any) -> None:
    async with open_station() as station:
        with pytest.raises(UnknownName, match="r1"):
            await station.prepare("r1")


async def test_attempts_share_the_workers_server(open_station: Any, planned: Any, suite: Any, shop_at: Any) -> None:
    async with open_station() as station, shop_at() as url, AsyncExitStack() as stack:
        prepared, _ = planned(suite(server={"url": url}))
        started = asyncio.gather(*(station.server(prepared, "plain", stack) for _ in range(3)))
        assert len({id(server) for server in await started}) == 1


async def test_variants_have_servers_of_their_own(open_station: Any, planned: Any, suite: Any, shop_at: Any) -> None:
    async with open_station() as station, shop_at() as one, shop_at() as two, AsyncExitStack() as stack:
        variants = {"plain": {}, "other": {"server": {"url": two}}}
        prepared, _ = planned(suite(server={"url": one}, variants=variants))
        servers = [await station.server(prepared, variant, stack) for variant in variants]
    assert servers[0] is not servers[1]


async def counted_by(server: PluginServer) -> Any:
    value = result_value(await server.call("count", {}))
    assert isinstance(value, dict)
    return value["called"]


@pytest.mark.slow
async def test_a_server_that_keeps_state_is_fresh_for_every_attempt_and_ends_with_it(
    open_station: Any, planned: Any, suite: Any, servers: Path
) -> None:
    async with open_station() as station:
        prepared, _ = planned(suite(server={"python": "bare.py", "stateful": True}), folder=servers)
        counted = []
        for _ in range(2):
            async with AsyncExitStack() as attempt:
                server = await station.server(prepared, "plain", attempt)
                counted += [await counted_by(server), await counted_by(server)]
            assert await server.is_up() is False
    assert counted == [1, 2, 1, 2]


@pytest.mark.slow
async def test_a_server_that_died_is_replaced_for_the_next_attempt(
    open_station: Any, planned: Any, suite: Any, servers: Path
) -> None:
    async with open_station() as station, AsyncExitStack() as attempt:
        prepared, _ = planned(suite(server={"python": "bare.py"}), folder=servers)
        first = await station.server(prepared, "plain", attempt)
        assert [await counted_by(first), await counted_by(await station.server(prepared, "plain", attempt))] == [1, 2]
        with pytest.raises(Exception, match="Connection closed"):
            await first.call("die", {})
        assert await counted_by(await station.server(prepared, "plain", attempt)) == 1


@pytest.mark.slow
async def test_a_server_that_does_not_come_up_is_tried_again_by_the_next_attempt(
    open_station: Any, planned: Any, suite: Any, servers: Path, tmp_path: Path
) -> None:
    async with open_station() as station, AsyncExitStack() as attempt:
        prepared, _ = planned(suite(server={"python": "late.py"}), folder=tmp_path)
        with pytest.raises(ServerUnavailable):
            await station.server(prepared, "plain", attempt)
        (tmp_path / "late.py").write_text((servers / "bare.py").read_text())
        assert await counted_by(await station.server(prepared, "plain", attempt)) == 1


async def test_there_is_one_way_to_the_simulated_models_of_a_suite_and_one_to_the_provider(
    open_station: Any, planned: Any, suite: Any
) -> None:
    async with open_station(OPENAI_API_KEY="sk-x", OPENAI_BASE_URL="http://127.0.0.1:9/v1") as station:
        prepared, _ = planned(suite())
        models = ("sim-careful", "sim-flaky", "gpt-x", "gpt-y")
        ways = [await station.upstream(prepared, model) for model in models]
        assert [way.simulated for way in ways] == [True, True, False, False]
        assert [str(way.carrier.base) for way in ways[2:]] == ["http://127.0.0.1:9/v1"] * 2
        assert (ways[0].carrier is ways[1].carrier, ways[2].carrier is ways[3].carrier) == (True, True)
        assert dict(ways[2].headers) == {"authorization": "Bearer sk-x"}
        assert [way.gate.model for way in ways] == list(models)


@pytest.mark.parametrize(
    ("proxies", "target"),
    [
        ({}, "/v1/responses"),
        ({"HTTP_PROXY": "the provider"}, "http://127.0.0.1:{port}/v1/responses"),
        ({"ALL_PROXY": "the provider", "NO_PROXY": "127.0.0.1"}, "/v1/responses"),
    ],
    ids=["none", "one", "not-for-this-provider"],
)
async def test_requests_take_the_proxy_that_the_environment_names(
    open_station: Any,
    planned: Any,
    suite: Any,
    monkeypatch: pytest.MonkeyPatch,
    proxies: dict[str, str],
    target: str,
) -> None:
    lines: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines.append(head.splitlines()[0])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        for name, value in proxies.items():
            monkeypatch.setenv(name, value.replace("the provider", f"http://127.0.0.1:{port}"))
        async with open_station(OPENAI_API_KEY="sk-x", OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1") as station:
            way = await station.upstream(planned(suite())[0], "gpt-x")
            told = await way.carrier.post("/responses", {}, b"{}")
            assert (told.status_code, await told.aread()) == (200, b"{}")
    assert lines == [f"POST {target.format(port=port)} HTTP/1.1"]


@pytest.mark.parametrize("proxied", [False, True])
async def test_the_key_says_who_asks_whatever_else_the_address_holds(
    open_station: Any, planned: Any, suite: Any, monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    heads: list[list[str]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        here = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", f"http://{here}")
        base = f"http://me:word@{here}/v1?version=2"
        async with open_station(OPENAI_API_KEY="sk-x", OPENAI_BASE_URL=base) as station:
            way = await station.upstream(planned(suite())[0], "gpt-x")
            await (await way.carrier.post("/responses", way.headers, b"{}")).aread()
    (head,) = heads
    asked = f"post {f'http://{here}' if proxied else ''}/v1/responses?version=2 http/1.1"
    assert (head[0], [line for line in head if line.startswith("authorization")]) == (
        asked,
        ["authorization: bearer sk-x"],
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "OPENAI_API_KEY",
            "sk-one\nsk-two",
            "OPENAI_API_KEY cannot be sent: it holds a line break, or a character that is no ASCII",
        ),
        (
            "OPENAI_API_KEY",
            "\u201csk-one\u201d",
            "OPENAI_API_KEY cannot be sent: it holds a line break, or a character that is no ASCII",
        ),
        ("OPENAI_BASE_URL", "http://me:word@host:port/v1", "OPENAI_BASE_URL is no address: 'http://host:port/v1'"),
    ],
)
async def test_a_key_or_an_address_that_no_request_can_be_sent_with_is_named_and_not_shown(
    open_station: Any, planned: Any, suite: Any, name: str, value: str, message: str
) -> None:
    async with open_station(**{"OPENAI_API_KEY": "sk-x", name: value}) as station:
        error = await error_of(station, planned(suite())[0], "gpt-x")
    assert (type(error), error.message) == (ModelUnavailable, message)


async def error_of(station: Station, prepared: Any, model: str) -> EvalFarmError:
    with pytest.raises(EvalFarmError) as caught:
        await station.upstream(prepared, model)
    return caught.value


async def test_a_model_that_cannot_be_had_says_what_to_do(open_station: Any, planned: Any, suite: Any) -> None:
    async with open_station() as station:
        keyless = await error_of(station, planned(suite())[0], "gpt-x")
        unscripted = await error_of(station, planned(suite(simulation=None))[0], "sim-careful")
    assert (type(keyless), keyless.hint) == (
        ModelUnavailable,
        "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: sim-careful",
    )
    assert (type(unscripted), unscripted.hint) == (
        UsageError,
        "add `simulation:` to the suite (docs/guides/your-plugin.md), or run a real model",
    )


def test_a_variant_may_bring_a_plugin_folder_of_its_own(suite: Any) -> None:
    variants = {"plain": {}, "other": {"plugin_path": "other"}}
    bare, own = suite(variants=variants), suite(variants=variants, plugin={"name": "Shop", "path": "plugin"})
    found = [plugin_source(one, variant, Path("/suite")) for one in (bare, own) for variant in variants]
    assert found == [None, Path("/suite/other"), Path("/suite/plugin"), Path("/suite/other")]


async def test_when_a_station_closes_nothing_of_its_rooms_is_left(
    open_station: Any, planned: Any, suite: Any, shop_at: Any
) -> None:
    async with open_station() as station, shop_at() as url, AsyncExitStack() as stack:
        await station.server(planned(suite(server={"url": url}))[0], "plain", stack)
        assert [room.name for room in station.rooms.parent.iterdir()] == [station.rooms.name]
    assert list(station.rooms.parent.iterdir()) == []


KILLED = """
import asyncio, sys
from evalfarm.settings import load_settings
from evalfarm.store import Store
from worker.station import Station

async def main():
    settings = load_settings({"EVALFARM_HOME": sys.argv[1]})
    station = await Station(settings, Store("memory://"), {}).open()
    print(station.rooms, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another worker, in a process of its own; it prints where its rooms are."""
    argv = [sys.executable, "-c", KILLED, str(tmp_path / "home")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.slow
async def test_the_rooms_of_a_killed_worker_are_swept_and_those_of_a_living_one_are_not(
    open_station: Any, other: Any
) -> None:
    theirs = other.stdout.readline().strip()
    async with open_station() as station:
        both = {theirs, str(station.rooms)}
        rooms = [{str(path) for path in station.rooms.parent.iterdir()}]
        other.kill()
        other.wait()
        sweep(station.rooms.parent)
        rooms.append({str(path) for path in station.rooms.parent.iterdir()})
    assert rooms == [both, {str(station.rooms)}]
