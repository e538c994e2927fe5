import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from cases.loader import check_tools, load_suite, select_cases, shipped_suites

FOLDER = shipped_suites()["bls"].parent
GUIDANCE = (
    "Answer only from this catalog. Call resolve first, with the indicator as the user asked for it. "
    "Fetch only series IDs that resolve returned, never one from your own knowledge. "
    "If resolve returns no candidate, say that the data is not available. "
    "If candidates tie for the highest confidence, fetch nothing and ask the user which one is meant."
)
UNEMPLOYMENT = [("LNS14000000", 1.0), ("LNU04000000", 0.6)]
PARTICIPATION = [("LNS11300000", 1.0)]
PAYROLLS = [("CES0000000001", 1.0)]
EMPLOYMENT = [("LNS12000000", 0.5), ("CES0000000001", 0.5)]


@pytest.fixture(scope="module")
def server(program: Any) -> Any:
    return program(FOLDER / "server.py")


def called(server: Any, tool: str, arguments: dict[str, Any]) -> Any:
    async def call() -> Any:
        async with Client(server) as client:
            return (await client.call_tool(tool, arguments)).structured_content

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("indicator", "candidates"),
    [
        ("unemployment rate", UNEMPLOYMENT),
        ("Unemployment", UNEMPLOYMENT),
        ("labor force participation rate", PARTICIPATION),
        ("nonfarm payrolls", PAYROLLS),
        ("nonfarm employment", PAYROLLS),
        ("payroll  employment", PAYROLLS),
        ("employment", EMPLOYMENT),
        ("level of employment", EMPLOYMENT),
        ("consumer price index", []),
        ("labor force", []),
    ],
)
def test_an_indicator_resolves_to_its_ranked_candidates(
    server: Any, indicator: str, candidates: list[tuple[str, float]]
) -> None:
    [result] = called(server.mcp, "resolve", {"indicators": [{"indicator": indicator}]})["results"]
    assert [(c["series_id"], c["confidence"]) for c in result["candidates"]] == candidates


def test_a_resolved_indicator_shows_titles(server: Any) -> None:
    assert called(server.mcp, "resolve", {"indicators": [{"indicator": "participation"}]}) == {
        "results": [
            {
                "indicator": "participation",
                "candidates": [
                    {
                        "series_id": "LNS11300000",
                        "title": "Labor force participation rate, seasonally adjusted, percent (synthetic)",
                        "confidence": 1.0,
                    }
                ],
            }
        ]
    }


def test_a_gap_is_said_to_be_definitive(server: Any) -> None:
    assert called(server.mcp, "resolve", {"indicators": [{"indicator": "inflation"}]}) == {
        "results": [
            {
                "indicator": "inflation",
                "candidates": [],
                "note": "No series in this catalog matches. This is definitive, not a passing fault: "
                "asking again changes nothing.",
            }
        ]
    }


def test_several_indicators_are_answered_in_order(server: Any) -> None:
    asked = {"indicators": [{"indicator": "inflation"}, {"indicator": "payroll"}]}
    results = called(server.mcp, "resolve", asked)["results"]
    assert [(r["indicator"], len(r["candidates"])) for r in results] == [("inflation", 0), ("payroll", 1)]


def test_fetching_gives_observations_or_an_error_record_for_each_series(server: Any) -> None:
    assert called(server.mcp, "fetch_bls_data", {"series_ids": ["LNS14000000", "CUUR0000SA0"]}) == {
        "series": [
            {
                "series_id": "LNS14000000",
                "title": "Unemployment rate, seasonally adjusted, percent (synthetic)",
                "observations": [
                    {"period": "2025-04", "value": 4.1},
                    {"period": "2025-05", "value": 4.3},
                    {"period": "2025-06", "value": 4.2},
                ],
                "synthetic": True,
            },
            {"series_id": "CUUR0000SA0", "error": "This catalog has no series with this ID."},
        ]
    }


@pytest.mark.parametrize("series", ["LNS14000000", "LNU04000000", "LNS11300000", "CES0000000001", "LNS12000000"])
def test_every_candidate_can_be_fetched(server: Any, series: str) -> None:
    [record] = called(server.mcp, "fetch_bls_data", {"series_ids": [series]})["series"]
    assert sorted(record) == ["observations", "series_id", "synthetic", "title"]


@pytest.mark.parametrize(("guidance", "instructions"), [(False, None), (True, GUIDANCE)])
def test_instructions_are_published_only_with_guidance(server: Any, guidance: bool, instructions: str | None) -> None:
    async def published() -> str | None:
        catalog = server.Catalog.model_validate(json.loads((FOLDER / "catalog.json").read_text()))
        async with Client(server.build_server(catalog, guidance=guidance)) as client:
            told: str | None = client.instructions
            return told

    assert asyncio.run(published()) == instructions


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "instructions"), [("plain", None), ("guided", GUIDANCE)])
def test_the_program_speaks_stdio_and_each_variant_shows_its_instructions(
    variant: str, instructions: str | None, interpreter: str
) -> None:
    loaded = load_suite("bls")
    env = loaded.suite.server_of(variant).env

    async def seen() -> tuple[str | None, list[str]]:
        async with Client(StdioTransport(interpreter, ["server.py"], env=env, cwd=str(FOLDER))) as client:
            return client.instructions, [tool.name for tool in await client.list_tools()]

    told, tools = asyncio.run(seen())
    assert told == instructions
    check_tools(loaded, variant, tools)


def test_the_cases_and_their_tags() -> None:
    suite = load_suite("bls").suite
    assert {case.id: tuple(case.tags.values()) for case in suite.cases} == {
        "unemployment-rate": ("ambiguous_default", "exact"),
        "labor-force-participation": ("headline", "exact"),
        "nonfarm-payroll": ("headline", "exact"),
        "consumer-price-index": ("coverage_gap", "gap"),
        "employment-ambiguous": ("ambiguous_concept", "clarify"),
    }
    assert select_cases(suite, {"mechanism": "coverage_gap"}) == ("consumer-price-index",)


@pytest.mark.parametrize(
    ("case_id", "direct", "tools", "fetched"),
    [
        ("unemployment-rate", ("LNS14000000",), ("resolve", "fetch_bls_data"), ("LNS14000000",)),
        ("labor-force-participation", ("LNS11300000",), ("resolve", "fetch_bls_data"), ("LNS11300000",)),
        ("nonfarm-payroll", ("CES0000000001",), ("resolve", "fetch_bls_data"), ("CES0000000001",)),
        ("consumer-price-index", (), ("resolve",), ()),
        ("employment-ambiguous", ("LNS12000000", "CES0000000001"), ("resolve",), ()),
    ],
)
def test_what_each_case_expects(
    case_id: str, direct: tuple[str, ...], tools: tuple[str, ...], fetched: tuple[str, ...]
) -> None:
    case = load_suite("bls").suite.case(case_id)
    assert case.direct is not None
    assert [check.exactly for check in case.direct.expect.results] == [direct]
    assert case.expect.tools == tools
    assert [check.exactly for check in case.expect.arguments] == [fetched]
    assert [check.exactly for check in case.expect.results] == ([fetched] if fetched else [])


def test_the_direct_form_of_each_case_meets_its_expectation(server: Any) -> None:
    for case in load_suite("bls").suite.cases:
        assert case.direct is not None
        [result] = called(server.mcp, case.direct.tool, dict(case.direct.arguments))["results"]
        top = max((c["confidence"] for c in result["candidates"]), default=None)
        best = tuple(c["series_id"] for c in result["candidates"] if c["confidence"] == top)
        assert best == case.direct.expect.results[0].exactly, case.id


def test_the_plugin_is_packaged_as_codex_wants_it() -> None:
    plugin: Path = FOLDER / "plugin"
    manifest = json.loads((plugin / ".codex-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"], manifest["mcpServers"]) == ("BLS", "1.0.0", "./.mcp.json")
    assert json.loads((plugin / ".mcp.json").read_text()) == {
        "mcpServers": {
            "BLS": {
                "type": "http",
                "url": "http://127.0.0.1:8123/mcp",
                "required": True,
                "default_tools_approval_mode": "approve",
                "startup_timeout_sec": 20,
            }
        }
    }
