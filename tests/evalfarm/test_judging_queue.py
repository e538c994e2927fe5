import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.runstate import Handed, JudgingProgress, JudgingQueue
from evalfarm.runstate.judging import MOST_JUDGINGS

HOLD_S = 60.0


def opened(client: redis.Redis, items: int) -> JudgingQueue:
    queue = JudgingQueue(client, "r")
    assert queue.open(items)
    return queue


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
    assert [queue.claim(handed), queue.claim(handed)] == [True, False]


def test_what_nobody_finished_in_time_is_handed_out_again_and_the_older_attempt_is_fenced(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (lost,) = queue.take(1, 0.0)
    (again,) = queue.take(1, HOLD_S)
    assert (lost, again) == (Handed(0, 1), Handed(0, 2))
    assert [queue.claim(lost), queue.claim(again)] == [False, True]
    queue.end(lost, cost_usd=0.25, again=False)
    assert queue.progress() == JudgingProgress(items=1, left=1, spent_usd=0.25, unpriced=0)


def test_it_is_given_up_after_the_last_attempt_was_lost(client: redis.Redis) -> None:
    queue = opened(client, 1)
    taken = [queue.take(1, 0.0) for _ in range(MOST_JUDGINGS + 1)]
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


def test_when_the_money_is_spent_what_is_not_at_work_is_let_go(client: redis.Redis) -> None:
    queue = opened(client, 5)
    queue.take(2, HOLD_S)
    queue.drop_waiting()
    assert queue.progress().left == 2
    assert queue.take(5, HOLD_S) == []


def test_after_it_was_closed_nothing_is_left_of_it_and_nothing_comes_back(client: redis.Redis) -> None:
    queue = opened(client, 1)
    (handed,) = queue.take(1, HOLD_S)
    queue.close()
    queue.end(handed, cost_usd=1.0, again=True)
    assert not queue.claim(handed)
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
    begun: list[Handed] = []
    for move in moves:
        if move in ("take", "lose"):
            taken = queue.take(2, 0.0 if move == "lose" else HOLD_S)
            begun += taken
            at_work += taken if move == "take" else []
        elif at_work:
            handed = at_work.pop(0)
            for _ in range(1 + (move == "twice")):
                queue.end(handed, cost_usd=1.0, again=move == "fail")
    assert len(begun) == len(set(begun))
    assert all(handed.attempt <= MOST_JUDGINGS for handed in begun)
    assert queue.progress().left <= 4
