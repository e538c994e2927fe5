import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import Telemetry, ToolCall
from worker.witnesses import compare

arguments = st.dictionaries(st.sampled_from(["x", "y"]), st.none() | st.integers(0, 2) | st.lists(st.integers(0, 1)))
calls = st.builds(ToolCall, name=st.sampled_from(["look", "buy"]), arguments=arguments, duration_s=st.floats(0, 9))
refused = st.builds(ToolCall, name=st.sampled_from(["look", "steal"]), arguments=st.just("{no"), error=st.just("no"))
accounts = st.lists(calls, max_size=6)
COMPLETE = Telemetry(complete=True)


def call(name: str, arguments: Any, error: str | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, error=error)


@given(account=accounts, order=st.randoms(use_true_random=False), cut_off=st.booleans())
def test_equal_accounts_in_any_order_are_complete(account: list[ToolCall], order: random.Random, cut_off: bool) -> None:
    served = [one.model_copy(update={"duration_s": 1.0, "result": {"a": 1}}) for one in account]
    order.shuffle(served)
    assert compare(account, served, cut_off=cut_off) == COMPLETE


@given(account=st.lists(calls, min_size=1, max_size=6), data=st.data())
def test_a_served_call_that_the_harness_does_not_report_is_a_gap(account: list[ToolCall], data: st.DataObject) -> None:
    lost = data.draw(st.integers(0, len(account) - 1))
    telemetry = compare(account[:lost] + account[lost + 1 :], account, cut_off=False)
    assert (telemetry.complete, len(telemetry.gaps)) == (False, 1)


@given(account=st.lists(calls, min_size=1, max_size=6), data=st.data(), cut_off=st.booleans())
def test_a_completed_call_that_was_not_served_is_a_gap(
    account: list[ToolCall], data: st.DataObject, cut_off: bool
) -> None:
    lost = data.draw(st.integers(0, len(account) - 1))
    telemetry = compare(account, account[:lost] + account[lost + 1 :], cut_off=cut_off)
    assert (telemetry.complete, len(telemetry.gaps)) == (False, 1)


@given(account=accounts, never_sent=st.lists(refused, max_size=3))
def test_calls_that_the_harness_itself_refused_are_no_gap(account: list[ToolCall], never_sent: list[ToolCall]) -> None:
    assert compare([*never_sent, *account], account, cut_off=False) == COMPLETE


@given(account=accounts, data=st.data())
def test_a_harness_that_was_stopped_may_owe_its_last_calls(account: list[ToolCall], data: st.DataObject) -> None:
    told = data.draw(st.integers(0, len(account)))
    assert compare(account[:told], account, cut_off=True) == COMPLETE


def test_a_call_that_failed_at_the_server_matches_by_what_was_asked() -> None:
    reported, served = call("look", {"x": 1}, "Codex's words"), call("look", {"x": 1}, "the server's words")
    assert compare([reported], [served], cut_off=False) == COMPLETE


def test_the_gaps_name_each_call_with_its_arguments() -> None:
    telemetry = compare([call("look", {"y": 2, "x": 1})], [call("buy", {"n": "ä"}), call("buy", {})], cut_off=False)
    assert telemetry == Telemetry(
        complete=False,
        gaps=(
            'the harness reports look({"x": 1, "y": 2}), which never reached the tool gateway',
            'the tool gateway served buy({"n": "\\u00e4"}), which the harness did not report',
            "the tool gateway served buy({}), which the harness did not report",
        ),
    )
