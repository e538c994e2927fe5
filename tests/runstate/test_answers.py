import pytest
import redis

from evalfarm.runstate import Ledger, Repeated, note_answers
from evalfarm.runstate.answers import MOST_ENTRIES

RUN, SIZE = "night-1", 100


@pytest.fixture(autouse=True)
def ledger(client: redis.Redis) -> Ledger:
    ledger = Ledger(client, RUN)
    ledger.create(SIZE, "sha256:plan")
    return ledger


def note(client: redis.Redis, index: int, *ids: str, attempt: int = 1, size: int = SIZE) -> Repeated | None:
    return note_answers(client, RUN, index, attempt, ids, size=size)


def test_responses_of_their_own_are_no_repeats(client: redis.Redis) -> None:
    assert [note(client, index, f"a{index}", f"b{index}") for index in range(50)] == [None] * 50


def test_a_response_that_another_trial_got_is_told_with_that_trial(client: redis.Redis) -> None:
    note(client, 7, "x", "y")
    assert note(client, 9, "z", "y") == Repeated("y", 7, 1)


def test_another_attempt_at_the_same_trial_counts_as_another(client: redis.Redis) -> None:
    note(client, 7, "x")
    assert note(client, 7, "x", attempt=2) == Repeated("x", 7, 1)


def test_asked_again_for_an_attempt_the_answer_is_the_same(client: redis.Redis) -> None:
    note(client, 7, "x")
    assert [note(client, 7, "x"), note(client, 9, "x", "y"), note(client, 9, "x", "y")] == [
        None,
        Repeated("x", 7, 1),
        Repeated("x", 7, 1),
    ]


def test_one_attempt_may_be_given_one_response_twice(client: redis.Redis) -> None:
    assert note(client, 7, "x", "x") is None


def test_an_attempt_without_responses_notes_nothing(client: redis.Redis) -> None:
    assert (note(client, 7), client.exists(f"f:{{{RUN}}}:ids")) == (None, 0)


def test_the_table_of_the_largest_run_stays_below_one_and_a_half_megabytes(client: redis.Redis) -> None:
    for at in range(3_000):
        assert note(client, at, f"r{at}", size=10_000_000) is None
    assert client.strlen(f"f:{{{RUN}}}:ids") <= MOST_ENTRIES * 11 <= 1_500_000


def test_it_goes_with_the_run_and_does_not_come_back(client: redis.Redis, ledger: Ledger) -> None:
    note(client, 7, "x")
    ledger.delete()
    assert client.exists(f"f:{{{RUN}}}:ids") == 0
    client.flushall()
    assert (note(client, 8, "x"), client.exists(f"f:{{{RUN}}}:ids")) == (None, 0)


def test_a_run_of_two_trials_forgets_no_response_for_want_of_room(client: redis.Redis) -> None:
    for pair in range(100):
        ids = (f"a{pair}", f"b{pair}")
        assert note(client, 0, *ids, size=2) is None
        assert note(client, 1, *ids, size=2) == Repeated(ids[0], 0, 1)
