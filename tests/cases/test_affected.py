"""Which cases a change touches, and which it leaves alone."""

import pytest

from cases.affected import affected_by, harnesses_touched
from cases.loader import load_suite
from evalfarm.contracts.suite import Suite
from evalfarm.errors import UsageError


@pytest.fixture(scope="module")
def support() -> Suite:
    return load_suite("support").suite


def test_a_model_and_a_prompt_touch_every_question_where_a_model_takes_part(support: Suite) -> None:
    everything = tuple(case.id for case in support.cases)
    assert (affected_by(support, "model"), affected_by(support, "prompt")) == (everything, everything)
    assert harnesses_touched("model") == harnesses_touched("prompt") == ("loop", "codex")
    assert harnesses_touched("tool:get_policy") == harnesses_touched(None) == ()


def test_a_tool_touches_the_cases_that_rest_on_it_or_must_not_call_it(support: Suite) -> None:
    assert {case.id for case in support.cases} - {*affected_by(support, "tool:lookup_order")} == set()
    assert "no-order-id" in affected_by(support, "tool:get_policy")


def test_a_policy_or_an_order_touches_the_cases_over_it(support: Suite) -> None:
    assert affected_by(support, "policy:DEMO-106") == ("turns-to-another-order",)
    assert affected_by(support, "policy:POLICY-DEMO-v7") == ("policy-does-not-exist",)


def test_a_rubric_touches_the_cases_that_are_judged_by_it(support: Suite) -> None:
    assert len(affected_by(support, "rubric:return-desk")) == len(support.cases)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("weather", "'weather' is no change\n\nhint: write model, prompt, tool:NAME, policy:FIXTURE or rubric:ID"),
        ("tool", "'tool' is no change\n\nhint: write model, prompt, tool:NAME, policy:FIXTURE or rubric:ID"),
        ("model:gpt", "'model:gpt' is no change\n\nhint: write model, prompt, tool:NAME, policy:FIXTURE or rubric:ID"),
        (
            "tool:lookup",
            "no case of suite 'support' is touched by tool:lookup\n\n"
            "hint: did you mean 'lookup_order'? tools: get_policy, lookup_order",
        ),
        ("rubric:tone", "no case of suite 'support' is touched by rubric:tone\n\nhint: rubrics: return-desk"),
    ],
)
def test_what_is_no_change_is_answered_with_what_is(support: Suite, change: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        affected_by(support, change)
    assert str(caught.value) == text
