"""A day without faults: the checker itself is checked, and what a run costs when nothing breaks."""

from collections.abc import Callable

import pytest

from tests.faults.farm import Farm
from tests.faults.invariants import hold

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def test_two_workers_on_a_calm_day_spend_one_attempt_a_trial(start_farm: Callable[..., Farm]) -> None:
    farm = start_farm()
    for _ in range(2):
        farm.work()
    farm.tend()
    books = hold(farm)
    assert books.started == [1] * books.plan.size
    assert books.lost == set()
    assert len(books.charges) == 16
