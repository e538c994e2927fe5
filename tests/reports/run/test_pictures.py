import re
from collections.abc import Callable, Iterable
from xml.etree import ElementTree

import pytest

from evalfarm.contracts.verdict import CaseSummary, RateOfK, Result, RunSummary, Verdict
from evalfarm.reports.run import pairs, pictures, plots
from evalfarm.reports.run.pictures import Picture

Summarized = Callable[[Iterable[Result]], RunSummary]


@pytest.fixture
def drawn(summary: RunSummary) -> dict[str, Picture]:
    return {picture.anchor: picture for picture in pictures.pictures(summary)}


@pytest.fixture
def two_arms(summary: RunSummary) -> RunSummary:
    """The run as if only codex with and without guidance had run."""
    cells = tuple(cell for cell in summary.cells if (cell.model, cell.harness) == ("sim-careful", "codex"))
    return summary.model_copy(update={"cells": cells})


def shapes(svg: str) -> list[ElementTree.Element]:
    """Every element of a drawing, which must be well-formed."""
    return list(ElementTree.fromstring(svg).iter())


def test_a_run_of_many_arms_has_a_map_curves_and_latencies(drawn: dict[str, Picture]) -> None:
    assert list(drawn) == ["steadiness-map", "flip-curves", "latencies"]
    assert [len(picture.drawings) for picture in drawn.values()] == [6, 6, 1]


def test_the_map_counts_in_its_table_what_it_draws(drawn: dict[str, Picture]) -> None:
    picture = drawn["steadiness-map"]
    flaky = picture.drawings[-1]
    assert flaky.caption == "sim-flaky · codex · plain"
    fields = {
        str(shape.get("class")).removeprefix("heat-"): str(shape.get("d")).count("M")
        for shape in shapes(flaky.svg)
        if str(shape.get("class")).startswith("heat-")
    }
    assert fields == {"passed": 11, "failed": 1, "inconclusive": 1, "infra_failed": 1, "not_run": 1}
    rows = [row for row in picture.table.rows if row[1] == "sim-flaky"]
    assert [sum(int(row[at]) for row in rows) for at in range(4, 9)] == list(fields.values())


def test_the_steadiest_case_is_the_first_row(drawn: dict[str, Picture]) -> None:
    labels = [shape.text for shape in shapes(drawn["steadiness-map"].drawings[-1].svg) if shape.tag == "text"]
    assert (labels[0], labels[-1]) == ("labor-force-participation", "unemployment-rate")


def test_a_hundred_repeats_of_many_cases_fit_the_page() -> None:
    verdicts: tuple[Verdict, ...] = ("passed", "failed") * 50
    cases = [
        CaseSummary(
            case=f"c{n}", model="m", harness="h", variant="v", labels={}, trials=tuple(range(100)), verdicts=verdicts
        )
        for n in range(108)
    ]
    drawing = shapes(plots.heat_map(cases))[0]
    assert float(str(drawing.get("width"))) <= 720
    assert float(str(drawing.get("height"))) < 1000


def test_a_curve_has_a_point_and_a_whisker_per_number_of_repeats(summary: RunSummary) -> None:
    curve = summary.cells[-1].rarefied_flips
    kinds = [shape.get("class") for shape in shapes(plots.flips_by_repeats(curve))]
    assert (kinds.count("point"), kinds.count("whisker")) == (len(curve), len(curve)) == (2, 2)


def test_nothing_decided_draws_nothing(summarized: Summarized, summary: RunSummary) -> None:
    empty = summarized([])
    assert [picture.anchor for picture in pictures.pictures(empty)] == ["steadiness-map"]
    assert plots.latencies(empty.cells) == ""
    undecided = [RateOfK(k=2, rate=empty.cells[0].pass_rate, cases=0, dropped=0)]
    assert plots.flips_by_repeats(undecided) == ""


def test_two_arms_that_differ_in_one_thing_are_paired_case_by_case(two_arms: RunSummary) -> None:
    pair = pairs.pair_of(two_arms)
    assert pair is not None
    assert (pair.baseline.variant, pair.candidate.variant) == ("plain", "guided")
    assert dict(pair.differences) == {
        "unemployment-rate": 0.0,
        "labor-force-participation": 0.0,
        "nonfarm-payroll": 0.0,
        "consumer-price-index": 1.0,
        "employment-ambiguous": 1.0,
    }
    assert pair.mean.value == pytest.approx(0.4)
    picture = next(picture for picture in pictures.pictures(two_arms) if picture.anchor == "paired")
    kinds = [shape.get("class") for shape in shapes(picture.drawings[0].svg)]
    assert (kinds.count("point"), kinds.count("band"), kinds.count("mean")) == (5, 1, 1)
    assert [row for row in picture.table.rows if row[1] != "0.0"] == [
        ("consumer-price-index", "100.0"),
        ("employment-ambiguous", "100.0"),
    ]


def test_arms_that_differ_in_more_or_have_no_case_in_common_are_not_paired(
    summary: RunSummary, two_arms: RunSummary, summarized: Summarized
) -> None:
    one, other = two_arms.cells
    for cells in (summary.cells, two_arms.cells[:1], (one, other.model_copy(update={"model": "x"}))):
        assert pairs.pair_of(summary.model_copy(update={"cells": cells})) is None
    assert pairs.pair_of(summarized([]).model_copy(update={"cells": two_arms.cells})) is None


def test_words_in_a_drawing_are_text_and_never_mark_up(summary: RunSummary) -> None:
    hostile = summary.cases[0].model_copy(update={"case": '<script x="1">&'})
    source = plots.heat_map([hostile])
    assert "<script" not in source
    assert '<script x="1">&' in [shape.text for shape in shapes(source)]


def test_the_latency_axis_is_marked_in_powers_of_ten(summary: RunSummary) -> None:
    texts = [shape.text for shape in shapes(plots.latencies(summary.cells)) if shape.tag == "text"]
    assert texts[:5] == ["0.001 s", "0.01 s", "0.1 s", "1 s", "10 s"]
    assert not re.search(r"nan|inf", plots.latencies(summary.cells))
