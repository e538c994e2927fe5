from math import inf

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.contracts.budget import Budget
from evalfarm.runstate import (
    Ended,
    Handed,
    Judged,
    JudgingProgress,
    JudgingQueue,
    Kept,
    Ledger,
    Limits,
    ModelLimits,
    Money,
    Shape,
    Spent,
    Terms,
    Throttle,
    room,
)
from evalfarm.runstate.judging import MOST_JUDGINGS

HOLD_S = 60.0


def opened(client: redis.Redis, items: int) -> JudgingQueue:
    queue = JudgingQueue(client, "r")
    assert queue.open(items)
    return queue


def begun(queue: JudgingQueue, hold_s: float = HOLD_S) -> list[Handed]:
    """The next item, handed out and claimed; none where there is none."""
    return [handed for handed in queue.take(1, HOLD_S) if queue.claim(handed, hold_s)]


def test_no_more_are_at_work_than_may_be(client: redis.Redis) -> None:
    queue = opened(client, 3)
    assert queue.take(2, HOLD_S) == [Handed(0, 1), Handed(1, 1)]
    assert queue.take(2, HOLD_S) == []
    queue.end(Handed(0, 1), cost_usd=0.5, again=False)
    assert queue.take(2, HOLD_S) == [Handed(2, 1)]
    assert queue.progress() == JudgingProgress(items=3, left=2, spent_usd=0.5, unpriced=0)


def test_opening_it_again_changes_nothing(client: redis.Redis) -> None:
    queue = opened(client, 2)
    queue.end(queue.take(1, HOLD_S)[0], cost_usd=None, again=False)
    assert not queue.open(2)
    assert queue.progress() == JudgingProgress(items=2, left=1, spent_usd=0.0, unpriced=1)


def test_an_attempt_is_claimed_once(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = queue.take(1, HOLD_S)
    assert [queue.claim(handed, HOLD_S), queue.claim(handed, HOLD_S)] == [True, False]


def test_what_nobody_finished_in_time_is_handed_out_again_and_the_older_attempt_is_fenced(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (lost,) = begun(queue, 0.0)
    (again,) = queue.take(1, HOLD_S)
    assert (lost, again) == (Handed(0, 1), Handed(0, 2))
    assert [queue.claim(lost, HOLD_S), queue.claim(again, HOLD_S)] == [False, True]
    queue.end(lost, cost_usd=0.25, again=False)
    assert queue.progress() == JudgingProgress(items=1, left=1, spent_usd=0.25, unpriced=0)


def test_a_hand_out_that_nobody_claims_is_sent_again_and_costs_no_attempt(client: redis.Redis) -> None:
    queue = opened(client, 1)
    sent = [queue.take(1, 0.0) for _ in range(2 * MOST_JUDGINGS)]
    assert sent == [[Handed(0, 1)]] * 2 * MOST_JUDGINGS
    assert [queue.claim(Handed(0, 1), HOLD_S) for _ in range(2)] == [True, False]
    assert queue.take(1, HOLD_S) == []


def test_one_that_is_renewed_is_not_taken_for_lost(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = begun(queue, 0.0)
    queue.renew(handed, HOLD_S)
    assert queue.take(1, HOLD_S) == []
    queue.renew(Handed(0, 2), 0.0)  # of an attempt that was never begun
    assert queue.take(1, HOLD_S) == []


def test_it_is_given_up_after_the_last_attempt_was_lost(client: redis.Redis) -> None:
    queue = opened(client, 1)
    taken = [begun(queue, 0.0) for _ in range(MOST_JUDGINGS + 1)]
    assert [[handed.attempt for handed in one] for one in taken] == [[1], [2], [3], []]
    assert queue.progress().left == 0


def test_an_attempt_that_failed_waits_for_another_and_the_last_one_ends_it(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = queue.take(1, HOLD_S)
    queue.end(handed, cost_usd=0.0, again=True)
    assert (queue.take(1, HOLD_S), queue.progress().left) == ([], 1)
    queue.end(Handed(0, MOST_JUDGINGS), cost_usd=0.0, again=True)
    assert queue.progress().left == 1  # no attempt of this number was ever begun


def test_a_call_that_is_sent_twice_counts_its_cost_once(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = queue.take(1, HOLD_S)
    for _ in range(2):
        queue.end(handed, cost_usd=0.5, again=False)
    assert queue.progress() == JudgingProgress(items=1, left=0, spent_usd=0.5, unpriced=0)


def test_what_may_be_spent_is_set_aside_first_and_the_rest_is_let_go_when_it_is_gone(client: redis.Redis) -> None:
    queue = JudgingQueue(client, "r")
    queue.open(5, most_usd=2.5)
    first, second, third = queue.take(3, HOLD_S)
    assert queue.claim(first, HOLD_S)  # of which nobody knows yet what it costs
    queue.end(first, cost_usd=1.0, again=False)
    assert [queue.claim(one, HOLD_S) for one in (second, third)] == [True, False]
    assert queue.progress() == JudgingProgress(items=5, left=4, spent_usd=1.0, unpriced=0, reserved_usd=1.0)
    queue.end(second, cost_usd=1.5, again=False)
    (after, _) = queue.take(3, HOLD_S)
    assert not queue.claim(after, HOLD_S)
    assert queue.progress().stopped_by == "judges"
    assert [queue.claim(each, HOLD_S) for each in (third, Handed(4, 1))] == [False, False]
    assert queue.progress() == JudgingProgress(5, 0, 2.5, 0, 0.0, "judges")


def test_a_cost_that_nobody_knows_stays_as_it_was_set_aside(client: redis.Redis) -> None:
    queue = opened(client, 2)
    for cost_usd in (1.0, None):
        queue.end(*begun(queue), cost_usd=cost_usd, again=False)
    assert queue.progress() == JudgingProgress(items=2, left=0, spent_usd=2.0, unpriced=1)


def test_judges_and_trials_draw_on_one_budget(client: redis.Redis) -> None:
    ledger = Ledger(client, "r")
    budget = Budget(max_cost_usd=3.0, trial_usd=(1.0,), judging_usd=0.75, judged_share=1.0)
    ledger.create(4, "sha256:plan", Shape(budget=budget))
    one, other, *_ = ledger.take(4, HOLD_S)
    assert ledger.claim(one, "a", HOLD_S).status == "ok"
    assert ledger.claim(other, "b", HOLD_S).status == "deferred"  # 1 + 1, and 2 × 0.75 for judging
    ledger.end(
        Ended(one, 1, verdict="passed", row=b"{}", final=True, backoff_s=0.0, max_attempts=3, spent=Spent(0, 1.0))
    )
    queue = opened(client, 3)
    handed = queue.take(3, HOLD_S)
    assert [queue.claim(each, HOLD_S) for each in handed] == [True, True, False]
    assert ledger.money(1) == Money(3.0, 1.0, 0.0, False, (1.0,), Judged(0.0, 1.5))
    assert ledger.money(1).left_usd == 0.5
    for each in handed[:2]:
        queue.end(each, cost_usd=1.0, again=False)
    client.zadd("f:{r}:due", {"2": 0})
    (last,) = queue.take(1, HOLD_S)
    assert not queue.claim(last, HOLD_S)
    assert (queue.progress().stopped_by, queue.progress().left) == ("run", 0)
    assert ledger.money(1).judges == Judged(2.0, 0.0)


def test_an_answer_at_its_judges_takes_a_place_of_each_judge_s_model_as_a_trial_does(client: redis.Redis) -> None:
    limits = Limits(models={"a": ModelLimits(concurrency=2), "b": ModelLimits(concurrency=1)})
    queue = JudgingQueue(client, "r", {"a": 2, "b": 1, "c": None})
    queue.open(3)
    first, second, _ = queue.take(3, HOLD_S)
    assert [queue.claim(one, HOLD_S) for one in (first, second)] == [True, False]
    assert room(client, limits, ["a", "b", "c"]) == {"a": 1, "b": 0, "c": inf}
    assert Ledger(client, "t").create(1, "sha256:plan")
    ledger = Ledger(client, "t")
    ledger.take(1, HOLD_S)
    assert ledger.claim(0, "x", HOLD_S, Terms(0, "b", 1)).status == "deferred"
    queue.end(first, cost_usd=0.0, again=False)
    assert room(client, limits, ["a", "b"]) == {"a": 2, "b": 1}
    client.zadd("f:{r}:due", {str(second.item): 0})
    assert queue.take(3, HOLD_S) == [second]  # it was never begun
    assert queue.claim(second, HOLD_S)


def test_no_answer_goes_to_a_judge_whose_model_is_paused(client: redis.Redis) -> None:
    limits = Limits(models={"a": ModelLimits(concurrency=8)})
    Throttle(client, limits).pause("a", 60.0)
    queue = JudgingQueue(client, "r", {"a": 8})
    queue.open(1)
    assert not queue.claim(*queue.take(1, HOLD_S), HOLD_S)
    assert queue.progress() == JudgingProgress(items=1, left=1, spent_usd=0.0, unpriced=0)
    assert client.zscore("f:{r}:due", "0") > 1000 * (client.time()[0] + 50)


def test_judges_that_answer_give_a_lowered_cap_back(client: redis.Redis) -> None:
    client.hset("f:m:a:ctl", mapping={"cap": 1, "streak": 0})
    queue = JudgingQueue(client, "r", {"a": 4})
    queue.open(20)
    for _ in range(20):
        queue.end(*begun(queue), cost_usd=0.0, again=False)
    assert client.hget("f:m:a:ctl", "cap") == b"2"


def test_opened_anew_it_knows_what_is_kept(client: redis.Redis) -> None:
    queue = JudgingQueue(client, "r")
    kept = [Kept(0, 1, 0.5, done=False), Kept(0, 2, None, done=False), Kept(2, 1, 0.25, done=True)]
    assert queue.open(3, kept)
    assert queue.progress() == JudgingProgress(items=3, left=2, spent_usd=0.75, unpriced=1)
    assert queue.take(3, HOLD_S) == [Handed(0, 3), Handed(1, 1)]
    queue.end(Handed(0, 1), cost_usd=0.5, again=False)  # late, and known already
    assert queue.progress() == JudgingProgress(items=3, left=2, spent_usd=0.75, unpriced=1)


def test_after_it_was_closed_nothing_is_left_of_it_and_nothing_comes_back(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = queue.take(1, HOLD_S)
    queue.close()
    queue.end(handed, cost_usd=1.0, again=True)
    assert not queue.claim(handed, HOLD_S)
    queue.close()
    assert client.keys("*") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["take", "end", "fail", "twice", "lose"]), max_size=40))
def test_every_item_is_judged_at_most_so_often_and_ends_once_whatever_happens(
    client: redis.Redis, moves: list[str]
) -> None:
    client.flushall()
    queue = opened(client, 4)
    at_work: list[Handed] = []
    claimed: list[Handed] = []
    for move in moves:
        if move in ("take", "lose"):
            hold_s = 0.0 if move == "lose" else HOLD_S
            taken = [handed for handed in queue.take(2, hold_s) if queue.claim(handed, hold_s)]
            claimed += taken
            at_work += taken if move == "take" else []
        elif at_work:
            handed = at_work.pop(0)
            for _ in range(1 + (move == "twice")):
                queue.end(handed, cost_usd=1.0, again=move == "fail")
    assert len(claimed) == len(set(claimed))
    assert all(handed.attempt <= MOST_JUDGINGS for handed in claimed)
    assert queue.progress().left <= 4
    for handed in at_work:
        queue.end(handed, cost_usd=1.0, again=False)
    lost = len(claimed) - round(queue.progress().spent_usd)
    assert queue.progress().reserved_usd <= lost


def test_one_whose_message_was_lost_is_handed_out_again_under_its_number_and_one_at_work_is_not(
    client: redis.Redis,
) -> None:
    queue = opened(client, 2)
    lost, at_work = queue.take(2, HOLD_S)
    assert queue.claim(at_work, HOLD_S)
    assert queue.take(2, HOLD_S) == []
    assert queue.take(2, HOLD_S, lost_s=0.0) == [lost]


def test_one_that_waits_for_its_model_is_not_taken_for_lost(client: redis.Redis) -> None:
    limits = Limits(models={"judge": ModelLimits(concurrency=1)})
    Throttle(client, limits).pause("judge", 60.0)
    queue = JudgingQueue(client, "r", {"judge": 1})
    assert queue.open(1)
    (handed,) = queue.take(1, HOLD_S)
    assert not queue.claim(handed, HOLD_S)
    assert queue.take(1, HOLD_S, lost_s=0.0) == []
