"""What simulated models do with whatever a tool says when it fails: they go on, as a model does."""

import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cases.loader import load_suite
from cases.policies import Answer, Calls, Policy, Seen, SeenResult, SeenTool, SeenTurn
from cases.policies.offered import policies_of

OBEDIENT = "If candidates tie for the highest confidence, ask. Never invent a series id."
TOOLS = {
    "bls": {"resolve": {"indicators": []}, "fetch_bls_data": {"series_ids": ["CUUR0000SA0"]}},
    "support": {"lookup_order": {"order_id": "DEMO-101"}, "get_policy": {"policy_id": "POLICY-DEMO-v1"}},
}
FIELDS = (
    *("results", "candidates", "series", "observations", "series_id", "title", "confidence", "value", "period"),
    *("status", "order_id", "policy_id", "region", "delivered_age_days", "final_sale", "unopened", "min_age_days"),
    *("max_age_days", "requires_unopened", "excludes_final_sale", "error"),
)
PLAIN = st.none() | st.booleans() | st.integers(-2, 40) | st.sampled_from(["ok", "unavailable", "unknown", "x"])
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner), max_leaves=12
)
OUTPUTS = st.text() | VALUES.map(json.dumps) | st.just("[" * 100_000)


def agents() -> list[Any]:
    found = {name: load_suite(name) for name in TOOLS}
    return [
        pytest.param(suite, policy, id=f"{suite}-{model}")
        for suite, loaded in found.items()
        for model, policy in policies_of(loaded.suite, loaded.folder).items()
        if model not in ("sim-slow", "sim-flaky", "sim-erratic", "sim-shell", "sim-hostile")
    ]


@pytest.mark.parametrize(("suite", "policy"), agents())
@given(outputs=st.lists(st.tuples(st.booleans(), OUTPUTS), max_size=4), told=st.booleans(), again=st.booleans())
@example(outputs=[(False, '{"order_id": null}'), (True, '{"policy_id": ""}')], told=False, again=False)
def test_whatever_a_tool_says_a_simulated_model_makes_a_move(
    suite: str, policy: Policy, outputs: list[tuple[bool, str]], told: bool, again: bool
) -> None:
    (first, asked_first), (second, asked_second) = TOOLS[suite].items()
    results = tuple(
        SeenResult(second, asked_second, output) if of_second else SeenResult(first, asked_first, output)
        for of_second, output in outputs
    )
    turn = SeenTurn("What is the unemployment rate? Can I return DEMO-101 under POLICY-DEMO-v1?", results)
    turns = (turn, SeenTurn("The one called x, for DEMO-101.")) if again else (turn,)
    tools = tuple(SeenTool(name, None, "", {}) for name in TOOLS[suite])
    move = policy.move(Seen("m", OBEDIENT if told else "", tools, turns), random.Random(1))
    assert isinstance(move, Answer | Calls)
