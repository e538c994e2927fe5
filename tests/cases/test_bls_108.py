import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from cases.loader import check_tools, load_suite, shipped_suites

FILE = shipped_suites()["bls-108"]
FOLDER = FILE.parent


@pytest.fixture(scope="module")
def generator(program: Any) -> Any:
    return program(FOLDER / "generate.py")


@pytest.fixture(scope="module")
def catalog(program: Any) -> Any:
    model = program(FOLDER / "server.py").Catalog
    return model.model_validate(json.loads((FOLDER / "catalog-108.json").read_text()))


def test_the_generator_writes_what_is_checked_in(generator: Any) -> None:
    assert generator.catalog_text() == (FOLDER / "catalog-108.json").read_text()
    assert generator.suite_text() == FILE.read_text()


def test_the_traps_have_their_proportions_over_56_surveys() -> None:
    cases = load_suite("bls-108").suite.cases
    assert Counter(case.tags["mechanism"] for case in cases) == {
        "headline": 48,
        "ambiguous_default": 24,
        "ambiguous_concept": 18,
        "coverage_gap": 18,
    }
    assert Counter(case.tags["expected_type"] for case in cases) == {"exact": 72, "clarify": 18, "gap": 18}
    assert len({case.tags["survey"] for case in cases}) == 56


def test_each_question_names_its_indicator_and_resolves_to_its_own_candidates_only(
    generator: Any, catalog: Any
) -> None:
    for question in generator.questions():
        own = [candidate.series_id for candidate in question.candidates]
        for asked in (question.indicator, question.text, question.text.upper()):
            assert question.indicator.casefold() in asked.casefold()
            assert [c["series_id"] for c in catalog.candidates(asked)] == own, asked


def test_no_two_titles_share_a_series(generator: Any) -> None:
    candidates = [candidate for question in generator.questions() for candidate in question.candidates]
    assert len({candidate.series_id for candidate in candidates}) == len(candidates)


def test_the_expectations_follow_from_the_candidates(generator: Any, catalog: Any) -> None:
    fetched_by_mechanism: dict[str, set[int]] = {}
    for question, case in zip(generator.questions(), load_suite("bls-108").suite.cases, strict=True):
        assert case.direct is not None
        best, fetched = tuple(question.best), tuple(question.fetched)
        assert case.turns == (question.text,)
        assert case.direct.arguments == {"indicators": [{"indicator": question.indicator}]}
        assert [check.exactly for check in case.direct.expect.results] == [best]
        assert [check.exactly for check in case.expect.arguments] == [fetched]
        assert case.expect.tools == (("resolve", "fetch_bls_data") if fetched else ("resolve",))
        assert all("error" not in catalog.fetched(series_id) for series_id in best)
        fetched_by_mechanism.setdefault(case.tags["mechanism"], set()).add(len(best))
    assert fetched_by_mechanism == {
        "headline": {1},
        "ambiguous_default": {1},
        "ambiguous_concept": {2},
        "coverage_gap": {0},
    }


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["plain", "guided"])
def test_the_program_answers_from_the_catalog_that_the_suite_names(variant: str, interpreter: str) -> None:
    loaded = load_suite("bls-108")
    calls = [case.direct for case in loaded.suite.cases if case.direct is not None]
    indicators = [indicator for call in calls for indicator in call.arguments["indicators"]]  # type: ignore[union-attr]
    env = loaded.suite.server_of(variant).env

    async def seen() -> tuple[list[str], list[dict[str, Any]]]:
        async with Client(StdioTransport(interpreter, ["server.py"], env=env, cwd=str(FOLDER))) as client:
            resolved = await client.call_tool("resolve", {"indicators": indicators})
            return [tool.name for tool in await client.list_tools()], resolved.structured_content["results"]

    tools, results = asyncio.run(seen())
    check_tools(loaded, variant, tools)
    for call, result in zip(calls, results, strict=True):
        top = max((c["confidence"] for c in result["candidates"]), default=None)
        best = tuple(c["series_id"] for c in result["candidates"] if c["confidence"] == top)
        assert best == call.expect.results[0].exactly


def test_both_labor_statistics_suites_test_one_plugin() -> None:
    small, large = load_suite("bls").suite, load_suite("bls-108").suite
    assert (large.plugin, large.variants, large.loop) == (small.plugin, small.variants, small.loop)
    assert large.server.env == {"BLS_CATALOG": "catalog-108.json"}
    assert large.server.model_copy(update={"env": {}}) == small.server
