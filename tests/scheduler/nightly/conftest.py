"""Schedules, nights and their ends, made up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.schedule import Night, NightEnd, Schedule
from scheduler.nightly.file import Declared, read_schedules

FILE = """\
[schedules.shop]
suite = "bls"
models = ["sim-careful"]
repeats = 3
when = { cron = "30 2 * * *", time_zone = "Europe/Vienna" }
notify = ["team", "files"]

[receivers.team]
webhook_env = "TEAM_WEBHOOK"
on = ["regressed", "failed"]

[receivers.files]
folder = "out"
on = ["held", "regressed"]
"""


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., Declared]:
    """The schedules of a file with this text."""

    def write(text: str = FILE) -> Declared:
        path = tmp_path / "evalfarm.toml"
        path.write_text(text, encoding="utf-8")
        return read_schedules(path)

    return write


@pytest.fixture
def shop(declare: Callable[..., Declared]) -> Schedule:
    return declare().schedule("shop")


@pytest.fixture
def make_night() -> Callable[..., Night]:
    def build(stamp: str = "20261130-0230", **changes: Any) -> Night:
        said = {"schedule": "shop", "stamp": stamp, "due_at": 0.0, "decided_at": 0.0, "decision": "on time"}
        return Night.model_validate(said | changes)

    return build


@pytest.fixture
def make_end() -> Callable[..., NightEnd]:
    def build(stamp: str = "20261130-0230", **changes: Any) -> NightEnd:
        said = {"schedule": "shop", "stamp": stamp, "verdict": "held", "accepted": True, "ended_at": 0.0}
        return NightEnd.model_validate(said | changes)

    return build
