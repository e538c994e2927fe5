import asyncio
from typing import Any

from evalfarm.contracts.answer import Rubric
from evalfarm.contracts.judging import CriterionLabel, Exhibit, Opinion, PairOpinion, Preference
from graders.judge.ask import Judge, judge_answer, judge_pair


def opinion(replies: Any, rubric: Rubric, exhibit: Exhibit) -> Opinion:
    return asyncio.run(judge_answer(Judge("m", replies), rubric, exhibit, seed=7))


def test_one_usable_reply_is_an_opinion_with_its_cost(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    replies = make.replies(make.heard(make.labels("PASS", "FAIL")))
    found = opinion(replies, rubric, exhibit)
    assert found == Opinion(
        judge="m",
        labels=(
            CriterionLabel(criterion="right", value="PASS", quote="it qualifies", reason="So it is."),
            CriterionLabel(criterion="modest", value="FAIL", quote="it qualifies", reason="So it is."),
        ),
        replies=1,
        cost_usd=0.25,
    )
    assert found.value == "FAIL"


def test_an_unusable_reply_is_asked_for_again_with_another_seed(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    replies = make.replies(make.heard("I think it is fine."), make.heard(make.labels("PASS", "PASS")))
    found = opinion(replies, rubric, exhibit)
    assert (found.value, found.failure, found.replies, found.cost_usd) == ("PASS", None, 2, 0.5)
    assert [seed for _, seed in replies.asked] == [7, 8]


def test_three_unusable_replies_are_a_failure_of_the_judge_and_no_label(
    rubric: Rubric, exhibit: Exhibit, make: Any
) -> None:
    found = opinion(make.replies(*[make.heard("No.")] * 9), rubric, exhibit)
    assert (found.labels, found.value, found.outage, found.replies) == ((), "INCONCLUSIVE", False, 3)
    assert (found.failure or "").startswith("none of 3 replies could be used; the last: it is not of the form that")


def test_an_outage_ends_it_at_once_and_is_told_apart(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    found = opinion(make.replies(make.outage, make.heard(make.labels("PASS", "PASS"))), rubric, exhibit)
    assert (found.value, found.failure, found.outage, found.replies) == ("INCONCLUSIVE", "HTTP 503 five times", True, 1)
    assert found.cost_usd is None


def test_a_pair_is_always_judged_in_both_orders(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    def pair(*chosen: str) -> PairOpinion:
        heard = [make.heard({"quote": "it qualifies", "reason": "So.", "better": one}) for one in chosen]
        return asyncio.run(judge_pair(Judge("m", make.replies(*heard)), rubric, exhibit, exhibit, 0))[0]

    steady, moved, tied = pair("first", "second"), pair("first", "first"), pair("neither", "first")
    assert (steady.better, steady.place) == ("first", None)
    assert (moved.better, moved.place) == (None, "first")
    assert (tied.better, tied.place) == (None, None)


def test_a_pair_whose_judge_fails_in_one_order_has_no_winner(rubric: Rubric, exhibit: Exhibit, make: Any) -> None:
    choice = make.heard({"quote": "it qualifies", "reason": "So.", "better": "first"})
    found, heard = asyncio.run(judge_pair(Judge("m", make.replies(choice, make.outage)), rubric, exhibit, exhibit, 0))
    assert found == PairOpinion(in_order=Preference(chosen="first"), swapped=Preference(failure="HTTP 503 five times"))
    assert (found.failed, found.better, found.place, len(heard)) == (True, None, None, 2)
