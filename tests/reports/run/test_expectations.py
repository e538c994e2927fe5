from evalfarm.contracts.verdict import Asked, CaseSummary
from evalfarm.reports.run.expectations import Wanted, wanted

ASKED = Asked(
    case="c", turns=("What?", "And?"), expected=("calls of find",), call="find(x=1)", expected_of_call=("found",)
)


def case(harness: str, **labels: int) -> CaseSummary:
    return CaseSummary.model_validate(
        {"case": "c", "model": "m", "harness": harness, "variant": "v", "labels": {"passed": 1, **labels}}
    )


def test_what_was_wanted_is_that_of_the_level() -> None:
    found = [wanted({"c": ASKED}, case(harness, failed=1)) for harness in ("direct", "loop")]
    assert found == [Wanted("find(x=1)", ("found",)), Wanted("What? / And?", ("calls of find",))]


def test_it_is_told_in_two_lines_and_in_one_where_nothing_is_declared() -> None:
    assert Wanted("What?", ("calls of find", "no call of buy")).lines == (
        "asked: What?",
        "expected: calls of find; no call of buy",
    )
    assert Wanted("What?", ()).lines == ("asked: What?",)


def test_nothing_is_told_of_unknown_cases_and_of_what_was_never_judged() -> None:
    assert wanted({}, case("loop", failed=1)) is None
    assert wanted({"c": ASKED}, case("loop", infra_failed=1)) is None
