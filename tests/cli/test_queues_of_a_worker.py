import pytest

from evalfarm.broker import ALL_QUEUES
from evalfarm.cli.services.working import taken_from


@pytest.mark.parametrize(
    ("named", "queues"),
    [
        ((), ALL_QUEUES),
        (("nightly",), ("trials.nightly",)),
        (("nightly", "judging", "interactive"), ALL_QUEUES),  # in the farm's order, whoever names them
        (("judging", "nightly"), ("judging", "trials.nightly")),
    ],
)
def test_a_worker_takes_from_the_queues_that_it_was_given(named: tuple[str, ...], queues: tuple[str, ...]) -> None:
    assert taken_from(named) == queues
