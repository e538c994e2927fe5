from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.nights import Nights
from evalfarm.store import Store
from scheduler.nightly.decisions import MOST_TELLINGS, TELL_AGAIN_S
from scheduler.nightly.file import Declared
from scheduler.nightly.telling import Teller

ADDRESS = "https://hooks.example/T0/secret"
MakeNight = Callable[..., Night]
MakeEnd = Callable[..., NightEnd]


class Team:
    """Takes documents, or says why not."""

    def __init__(self, why: str | None = None) -> None:
        self.why = why
        self.heard: list[tuple[str, str]] = []

    def __call__(self, url: str, document: dict[str, Any]) -> str | None:
        self.heard.append((url, document["text"]))
        return self.why


@pytest.fixture
def nights() -> Nights:
    return Nights(Store("memory://").objects)


@pytest.fixture
def make_teller(nights: Nights, declare: Callable[..., Declared]) -> Callable[..., Teller]:
    def build(team: Team, said: list[str] | None = None, environ: dict[str, str] | None = None) -> Teller:
        told = said if said is not None else []
        return Teller(
            nights, declare(), {"TEAM_WEBHOOK": f"{ADDRESS}\n"} if environ is None else environ, told.append, team
        )

    return build


def test_a_team_is_told_once_however_often_and_by_whomever(
    make_teller: Callable[..., Teller], make_night: MakeNight, make_end: MakeEnd
) -> None:
    team, night, end = Team(), make_night(), make_end(verdict="regressed")
    for teller in (make_teller(team), make_teller(team)):
        assert teller.tell(night, end, 10.0)
    assert team.heard == [(ADDRESS, "REGRESSED: shop, night of 2026-11-30 02:30")]


def test_a_team_that_cannot_be_told_is_tried_again_later_and_given_up_in_the_end(
    make_teller: Callable[..., Teller], make_night: MakeNight, make_end: MakeEnd, tmp_path: Path
) -> None:
    said: list[str] = []
    team, night, end = Team("it answered 500, 4 times"), make_night(), make_end(verdict="failed")
    teller = make_teller(team, said)
    for look in range(10):
        teller.tell(night, end, look * TELL_AGAIN_S / 2)
    assert len(team.heard) == MOST_TELLINGS
    place = f"{tmp_path}/evalfarm.toml:8: receivers.team"
    told = f"schedule shop: night 20261130-0230: {place} was not told: it answered 500, 4 times"
    assert said == [told] * MOST_TELLINGS


def test_a_variable_that_is_not_set_is_named(
    make_teller: Callable[..., Teller], make_night: MakeNight, make_end: MakeEnd, tmp_path: Path
) -> None:
    said: list[str] = []
    assert not make_teller(Team(), said, {}).tell(make_night(), make_end(verdict="regressed"), 0.0)
    place = f"{tmp_path}/evalfarm.toml:8: receivers.team"
    assert said == [f"schedule shop: night 20261130-0230: {place} was not told: TEAM_WEBHOOK is not set here"]


def test_a_folder_gets_the_night_s_papers(
    make_teller: Callable[..., Teller], make_night: MakeNight, make_end: MakeEnd, nights: Nights, tmp_path: Path
) -> None:
    night = make_night()
    nights.put_paper(night, "report.md", "# HELD\n")
    nights.put_paper(night, "junit.xml", "<testsuites/>\n")
    assert make_teller(Team()).tell(night, make_end(), 0.0)
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert written == {"shop-20261130-0230.md": "# HELD\n", "shop-20261130-0230.xml": "<testsuites/>\n"}


def test_a_folder_that_cannot_be_written_fails_nothing(
    make_teller: Callable[..., Teller], make_night: MakeNight, make_end: MakeEnd, tmp_path: Path
) -> None:
    said: list[str] = []
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    assert not make_teller(Team(), said).tell(make_night(), make_end(), 0.0)
    why = f"{tmp_path}/out cannot be written: File exists"
    place = f"{tmp_path}/evalfarm.toml:12: receivers.files"
    assert said == [f"schedule shop: night 20261130-0230: {place} was not told: {why}"]
