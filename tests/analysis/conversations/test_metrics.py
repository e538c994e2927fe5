from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.analysis.conversations.attention import Thresholds
from evalfarm.analysis.conversations.metrics import MissShares, Subject, measure, success_finding
from evalfarm.errors import UsageError

Make = Callable[..., Any]


def _subject(name: str, rows: list[Any], prompts: str | None = "same") -> Subject:
    return Subject(name, tuple(rows), prompts)


def _night(row: Make, *, success: bool, cost_usd: float, cases: int = 30) -> list[Any]:
    return [
        row(case=f"c{case}", conversation=f"r/{case}/{repeat}", success=success, cost_usd=cost_usd * (1 + case / 100))
        for case in range(cases)
        for repeat in (1, 2, 3)
    ]


def test_a_night_that_got_worse_and_dearer_is_found_so(row: Make) -> None:
    now = _subject("tonight", _night(row, success=False, cost_usd=1.3))
    before = _subject("yesterday", _night(row, success=True, cost_usd=1.0))
    found = measure(now, before, Thresholds())
    against = found.against
    assert against is not None
    assert against.judged is not None
    assert (success_finding(against.judged), against.judged.cost_finding) == ("worse", "dearer")
    assert against.judged.cost.factor.value == pytest.approx(1.3)
    assert [item.flag for item in found.attention] == ["succeeds_less", "costs_more"]


def test_the_same_night_twice_is_no_change(row: Make) -> None:
    night = _night(row, success=True, cost_usd=1.0, cases=200)
    against = measure(_subject("b", night), _subject("a", night), Thresholds()).against
    assert against is not None
    assert against.judged is not None
    assert (success_finding(against.judged), against.judged.cost_finding) == ("equivalent", "too little evidence")


@pytest.mark.parametrize(
    ("prompts", "why"),
    [
        ("other", "other prompts were asked: their digests differ"),
        (None, "one of the two comes from elsewhere, so it is not known whether the same was asked"),
    ],
)
def test_other_prompts_are_flagged_and_no_change_is_judged(row: Make, prompts: str | None, why: str) -> None:
    now = _subject("b", [row(success=False, cost_usd=9.0)], prompts)
    found = measure(now, _subject("a", [row()]), Thresholds())
    against = found.against
    assert against is not None
    assert (against.comparable, against.why_not, against.judged) == (False, why, None)
    assert found.attention == ()


def test_two_variants_are_paired_case_by_case_though_they_are_called_otherwise(row: Make) -> None:
    now = [row(case=f"c{n}", variant="guided") for n in range(5)]
    before = [row(case=f"c{n}", variant="plain") for n in range(5)]
    against = measure(_subject("b", now), _subject("a", before), Thresholds()).against
    assert against is not None
    assert against.judged is not None
    assert against.judged.cost.cases == 5


def test_a_cost_that_one_conversation_lacks_is_left_out_with_its_case(row: Make) -> None:
    now = [row(case="a", cost_usd=None), row(case="b"), row(case="c")]
    before = [row(case="a"), row(case="b"), row(case="c")]
    against = measure(_subject("b", now), _subject("a", before), Thresholds()).against
    assert against is not None
    assert against.judged is not None
    assert against.judged.cost.cases == 2


def test_misses_are_shared_out_by_model_and_harness(row: Make) -> None:
    rows = [
        row(misses=("tool_failed", "asked_user")),
        row(misses=("asked_user",)),
        row(),
        row(harness="loop", misses=("step_limit",)),
    ]
    assert measure(_subject("a", rows), None, Thresholds()).misses == (
        MissShares("x · codex · x", 3, 2, {"tool_failed": 1, "asked_user": 1}, {"tool_failed": 1, "asked_user": 2}),
        MissShares("x · loop · x", 1, 1, {"step_limit": 1}, {"step_limit": 1}),
    )


def test_versions_are_told_oldest_first(row: Make) -> None:
    rows = [
        row(plugin_version="2", plugin_digest="d2", started_at=2.0),
        row(plugin_version="1", plugin_digest="d1", started_at=1.0),
        row(plugin_version="2", plugin_digest="d2", started_at=3.0),
    ]
    found = measure(_subject("a", rows), None, Thresholds()).versions
    assert [(one.version, one.digest, one.group.conversations) for one in found] == [("1", "d1", 1), ("2", "d2", 2)]


def test_attempts_that_do_not_count_are_counted_apart(row: Make) -> None:
    found = measure(_subject("a", [row(), row(counted=False)]), None, Thresholds())
    assert (found.conversations, found.not_counted) == (1, 1)
    with pytest.raises(UsageError, match="'a' has no conversation that counts"):
        measure(_subject("a", [row(counted=False)]), None, Thresholds())
