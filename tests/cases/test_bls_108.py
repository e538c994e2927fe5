import json
from collections import Counter
from typing import Any

import pytest

from cases.loader import load_suite, shipped_suites

SUITES = shipped_suites()
FOLDER = SUITES["bls-108"].parent


@pytest.fixture(scope="module")
def generator(program: Any) -> Any:
    return program(FOLDER / "generate.py")


@pytest.fixture(scope="module")
def catalog(program: Any) -> Any:
    model = program(FOLDER / "server.py").Catalog
    return model.model_validate(json.loads((FOLDER / "catalog.json").read_text()))


def test_the_generator_writes_what_is_checked_in(generator: Any) -> None:
    assert generator.catalog_text() == (FOLDER / "catalog.json").read_text()
    assert generator.suite_text() == (FOLDER / "suite.yaml").read_text()


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


def test_both_labor_statistics_suites_run_one_program() -> None:
    programs = {(SUITES[name].parent / "server.py").read_bytes() for name in ("bls", "bls-108")}
    assert len(programs) == 1
