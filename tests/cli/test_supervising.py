import os
from pathlib import Path

import pytest

from evalfarm.cli.services.supervising import MOST_DEATHS, WITHIN_S, Service, Supervisor, is_broken
from evalfarm.errors import InfrastructureError


@pytest.mark.parametrize(
    ("deaths", "broken"),
    [
        ([0.0] * (MOST_DEATHS - 1), False),
        ([0.0] * MOST_DEATHS, True),
        ([at * WITHIN_S for at in range(-MOST_DEATHS, 1)], False),
    ],
)
def test_a_service_is_given_up_that_dies_again_and_again_within_a_minute(deaths: list[float], broken: bool) -> None:
    assert is_broken(deaths, 1.0) == broken


@pytest.mark.slow
def test_a_service_that_cannot_live_is_started_again_and_then_told_of(tmp_path: Path) -> None:
    said: list[str] = []
    supervisor = Supervisor(tmp_path, os.environ, said.append)
    supervisor.start(Service("broken", ("analyze", "none.csv")))
    try:
        with pytest.raises(InfrastructureError) as error:
            supervisor.watch()
    finally:
        supervisor.stop()
    assert error.value.message.startswith(f"broken has stopped {MOST_DEATHS} times within a minute: Error: ")
    assert error.value.hint == f"its log is {tmp_path}/broken.log"
    assert len(said) == MOST_DEATHS - 1
