from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.analysis.conversations.agreement import Disagreement, check_agreement, disagreements
from evalfarm.errors import ExitCode, RulesDisagree

Make = Callable[..., Any]


def test_equal_rows_agree_in_any_order(row: Make) -> None:
    one, other = row(conversation="r/0/1"), row(conversation="r/1/1")
    assert list(disagreements([one, other], [other, one])) == []


def test_every_figure_that_differs_is_named(row: Make) -> None:
    one, other = row(conversation="r/0/1", writes=2), row(conversation="r/0/1", writes=1, success=False)
    assert list(disagreements([one], [other])) == [
        Disagreement("r/0/1", "writes", 2, 1),
        Disagreement("r/0/1", "success", True, False),
    ]


def test_a_row_that_one_side_lacks_is_a_disagreement(row: Make) -> None:
    assert list(disagreements([row(conversation="r/0/1")], [])) == [
        Disagreement("r/0/1", "conversation", "a row", None)
    ]


def test_numbers_agree_to_nine_digits(row: Make) -> None:
    assert list(disagreements([row(cost_usd=0.3)], [row(cost_usd=0.1 + 0.2)])) == []
    assert [found.column for found in disagreements([row(cost_usd=0.3)], [row(cost_usd=0.3000001)])] == ["cost_usd"]
    assert [found.column for found in disagreements([row(cost_usd=0.0)], [row(cost_usd=None)])] == ["cost_usd"]


def test_a_disagreement_fails_loudly_with_the_rows(row: Make) -> None:
    with pytest.raises(RulesDisagree) as failed:
        check_agreement([row(conversation="r/0/1", writes=2)], [row(conversation="r/0/1")])
    assert str(failed.value) == (
        "the rules over conversations disagree between Python and SQL, so no figure holds\n"
        "  r/0/1, writes: 2 in Python, 0 in SQL\n\n"
        "hint: report these rows; `evalfarm show CONVERSATION --json` prints the trace that they were read from"
    )
    assert failed.value.exit_code == ExitCode.INTERNAL


def test_many_disagreements_are_cut_off_and_said_to_be(row: Make) -> None:
    names = [f"r/{number}/1" for number in range(20)]
    with pytest.raises(RulesDisagree) as failed:
        check_agreement([row(conversation=name, writes=2) for name in names], [row(conversation=n) for n in names])
    lines = failed.value.message.splitlines()
    assert (len(lines), lines[-1]) == (12, "  and more")
