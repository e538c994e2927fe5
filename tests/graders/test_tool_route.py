from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case
from evalfarm.contracts.verdict import Label
from graders.tool_route import judge_route

Traced = Callable[..., Trace]

CPI = "CUUR0000SA0"


def passed() -> Label:
    return Label(grader="tool_route", version="2", value="PASS")


def failed(*reasons: str) -> Label:
    return Label(grader="tool_route", version="2", value="FAIL", reasons=reasons)


def case_that_expects(**expect: Any) -> Case:
    return Case.model_validate({"id": "headline", "query": "q", "expect": expect})


def fetching(*ids: Any, error: str | None = None) -> ToolCall:
    records = [{"series_id": i, "error": None} for i in ids]
    return ToolCall(
        name="fetch_data",
        arguments={"series_ids": list(ids)},
        result=None if error else {"series": records},
        error=error,
    )


def test_the_expected_route_passes(headline: Case, traced: Traced, resolve: ToolCall, fetch: ToolCall) -> None:
    assert judge_route(headline, traced(resolve, fetch)) == passed()


def test_direct_is_judged_by_its_own_expectation_and_needs_no_answer(
    headline: Case, traced: Traced, resolve: ToolCall
) -> None:
    assert judge_route(headline, traced(resolve, harness="direct", turns=())) == passed()


def test_every_reason_is_collected(headline: Case, traced: Traced) -> None:
    trace = traced(
        fetching(CPI),
        fetching("X", error="upstream is down\nTraceback"),
        outcome="timed_out",
        failure="no answer within 300 s",
        turns=(),
    )
    assert judge_route(headline, trace) == failed(
        "the run timed out: no answer within 300 s",
        "the answer is empty",
        "resolve was never called",
        "fetch_data was asked for 'CUUR0000SA0', 'X', which are outside the expected set ('LNS14000000')",
        "fetch_data was not asked for 'LNS14000000'",
        "fetch_data did not return 'LNS14000000'",
        "fetch_data failed: upstream is down",
    )


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("gave_up", "the run gave up before it answered: 4 rounds"),
        ("timed_out", "the run timed out: 4 rounds"),
        ("crashed", "the harness crashed on this case: 4 rounds"),
    ],
)
def test_a_run_that_did_not_finish_fails_with_its_end(traced: Traced, outcome: str, reason: str) -> None:
    assert judge_route(case_that_expects(), traced(outcome=outcome, failure="4 rounds")) == failed(reason)


def test_only_the_last_turn_must_be_answered(traced: Traced) -> None:
    case = case_that_expects()
    empty, full = Turn(query="q", answer=" \n"), Turn(query="q", answer="yes")
    assert judge_route(case, traced(turns=(empty, full))) == passed()
    assert judge_route(case, traced(turns=(full, empty))) == failed("the answer is empty")


@pytest.mark.parametrize(
    ("comparison", "ids", "reasons"),
    [
        ({"exactly": ["A", "B"]}, ["B", "A", "A"], ()),
        ({"exactly": []}, [], ()),
        ({"exactly": []}, [CPI], (f"fetch_data was asked for '{CPI}', which is outside the expected set (nothing)",)),
        ({"exactly": ["A"]}, [], ("fetch_data was not asked for 'A'",)),
        ({"includes": ["A"]}, ["A", "B"], ()),
        ({"includes": ["A", "B"]}, ["B"], ("fetch_data was not asked for 'A'",)),
        ({"within": ["A", "B"]}, ["B"], ()),
        ({"within": ["A"]}, ["B"], ("fetch_data was asked for 'B', which is outside the expected set ('A')",)),
        ({"exactly": [1]}, [True], (
            "fetch_data was asked for true, which is outside the expected set (1)",
            "fetch_data was not asked for 1",
        )),
        ({"exactly": ["A"]}, ["A", {"b": 1}], (
            "fetch_data was asked for '{\"b\": 1}', which is outside the expected set ('A')",
        )),
    ],
)  # fmt: skip
def test_arguments_are_compared_as_sets(
    traced: Traced, comparison: dict[str, Any], ids: list[Any], reasons: tuple[str, ...]
) -> None:
    case = case_that_expects(arguments=[{"tool": "fetch_data", "at": "series_ids[*]", **comparison}])
    expected = failed(*reasons) if reasons else passed()
    assert judge_route(case, traced(*(fetching(one) for one in ids))) == expected
    assert judge_route(case, traced(fetching(*ids))) == expected


def test_asking_counts_even_where_the_call_failed(traced: Traced) -> None:
    case = case_that_expects(arguments=[{"tool": "fetch_data", "at": "series_ids[*]", "exactly": []}])
    assert judge_route(case, traced(fetching(CPI, error="unknown series"))) == failed(
        f"fetch_data was asked for '{CPI}', which is outside the expected set (nothing)",
        "fetch_data failed: unknown series",
    )


def test_results_of_failed_calls_do_not_count(traced: Traced) -> None:
    case = case_that_expects(
        tools=["fetch_data"],
        results=[{"tool": "fetch_data", "at": "series[*]", "field": "series_id", "includes": ["A"]}],
    )
    assert judge_route(case, traced(fetching("A", error=""))) == failed(
        "fetch_data was called, but no call of it succeeded",
        "fetch_data did not return 'A'",
        "fetch_data failed: it gave no reason",
    )


def test_a_forbidden_tool_fails_the_route_once(traced: Traced) -> None:
    case = case_that_expects(never=["fetch_data"])
    assert judge_route(case, traced(fetching("A"), fetching("B"))) == failed(
        "fetch_data was called, and this case expects that it is not"
    )


CANDIDATES = {"tool": "resolve", "at": "results[*].candidates[*]", "highest": "confidence", "field": "id"}


def resolving(*lists: list[dict[str, Any]]) -> ToolCall:
    return ToolCall(name="resolve", arguments={}, result={"results": [{"candidates": one} for one in lists]})


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        ([[{"id": "A", "confidence": 1.0}, {"id": "B", "confidence": 0.6}]], ["A"]),
        ([[{"id": "A", "confidence": 0.5}, {"id": "B", "confidence": 0.5}]], ["A", "B"]),
        ([[{"id": "A", "confidence": 1}], [{"id": "B", "confidence": 0.2}]], ["A", "B"]),
        ([[{"id": "A"}, {"id": "B", "confidence": 0.1}]], ["B"]),
        ([[{"id": "A", "confidence": True}]], []),
        ([[]], []),
    ],
)
def test_highest_keeps_the_top_of_each_list_with_ties(
    traced: Traced, lists: list[list[dict[str, Any]]], kept: list[str]
) -> None:
    case = case_that_expects(results=[{**CANDIDATES, "exactly": kept}])
    assert judge_route(case, traced(resolving(*lists))) == passed()


def test_a_record_with_an_error_fails_the_check_and_holds_no_value(traced: Traced) -> None:
    case = case_that_expects(
        results=[{"tool": "f", "at": "series[*]", "without": "error", "field": "id", "exactly": ["A"]}]
    )
    call = ToolCall(name="f", result={"series": [{"id": "A"}, {"id": "X", "error": {"code": 404}}]})
    assert judge_route(case, traced(call)) == failed('f returned a record with error: {"code": 404}')


def test_text_results_are_read_as_json_where_they_are_json(traced: Traced) -> None:
    case = case_that_expects(results=[{"tool": "now", "at": "timezone", "exactly": ["UTC"]}])
    assert judge_route(case, traced(ToolCall(name="now", result='{"timezone": "UTC"}'))) == passed()
    assert judge_route(case, traced(ToolCall(name="now", result="UTC"))) == failed(
        "now did not return 'UTC': nothing was found at `timezone`, at the top there is text"
    )


def test_arguments_that_are_no_object_fail_though_they_never_reached_the_server(traced: Traced) -> None:
    broken = ToolCall(name="fetch_data", arguments='{"series_ids": [', error="not valid JSON")
    assert judge_route(case_that_expects(), traced(tool_calls=(broken, broken))) == failed(
        'fetch_data was called with arguments that are no JSON object: {"series_ids": ['
    )


def test_a_failure_is_told_once_in_the_servers_words(traced: Traced) -> None:
    served = (ToolCall(name="f", error="no such series"),)
    told = (ToolCall(name="f", error="tool call error: no such series"), ToolCall(name="g", error="no such tool"))
    assert judge_route(case_that_expects(), traced(tool_calls=told, served_calls=served)) == failed(
        "f failed: no such series", "g failed: no such tool"
    )


@pytest.mark.parametrize(
    ("gaps", "reasons"),
    [(("the harness saw 2 calls, the gateway 1",),) * 2, ((), ("telemetry is incomplete",))],
)
def test_incomplete_telemetry_concludes_nothing(
    headline: Case, traced: Traced, gaps: tuple[str, ...], reasons: tuple[str, ...]
) -> None:
    trace = traced(outcome="crashed", telemetry=Telemetry(complete=False, gaps=gaps))
    assert judge_route(headline, trace) == Label(
        grader="tool_route", version="2", value="INCONCLUSIVE", reasons=reasons
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "infra_failed"}, "infrastructure ended"),
        ({"case": "other"}, "cannot be graded as case 'headline'"),
        ({"harness": "direct"}, "has no direct call"),
    ],
)
def test_what_cannot_be_graded_is_refused(traced: Traced, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        judge_route(case_that_expects(), traced(**changes))


CALLS = st.lists(
    st.builds(
        fetching,
        st.sampled_from(["LNS14000000", CPI, "X"]),
        error=st.sampled_from([None, None, "unknown series", "upstream is down"]),
    )
    | st.builds(
        ToolCall,
        name=st.sampled_from(["resolve", "fetch_data", "shell"]),
        arguments=st.sampled_from([None, {}, "{", {"series_ids": ["LNS14000000"]}]),
        error=st.none() | st.just("boom"),
    ),
    max_size=6,
)


@given(calls=CALLS, draw=st.data())
def test_the_order_of_calls_does_not_matter(headline: Case, traced: Traced, calls: list[ToolCall], draw: Any) -> None:
    shuffled = draw.draw(st.permutations(calls))
    assert judge_route(headline, traced(*shuffled)) == judge_route(headline, traced(*calls))


@given(calls=CALLS, outcome=st.sampled_from(["finished", "gave_up", "timed_out", "crashed"]))
def test_without_complete_telemetry_no_trace_passes_or_fails(
    headline: Case, traced: Traced, calls: list[ToolCall], outcome: str
) -> None:
    trace = traced(*calls, outcome=outcome, telemetry=Telemetry(complete=False, gaps=("a gap",)))
    assert judge_route(headline, trace).value == "INCONCLUSIVE"


@given(calls=CALLS, extra=st.text(min_size=1, max_size=8).filter(lambda text: text != "LNS14000000"))
def test_one_more_unexpected_fetch_never_passes(
    headline: Case, traced: Traced, calls: list[ToolCall], extra: str
) -> None:
    assert judge_route(headline, traced(*calls, fetching(extra))).value == "FAIL"
