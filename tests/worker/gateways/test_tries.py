import pytest

from worker.gateways.reply import refusal
from worker.gateways.tries import MAX_TRIES, MOST_RESTED_S, Tries, TryAgain

pytestmark = pytest.mark.anyio


async def without_sleeping(_: float) -> None:
    """The waits are told, and not waited for."""


async def all_tries(retry_after_s: float | None, first_wait_s: float) -> tuple[list[str], list[float]]:
    """What each try met, and how long each wait between two was to be."""
    waits: list[float] = []
    tries = Tries(first_wait_s, waits.append)

    async def refuse() -> None:
        raise TryAgain("HTTP 429", 429, refusal(429, "later"), retry_after_s)

    with pytest.raises(TryAgain):
        await tries.each().copy(sleep=without_sleeping)(refuse)
    return tries.failures, waits


@pytest.mark.parametrize(
    ("retry_after_s", "waits"),
    [(0.0, [0.0] * 4), (30.0, [30.0] * 4), (50.0, [50.0] * 2), (120.0, [120.0]), (121.0, [])],
)
async def test_a_provider_is_waited_for_as_it_asks_until_that_is_too_long_in_all(
    retry_after_s: float, waits: list[float]
) -> None:
    assert await all_tries(retry_after_s, 0.25) == (["HTTP 429"] * (len(waits) + 1), waits)


@pytest.mark.parametrize("first_wait_s", [0.25, 10.0, 60.0])
async def test_its_own_waits_are_bounded_too(first_wait_s: float) -> None:
    failures, waits = await all_tries(None, first_wait_s)
    assert len(failures) == len(waits) + 1 <= MAX_TRIES
    assert sum(waits) <= MOST_RESTED_S
